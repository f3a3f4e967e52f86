// SPDX-License-Identifier: MIT
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/assert.h"
#include "weft/nats/protocol/codec.h"
#include "weft/nats/protocol/headers.h"
#include "weft/nats/protocol/server_error.h"
#include "weft/nats/protocol/test_pieces.h"

// The first two bytes choose the bound of a message and the cuts; the rest is the server's stream. Checked besides the
// sanitizers: the outcome is the same whole and in pieces; bodies keep to the bound; a published copy of a
// message is read back as the same.
namespace {

using namespace weft::nats;

std::string published(const Codec& codec, const test::Operation& operation) {
  Head head;
  head.op = Op::publish;
  head.subject = operation.subject;
  head.reply = operation.reply;
  head.headers_size = operation.headers_size;
  std::array<std::uint8_t, Codec::kHeaderMax> front;
  const auto size = codec.encode_header(head, weft::as_bytes(operation.body), std::span(front));
  if (!size) {
    WEFT_ASSERT(operation.subject.size() > kSubjectMax || operation.reply.size() > kReplyMax ||
                size.error() == weft::Errc::invalid_argument);
    return {};
  }
  std::string text(weft::as_text(weft::Bytes(front).first(*size)));
  return text + operation.body + "\r\n";
}

void check_message(const Codec& codec, const test::Operation& operation) {
  WEFT_ASSERT(operation.body.size() <= codec.body_max() && operation.headers_size <= operation.body.size());
  const HeadersView headers(weft::as_bytes(operation.body).first(operation.headers_size));
  std::size_t seen = headers.status_text().size();
  headers.for_each([&](const HeadersView::Field& field) {
    seen += field.name.size() + field.value.size();
    WEFT_ASSERT(headers.find(field.name).has_value());
  });
  WEFT_ASSERT(seen <= operation.headers_size);
  // "PUB subject [reply] size" is "MSG subject sid [reply] size" without the number.
  std::string again = published(codec, operation);
  if (!again.empty()) {
    const std::size_t place = again.find(' ', again.find(' ') + 1);
    again.insert(place, " " + std::to_string(operation.sid));
    again.replace(0, operation.headers_size == 0 ? 3 : 4, operation.headers_size == 0 ? "MSG" : "HMSG");
    const test::Story story = test::decode_whole(codec, again);
    WEFT_ASSERT(story.error.empty() && story.operations.size() == 1 && story.operations.front() == operation);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const Codec codec(data[0] * std::size_t{data[0]});
  std::uint32_t random = data[1];
  const std::string_view stream = weft::as_text(weft::Bytes(data + 2, size - 2));
  const test::Story whole = test::decode_whole(codec, stream);
  const test::Story pieces = test::decode_in_pieces(codec, stream, [&random] {
    random = random * 1664525U + 1013904223U;
    return std::size_t{1} + (random >> 24U) % 20;
  });
  WEFT_ASSERT(whole == pieces);
  for (const test::Operation& operation : whole.operations) {
    if (operation.op == Op::message) {
      check_message(codec, operation);
    } else if (operation.op == Op::error) {
      WEFT_ASSERT(!(read_server_error(operation.body).error == weft::Errc::ok));
    }
  }
  return 0;
}
