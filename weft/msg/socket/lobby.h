// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/list.h"
#include "weft/base/time.h"
#include "weft/msg/connection/connection_common.h"
#include "weft/msg/socket/accept_bounds.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/fork.h"

namespace weft::msg {

// Lobby: the accepted peers of one endpoint that have not sent a byte yet. A peer may wait for the opening of our
// greeting before it speaks, so the lobby writes that at once. It hands a peer over with the peer's first byte, with
// its end, or when the peer is late.
// Owner: the bound endpoint. Affinity: the loop's thread. After close, and before the first entry, any thread may
// destroy it.
// Cost: about 200 bytes for each peer. Entering and leaving is O(1), with one call of the poller each.
// Invariants:
// 1. The peers are in the order in which they came, so the first is the first to be late. One timer serves them all.
// 2. A turn of the loop hands over at most kLateAtOnce late peers.
// 3. After close() no peer is handed over. close() in a forked child only frees memory and the child's descriptors: the
//    loop is the parent's.
class Lobby {
 public:
  static constexpr int kLateAtOnce = 64;

  struct Pending {
    Accepted peer;
    AcceptBounds::Place place;
  };
  // `handle` may throw std::bad_alloc: then the lobby calls `lost`, and the peer's stream is closed.
  struct Handlers {  // none is empty
    std::function<void(Pending&&)> handle;
    std::function<void()> lost;
  };

  // `patience`: from the arrival until a peer is late; 0: no peer is.
  Lobby(rt::Loop& loop, std::vector<std::uint8_t> opening, Duration patience, Handlers handlers)
      : loop_(loop), opening_(std::move(opening)), patience_(patience), handlers_(std::move(handlers)) {}
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;
  ~Lobby() { close(); }

  // Throws std::bad_alloc, with the stream closed.
  void enter(std::unique_ptr<net::ByteStream> stream, AcceptBounds::Place place);
  void close() noexcept;  // closes the streams; idempotent
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Entry final : rt::Watcher, ListHook {
    Entry(Lobby& of, Pending&& peer) noexcept : lobby(of), pending(std::move(peer)) {}
    void handle_event(const sys::PollEvent& /*event*/) override { lobby.leave(*this); }
    Lobby& lobby;
    Pending pending;
    rt::Loop::WatchId watch = 0;
  };

  [[nodiscard]] Pending take(Entry& entry) noexcept;
  void leave(Entry& entry) noexcept;
  [[nodiscard]] bool await_late() noexcept;
  void handle_late() noexcept;

  rt::Loop& loop_;
  const std::vector<std::uint8_t> opening_;
  const Duration patience_;
  const Handlers handlers_;
  List<Entry> entries_;
  std::size_t size_ = 0;
  rt::TimerId late_timer_;
  const sys::Birth birth_;
};

}  // namespace weft::msg
