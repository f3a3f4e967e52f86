// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "weft/net/listener.h"
#include "weft/rt/loop/loop.h"

namespace weft::msg {

class SocketCore;

// Acceptor: a bound endpoint: takes connections and makes connections of them.
// Owner: the socket's table. Affinity: the I/O thread, but for the constructor.
// Invariant: when descriptors or memory run out it pauses and tries again after kPause, instead of spinning.
class Acceptor final : public rt::Watcher, public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(SocketCore& core, rt::Loop& loop, std::unique_ptr<net::Listener> listener);
  ~Acceptor() = default;

  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }
  void start();
  void close();  // idempotent; the endpoint is free afterwards
  void handle_event(const sys::PollEvent& event) override;

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr int kAcceptsPerTurn = 64;

  void pause();
  void resume();

  SocketCore& core_;
  rt::Loop& loop_;
  std::unique_ptr<net::Listener> listener_;
  std::string endpoint_;
  rt::Loop::WatchId watch_ = 0;
  rt::TimerId resume_timer_;
};

}  // namespace weft::msg
