// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/assert.h"
#include "weft/net/ws/deflate.h"
#include "weft/net/ws/deflate_terms.h"

// The first bytes choose the bound and the cuts; the rest is a peer's offers, and then a payload. Checked besides the
// sanitizers: an answer has windows that zlib has, or the client's smaller ones; the outcome and the message depend on
// the bytes, not on the cuts; no more than the bound and one byte are made; a message comes back after it was
// compressed.
namespace {

using namespace weft::net::ws;

struct Expanded {
  Inflater::Outcome outcome;
  std::vector<std::uint8_t> message;

  friend bool operator==(const Expanded&, const Expanded&) = default;
};

Expanded expand(Inflater& inflater, weft::Bytes payload, std::size_t most, std::size_t piece) {
  std::vector<std::uint8_t> room;
  inflater.reset();
  inflater.begin(most);
  auto outcome = Inflater::Outcome::ok;
  for (std::size_t at = 0; at < payload.size() && outcome == Inflater::Outcome::ok; at += piece) {
    outcome = inflater.take(payload.subspan(at, std::min(piece, payload.size() - at)), room);
  }
  if (outcome == Inflater::Outcome::ok) {
    outcome = inflater.finish(room);
  }
  WEFT_ASSERT(inflater.size() <= most + 1 && room.size() <= std::max<std::size_t>(most + 1, inflater.size()));
  room.resize(outcome == Inflater::Outcome::ok ? inflater.size() : 0);
  return {outcome, room};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::size_t most = data[0] * 64u;
  const std::size_t piece = 1u + data[1] % 16;
  const weft::Bytes rest(data + 2, size - 2);
  if (const auto answer = answer_deflate(weft::as_text(rest), {true, true, 9 + data[0] % 7})) {
    WEFT_ASSERT(answer->terms.server_bits >= 9 && answer->terms.server_bits <= 15);
    WEFT_ASSERT(answer->terms.client_bits >= 8 && answer->terms.client_bits <= 15);
    WEFT_ASSERT(answer->text.starts_with("permessage-deflate") && answer->text.size() < 160);
  }
  const auto inflater = Inflater::make(15);
  if (inflater == nullptr) {
    return 0;
  }
  const Expanded whole = expand(*inflater, rest, most, rest.size() + 1);
  WEFT_ASSERT(whole == expand(*inflater, rest, most, piece));
  if (!whole.message.empty()) {
    const auto deflater = Deflater::make(9 + data[1] % 7, 1 + data[0] % 9, 1 + data[1] % 9);
    WEFT_ASSERT(deflater != nullptr);
    std::vector<std::uint8_t> room;
    const weft::Bytes payload = deflater->compress(whole.message, room);
    WEFT_ASSERT(expand(*inflater, payload, most, piece).message == whole.message);
  }
  return 0;
}
