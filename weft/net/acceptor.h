// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/listener.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/event_fd.h"

namespace weft::net {

// Acceptor: takes the connections of one Listener in the turns of a loop.
// Owner: a shared_ptr of the binding socket or server. The owner's Handlers make an object of a connection, and count
// and report. Affinity: the loop's thread. make() may run on any thread. An Acceptor that is closed or never started
// may be destroyed on any thread.
// Cost: one system call a connection, and one call that finds no other.
// Invariants:
//   1. The acceptor takes at most kAcceptsPerTurn connections a turn.
//   2. When descriptors or memory run out, the acceptor watches nothing for kPause and retries. An exhausted process
//      spends two system calls on it in that time. If there is no memory for the pause's timer, it retries in
//      each turn. Until it has taken every connection that waits, the kernel holds more of them.
//   3. After close() no handler is called. A handler may call close(), and its owner may then drop the Acceptor.
//   4. With keep_spare(n) the acceptor holds n descriptors that it gives up, one for each connection, when there is no
//      other. Until it has them again it tries every kRefill.
class Acceptor final : private rt::Watcher, public std::enable_shared_from_this<Acceptor> {
 public:
  struct Handlers {                                             // none is empty
    std::function<void(std::unique_ptr<ByteStream>)> accepted;  // may throw std::bad_alloc
    std::function<void(const Error&)> failed;  // one connection: it had ended, or the listener's filter refused it
    std::function<void(const Error&)> paused;  // descriptors or memory ran out; the Acceptor tries again after kPause
  };
  static constexpr Duration kPause = std::chrono::milliseconds(100);
  static constexpr int kAcceptsPerTurn = 64;
  static constexpr Duration kRefill = std::chrono::milliseconds(10);

  [[nodiscard]] static std::shared_ptr<Acceptor> make(rt::Loop& loop, std::unique_ptr<Listener> listener,
                                                      Handlers handlers);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;
  ~Acceptor() { close(); }

  [[nodiscard]] const std::string& endpoint() const noexcept { return listener_->bound_endpoint(); }
  [[nodiscard]] int fd() const noexcept { return listener_->fd(); }  // -1 after close
  void keep_spare(std::size_t descriptors);                          // before start()
  void start();                                                      // does nothing after close
  void close() noexcept;                                             // idempotent; the endpoint is free afterwards
  void release() noexcept {  // close() for a socket that another process has, too: that one goes on accepting
    listener_->release();
    close();
  }
  [[nodiscard]] Result<sys::Fd> duplicate() const { return listener_->duplicate(); }  // for that process

 private:
  Acceptor(rt::Loop& loop, std::unique_ptr<Listener> listener, Handlers handlers)
      : loop_(loop), listener_(std::move(listener)), handlers_(std::move(handlers)) {}

  void handle_event(const sys::PollEvent& event) override;
  [[nodiscard]] Result<void> accept() noexcept;
  void pause(const Error& why);
  [[nodiscard]] bool give_up_spare() noexcept;
  void refill() noexcept;
  void refill_later() noexcept;

  rt::Loop& loop_;
  std::unique_ptr<Listener> listener_;
  Handlers handlers_;
  rt::Loop::WatchId watch_ = 0;
  rt::TimerId resume_timer_;
  bool holds_more_ = false;
  std::vector<sys::EventFd> spare_;
  std::size_t spare_max_ = 0;
  rt::TimerId refill_timer_;
};

}  // namespace weft::net
