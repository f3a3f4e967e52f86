// SPDX-License-Identifier: MIT
#include "weft/serve/web/websocket_deflate.h"

#include <algorithm>
#include <utility>

namespace weft::serve::web {

namespace {

namespace ws = net::ws;

constexpr std::size_t kUnmaskedAtOnce = 4096;  // bytes

// Gives the room of a large message back.
void trim(std::vector<std::uint8_t>& room, std::size_t used) {
  if (room.capacity() > RouteDeflate::kRoomKept && used <= RouteDeflate::kRoomKept) {
    room = std::vector<std::uint8_t>();  // `{}` would keep its memory
  }
}

}  // namespace

RouteDeflate::RouteDeflate(const DeflateOptions& wanted) noexcept : options(wanted) {
  options.level = std::clamp(options.level, 1, 9);
  options.memory_level = std::clamp(options.memory_level, 1, 9);
  options.window_bits = std::clamp(options.window_bits, ws::kWindowBitsMin, ws::kWindowBitsMax);
}

ws::DeflateWish RouteDeflate::wish(bool may_drop) const noexcept {
  return {options.context_takeover && !may_drop, options.context_takeover, options.window_bits};
}

std::size_t RouteDeflate::bytes_of(const ws::DeflateTerms& terms) const noexcept {
  return (terms.server_keeps ? ws::deflater_bytes(terms.server_bits, options.memory_level) : 0) +
         (terms.client_keeps ? ws::inflater_bytes(terms.client_bits) : 0);
}

// Null: there is no memory.
ws::Deflater* PeerDeflate::deflater() {
  auto& own = terms_.server_keeps ? deflater_ : route_.deflaters[terms_.server_bits];
  if (own == nullptr) {
    own = ws::Deflater::make(terms_.server_bits, route_.options.level, route_.options.memory_level);
  }
  return own.get();
}

// The same. The streams that are shared expand the messages of every window.
ws::Inflater* PeerDeflate::inflater() {
  auto& own = terms_.client_keeps ? inflater_ : route_.inflater;
  if (own == nullptr) {
    const int bits = std::max<int>(terms_.client_bits, ws::kWindowBitsMin);
    own = ws::Inflater::make(terms_.client_keeps ? bits : ws::kWindowBitsMax);
  }
  return own.get();
}

Bytes PeerDeflate::pack(Bytes message) noexcept {
  try {
    trim(route_.packed, message.size());
    ws::Deflater* const stream = deflater();
    if (stream == nullptr) {
      return {};
    }
    const Bytes payload = stream->compress(message, route_.packed);
    if (terms_.server_keeps) {
      return payload;
    }
    stream->reset();
    return payload.size() < message.size() ? payload : Bytes();
  } catch (...) {
    end_pack(false);
    return {};
  }
}

// Later messages may not refer to one that the client does not get.
void PeerDeflate::end_pack(bool sent) noexcept {
  ws::Deflater* const stream = terms_.server_keeps ? deflater_.get() : route_.deflaters[terms_.server_bits].get();
  if (!sent && stream != nullptr) {
    stream->reset();
  }
}

PeerDeflate::Outcome PeerDeflate::expand(Bytes payload, const std::optional<ws::MaskKey>& mask, std::size_t most) {
  trim(route_.expanded, 0);
  size_ = 0;
  ws::Inflater* const stream = inflater();
  if (stream == nullptr) {
    return Outcome::no_memory;
  }
  stream->begin(most);
  if (!terms_.client_keeps) {
    stream->reset();
  }
  Outcome outcome = Outcome::ok;
  std::uint8_t clear[kUnmaskedAtOnce];
  for (std::size_t at = 0; at < payload.size() && outcome == Outcome::ok; at += kUnmaskedAtOnce) {
    Bytes piece = payload.subspan(at, std::min(kUnmaskedAtOnce, payload.size() - at));
    if (mask) {
      ws::copy_masked(clear, piece, *mask, at);
      piece = Bytes(clear, piece.size());
    }
    outcome = stream->take(piece, route_.expanded);
  }
  if (outcome == Outcome::ok) {
    outcome = stream->finish(route_.expanded);
  }
  size_ = stream->size();
  expanded_in_turn_ += size_ + payload.size();  // blocks that make nothing are work, too
  return outcome;
}

bool PeerDeflate::has_had_its_turn() noexcept {
  return expanded_in_turn_ >= kExpandedInTurn && std::exchange(expanded_in_turn_, 0) != 0;
}

}  // namespace weft::serve::web
