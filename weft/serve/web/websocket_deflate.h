// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/net/ws/deflate.h"
#include "weft/net/ws/deflate_terms.h"
#include "weft/net/ws/frame.h"

namespace weft::serve::web {

// How a route compresses messages, for the clients that offer permessage-deflate (RFC 7692).
struct DeflateOptions {
  int level = 1;                  // of zlib: 1 is the fastest, 9 makes the smallest messages
  std::size_t message_min = 256;  // bytes; smaller messages are sent as they are
  // Whether messages refer to earlier ones of their connection: smaller, and up to 340 KB of memory for each
  // connection, which count as memory of the server. Without that memory, and towards a client that does not want it,
  // they refer to none. The server's messages refer to none either if the session may drop queued frames (drop_oldest,
  // conflate).
  bool context_takeover = false;
  int window_bits = 15;  // of each window, 9 to 15; that of a client which offers no bound has 15
  int memory_level = 8;  // of zlib, 1 to 9
};

// RouteDeflate: the streams of zlib and the room that the connections of a route on one core share.
// Owner: a WebSocketBase. Affinity: its core. Cost: nothing before the first compressed message; then 0.3 MB, or 2 MB
// if clients want windows of every size.
struct RouteDeflate {
  static constexpr std::size_t kRoomKept = 64 * 1024;  // bytes of each room that stay for the next message

  DeflateOptions options;
  std::array<std::unique_ptr<net::ws::Deflater>, net::ws::kWindowBitsMax + 1> deflaters{};  // by the bits of the window
  std::unique_ptr<net::ws::Inflater> inflater{};
  std::vector<std::uint8_t> packed{};
  std::vector<std::uint8_t> expanded{};

  explicit RouteDeflate(const DeflateOptions& wanted) noexcept;
  [[nodiscard]] net::ws::DeflateWish wish(bool may_drop) const noexcept;
  // The bytes that a connection with these terms keeps.
  [[nodiscard]] std::size_t bytes_of(const net::ws::DeflateTerms& terms) const noexcept;
};

// PeerDeflate: permessage-deflate of one connection: its terms, and its own streams if messages refer to earlier ones.
// Owner: a WebSocketBase. Affinity: its core.
// Invariants: (1) No more than the bound of a message, and a byte, is made of a client's message.
class PeerDeflate {
 public:
  using Outcome = net::ws::Inflater::Outcome;
  static constexpr std::size_t kExpandedInTurn = 256 * 1024;  // bytes; then the session's next turn comes first

  PeerDeflate(RouteDeflate& route, const net::ws::DeflateTerms& terms, std::size_t counted) noexcept
      : route_(route), terms_(terms), counted_(counted) {}

  [[nodiscard]] bool packs(std::size_t size) const noexcept { return size != 0 && size >= route_.options.message_min; }
  // The payload of the compressed message, valid until the next call. Empty: it is sent as it is, since it would not
  // get smaller, or there is no memory. end_pack() follows.
  [[nodiscard]] Bytes pack(Bytes message) noexcept;
  void end_pack(bool sent) noexcept;

  // Expands a message of at most `most` bytes into expanded().
  [[nodiscard]] Outcome expand(Bytes payload, const std::optional<net::ws::MaskKey>& mask, std::size_t most);
  [[nodiscard]] Bytes expanded() const noexcept { return Bytes(route_.expanded).first(size_); }
  // Whether kExpandedInTurn bytes have been made since this last returned true.
  [[nodiscard]] bool has_had_its_turn() noexcept;

  [[nodiscard]] std::size_t counted() const noexcept { return counted_; }  // bytes of the server's memory

 private:
  [[nodiscard]] net::ws::Deflater* deflater();
  [[nodiscard]] net::ws::Inflater* inflater();

  RouteDeflate& route_;
  const net::ws::DeflateTerms terms_;
  const std::size_t counted_;
  std::size_t size_ = 0;  // of expanded()
  std::size_t expanded_in_turn_ = 0;
  std::unique_ptr<net::ws::Deflater> deflater_;  // if this end's messages refer to earlier ones
  std::unique_ptr<net::ws::Inflater> inflater_;  // if the client's do
};

}  // namespace weft::serve::web
