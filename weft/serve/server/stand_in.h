// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/listener.h"
#include "weft/rt/loop/loop.h"

namespace weft::serve {

// StandIn: accepts the connections of a listener while the core that has its acceptor does not return from a turn.
// Owner: the listener's port on another core; each other core has one. Affinity: that core's thread.
// Cost: a descriptor. For connections that come, a wake-up and a timer of one core that waits; with io_uring of each.
// Without connections no wake-up.
// Invariants:
//   1. It accepts nothing before the other core's turn has lasted for kPatience.
//   2. After look() it looks every kPatience while that turn lasts. A connection wakes one core, which may not return
//      either: so the stall watch calls look() on each.
class StandIn final : private rt::Watcher {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(100);
  static constexpr int kAcceptsPerLook = 64;

  // `accepted` may throw std::bad_alloc: the connection is closed. `failed`: for a connection that could not be taken.
  StandIn(rt::Loop& loop, std::shared_ptr<const rt::Activity> acceptor, std::unique_ptr<net::Listener> listener,
          std::function<void(std::unique_ptr<net::ByteStream>)> accepted, std::function<void()> failed) noexcept;
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  ~StandIn() { close(); }

  [[nodiscard]] Result<void> start();  // the errors of Loop::watch()
  void look();                         // for connections that wait
  void close() noexcept;               // idempotent

 private:
  void handle_event(const sys::PollEvent& event) override;
  void look_later();
  void accept();

  rt::Loop& loop_;
  const std::shared_ptr<const rt::Activity> acceptor_;
  const std::unique_ptr<net::Listener> listener_;
  const std::function<void(std::unique_ptr<net::ByteStream>)> accepted_;
  const std::function<void()> failed_;
  rt::Loop::WatchId watch_ = 0;
  rt::TimerId timer_;
};

}  // namespace weft::serve
