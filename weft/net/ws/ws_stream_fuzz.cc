// SPDX-License-Identifier: MIT
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/base/random.h"
#include "weft/net/stream/test_pipe.h"
#include "weft/net/ws/ws_stream.h"

// The first byte chooses the cuts; the rest is a client's bytes after its upgrade. Checked besides the sanitizers: a
// server's stream gives the same bytes and ends in the same way however the kernel cuts them, before and after the end
// of the handshake above, and it writes its output for them.
namespace {

using namespace weft::net;

constexpr std::string_view kUpgrade =
    "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: ZWS2.0/NULL\r\n"
    "Sec-WebSocket-Version: 13\r\n\r\n";

std::string run(weft::Bytes input, weft::Random* random) {
  test::Pipe up;
  test::Pipe down;
  up.bytes = std::string(kUpgrade).append(weft::as_text(input));
  up.ended = true;
  auto made = ws::make_zws_stream(std::make_unique<test::PipeStream>(up, down, random), {.message_max = 1000});
  WEFT_ASSERT(made);
  const std::unique_ptr<ByteStream> stream = std::move(*made);
  test::Status last = test::Status::done;
  std::string bytes = test::read_all(*stream, &last);
  stream->admit();
  bytes += last == test::Status::failed ? "" : test::read_all(*stream, &last);
  WEFT_ASSERT(last != test::Status::done);
  if (last != test::Status::failed) {
    (void)test::write(*stream, bytes);
    stream->shutdown_write();
  }
  return bytes + std::to_string(static_cast<int>(last)) +
         (last == test::Status::failed ? stream->state().failure.text() : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  const weft::Bytes input(data + 1, size - 1);
  weft::Random random(data[0]);
  WEFT_ASSERT(run(input, nullptr) == run(input, &random));
  return 0;
}
