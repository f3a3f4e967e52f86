// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "weft/net/listener.h"
#include "weft/rt/loop/loop.h"
#include "weft/serve/metrics/counters.h"

namespace weft::serve {

// Acceptor: takes the connections of one listening socket. Owner: its core's part of a server. Affinity: that core.
// Invariants: 1. when descriptors or memory run out it stops listening to events and tries again every kPause, so that
// an exhausted process spends nothing on it and goes on within kPause. 2. it takes at most kAcceptsPerTurn connections
// a turn.
class Acceptor final : private rt::Watcher {
 public:
  using Place = std::function<void(std::unique_ptr<net::Stream>)>;
  static constexpr Duration kPause = std::chrono::milliseconds(100);

  Acceptor(rt::Loop& loop, std::unique_ptr<net::Listener> listener, CoreCounters& counters, Place place)
      : loop_(loop), listener_(std::move(listener)), counters_(counters), place_(std::move(place)) {}
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() { close(); }

  void start();
  void close() noexcept;  // idempotent; the endpoint is free afterwards

 private:
  static constexpr int kAcceptsPerTurn = 64;

  void handle_event(const sys::PollEvent& event) override;
  void pause();

  rt::Loop& loop_;
  std::unique_ptr<net::Listener> listener_;
  CoreCounters& counters_;
  Place place_;
  rt::Loop::WatchId watch_ = 0;
  rt::TimerId timer_;
};

}  // namespace weft::serve
