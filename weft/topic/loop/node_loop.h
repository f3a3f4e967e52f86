// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/loop/loop.h"
#include "weft/sys/event_fd.h"

namespace weft::topic {

// NodeLoop: the loop of a handle, the program's or its own, with the work that any thread requests there.
// Owner: a node. Affinity: any thread, except where a line names the loop. Cost: request() is an atomic operation, and
// a system call for the first request of a turn from another thread; it needs no memory.
// Invariants:
//   1. A job runs while the owner lives, and not after close().
//   2. A request is taken in a turn after it.
class NodeLoop final : rt::Watcher {
 public:
  // Work: the steps of the loop that any thread requests. The last two wait for their times.
  enum Work : unsigned { kReadIn = 1, kReadOut = 2, kScouts = 4, kExchange = 8, kRepair = 16, kResend = 32 };

  // `programs` is null for a loop of its own.
  explicit NodeLoop(rt::Loop* programs) noexcept : loop_(programs) {}
  NodeLoop(const NodeLoop&) = delete;
  NodeLoop& operator=(const NodeLoop&) = delete;
  ~NodeLoop() = default;

  // Once. `turn` takes the requests, in the loop. Errors: those of Loop::make() and EventFd::make().
  [[nodiscard]] Result<void> make(std::weak_ptr<void> owner, std::function<void()> turn);
  // The thread of the own loop. Errors: those of Loop::start().
  [[nodiscard]] Result<void> start() { return own_loop_ == nullptr ? Result<void>() : own_loop_->start(nullptr); }
  bool close() noexcept { return !closed_.exchange(true, std::memory_order_acq_rel); }  // returns whether it was open
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  void stop() noexcept;       // waits for the end of the own loop's thread
  void end_turns() noexcept;  // the loop's thread, or after stop()

  // The rest after make().
  [[nodiscard]] bool is_own() const noexcept { return own_loop_ != nullptr; }
  [[nodiscard]] rt::Loop& loop() noexcept { return *loop_; }
  [[nodiscard]] const std::weak_ptr<void>& owner() const noexcept { return owner_; }  // for functions of other threads
  [[nodiscard]] bool made() const noexcept { return loop_ != nullptr; }

  // Calls the function in the loop. A post of the loop's own thread costs no system call. Throws std::bad_alloc.
  template <typename Function>
  void post(Function function) {
    loop_->post([this, weak = owner_, function = std::move(function)]() mutable {
      if (const auto owner = weak.lock(); owner != nullptr && !closed()) {
        function();
      }
    });
  }
  void request(unsigned work) noexcept;
  [[nodiscard]] unsigned take(unsigned kept) noexcept { return work_.fetch_and(kept); }
  void take_back(unsigned work) noexcept { work_.fetch_and(~work); }
  [[nodiscard]] unsigned requested() const noexcept { return work_.load(); }
  void turn_again() noexcept { event_->signal(); }

 private:
  void handle_event(const sys::PollEvent& event) override;

  std::unique_ptr<rt::Loop> own_loop_;
  rt::Loop* loop_;
  std::weak_ptr<void> owner_;
  std::function<void()> turn_;
  std::optional<sys::EventFd> event_;
  rt::Loop::WatchId watch_ = 0;
  std::atomic<unsigned> work_{0};
  std::atomic<bool> closed_{false};
};

}  // namespace weft::topic
