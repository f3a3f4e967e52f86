// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "weft/rt/task/task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include <gtest/gtest.h>

namespace weft::rt::test {

// HandTurned: runs coroutines in this thread and in a time that the test makes, so that no test waits for the clock.
class HandTurned {
 public:
  HandTurned() = default;
  HandTurned(const HandTurned&) = delete;
  HandTurned& operator=(const HandTurned&) = delete;
  ~HandTurned() { EXPECT_EQ(runner_.tasks(), 0u) << "a test leaves tasks behind"; }

  TaskRunner& runner() noexcept { return runner_; }
  TaskScope& scope() noexcept { return scope_; }
  TimerWheel& wheel() noexcept { return wheel_; }
  [[nodiscard]] Instant now() const noexcept { return now_; }

  void start(Task<void> task) { ASSERT_TRUE(scope_.spawn(std::move(task))); }
  // Turns until no coroutine is ready and no timer due.
  void turn() {
    do {
      wheel_.advance(now_, std::numeric_limits<std::size_t>::max());
      runner_.turn();
    } while (runner_.has_ready() || wheel_.next_deadline() <= now_);
  }
  // Advances in steps of a tick, so that the timer that is due first resumes its coroutine first.
  void pass(Duration time) {
    const Instant end = now_ + time;
    for (turn(); now_ < end; turn()) {
      now_ = std::min(end, now_ + wheel_.tick());
    }
  }
  // The task's result; none: the task still waits after an hour.
  template <typename T>
  auto run(Task<T> task) {
    using Kept = std::conditional_t<std::is_void_v<T>, std::monostate, T>;
    auto result = std::make_shared<std::optional<Kept>>();
    start(keep(std::move(task), result));
    for (int i = 0; !*result && i < 3600 && runner_.tasks() != 0; ++i) {
      turn();
      now_ += std::chrono::seconds(1);
    }
    turn();  // lets the task's end run
    return std::move(*result);
  }

 private:
  template <typename T, typename Kept>
  static Task<void> keep(Task<T> task, std::shared_ptr<std::optional<Kept>> result) {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
      result->emplace();
    } else {
      result->emplace(co_await std::move(task));
    }
  }

  Instant now_ = Instant(std::chrono::hours(1));
  TimerWheel wheel_{now_};
  TaskRunner runner_{wheel_, now_, nullptr};
  TaskScope scope_{runner_};
};

// Living: counts its live objects.
class Living {
 public:
  explicit Living(int& count) noexcept : count_(&count) { ++*count_; }
  Living(Living&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Living& operator=(Living&&) = delete;
  ~Living() {
    if (count_ != nullptr) {
      --*count_;
    }
  }

 private:
  int* count_;
};

}  // namespace weft::rt::test
