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

// AsyncQueue: a bounded queue of values between coroutines of one loop, first in first out.
// Owner: its user, who calls close() and waits until every task inside push() or pop() has ended before destruction.
// Affinity: the loop's thread.
// Cost: a frame for each push() and pop(). Each value resumes one waiting pop, each room one waiting push. Memory: that
// of std::deque.
// Invariants:
//   1. A value that push() took is popped once, in the order of taking. A push() that waits for room still has its
//      value:
//      when another push takes the room first, the waiting one loses a turn and not the value.
//   2. After close() push() takes nothing, pop() returns the values left and then `closed`, and no coroutine waits.
template <typename T>
class AsyncQueue {
  static_assert(std::is_nothrow_move_constructible_v<T>);

 public:
  explicit AsyncQueue(std::size_t capacity) : capacity_(capacity == 0 ? 1 : capacity) {}  // throws std::bad_alloc

  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  void close() noexcept {
    closed_ = true;
    room_.set();
    filled_.set();
  }

  // Errors: would_block (no room); closed. A failed call leaves `value` unchanged.
  Result<void> try_push(T&& value) {
    if (closed_) {
      return kClosed;
    }
    if (values_.size() >= capacity_) {
      return Errc::would_block;
    }
    values_.push_back(std::move(value));
    filled_.pulse_one();
    return {};
  }
  Result<T> try_pop() {
    if (values_.empty()) {
      return closed_ ? Result<T>(kClosed) : Result<T>(Errc::would_block);
    }
    Result<T> value(std::move(values_.front()));
    values_.pop_front();
    room_.pulse_one();
    return value;
  }

  // Waits for room. Errors: closed; kCancelled. An error destroys the value.
  Task<Result<void>> push(T value) {
    for (;;) {
      if (const bool cancelled = co_await is_cancelled(); cancelled) {
        co_return kCancelled;
      }
      // A refused value is still here. NOLINTNEXTLINE(bugprone-use-after-move)
      const Result<void> pushed = try_push(std::move(value));
      if (pushed || pushed.error() != Errc::would_block) {
        co_return pushed;
      }
      const Result<void> waited = co_await room_.wait();
      if (!waited) {
        if (values_.size() < capacity_) {
          room_.pulse_one();  // the room that this push was resumed for
        }
        co_return waited;
      }
    }
  }
  // Waits for a value. Errors: closed, if no value is left; kCancelled (the call took no value).
  Task<Result<T>> pop() {
    for (;;) {
      if (const bool cancelled = co_await is_cancelled(); cancelled) {
        co_return kCancelled;
      }
      Result<T> popped = try_pop();
      if (popped || popped.error() != Errc::would_block) {
        co_return popped;
      }
      const Result<void> waited = co_await filled_.wait();
      if (!waited) {
        if (!values_.empty()) {
          filled_.pulse_one();  // the value that this pop was resumed for
        }
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
