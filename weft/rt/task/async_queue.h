// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <deque>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"

namespace weft::rt {

// AsyncQueue: values from coroutines of a loop to others of the same one, in order, bounded.
// Owner: its user; every task that waits for it has ended before it goes: close(). Affinity: the loop's thread.
// Cost: a frame for each push() and pop(); each push wakes all who wait for a value. Memory as std::deque.
// Invariants: 1. a value that push() took is popped once, in the order of taking: a coroutine that waits for room has
// given nothing yet, so that who comes between it and the room costs it a turn and nothing else. 2. after close()
// push() takes nothing, pop() gives what is there and then `closed`; nobody waits.
template <typename T>
class AsyncQueue {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  explicit AsyncQueue(std::size_t capacity) noexcept : capacity_(capacity == 0 ? 1 : capacity) {}

  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  void close() noexcept {
    closed_ = true;
    room_.set();
    filled_.set();
  }

  // would_block: no room; closed. The value is moved from only when taken.
  Result<void> try_push(T&& value) {
    if (closed_) {
      return kClosed;
    }
    if (values_.size() >= capacity_) {
      return Errc::would_block;
    }
    values_.push_back(std::move(value));
    filled_.pulse();
    return {};
  }
  Result<T> try_pop() {
    if (values_.empty()) {
      return closed_ ? Result<T>(kClosed) : Result<T>(Errc::would_block);
    }
    Result<T> value(std::move(values_.front()));
    values_.pop_front();
    room_.pulse();
    return value;
  }

  // Waits for room. Errors: closed; kCancelled. The value is lost then.
  Task<Result<void>> push(T value) {
    for (;;) {
      if (co_await is_cancelled()) {
        co_return kCancelled;
      }
      // What was refused is still here. NOLINTNEXTLINE(bugprone-use-after-move)
      const Result<void> pushed = try_push(std::move(value));
      if (pushed || pushed.error() != Errc::would_block) {
        co_return pushed;
      }
      const Result<void> waited = co_await room_.wait();
      if (!waited) {
        co_return waited;
      }
    }
  }
  // Waits for a value. Errors: closed, once there is none left; kCancelled: nothing was taken.
  Task<Result<T>> pop() {
    for (;;) {
      if (co_await is_cancelled()) {
        co_return kCancelled;
      }
      Result<T> popped = try_pop();
      if (popped || popped.error() != Errc::would_block) {
        co_return popped;
      }
      const Result<void> waited = co_await filled_.wait();
      if (!waited) {
        co_return waited.error();
      }
    }
  }

 private:
  static constexpr Error kClosed = Error(Errc::closed, "the queue is closed");

  std::size_t capacity_;
  std::deque<T> values_;
  AsyncEvent room_;
  AsyncEvent filled_;
  bool closed_ = false;
};

}  // namespace weft::rt
