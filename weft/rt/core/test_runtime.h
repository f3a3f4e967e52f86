// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <exception>
#include <memory>

#include "weft/rt/core/runtime.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::rt::test {

inline std::unique_ptr<Runtime> start_runtime(unsigned cores, RuntimeOptions options = {}) {
  options.cores = cores;
  auto made = Runtime::start(options);
  EXPECT_TRUE(made) << made.error().message();
  return std::move(made).value();
}

inline Instant in_a_minute() { return sys::now() + std::chrono::minutes(1); }

// A coroutine that starts at once and has no awaiter.
struct Started {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Started get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// The same, with a handle by which a test can destroy it while it waits.
struct Owned {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Owned get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

// Runs the function on that core and waits until it returned.
template <typename F>
void on_core(Runtime& runtime, unsigned core, F function) {
  Signal done;
  ASSERT_TRUE(runtime.post(core, [&] {
    function();
    done.give();
  }));
  ASSERT_TRUE(done.take());
}

// Fills the lanes from the calling thread to every core.
inline void fill_lanes(Runtime& runtime) {
  for (unsigned core = 0; core < runtime.size(); ++core) {
    for (int i = 0; i < 100 && runtime.post(core, [] {}); ++i) {
    }
  }
}

// Keeps a core busy, so that messages to it stay in its lanes.
class Blocked {
 public:
  Blocked(Runtime& runtime, unsigned core) {
    EXPECT_TRUE(runtime.post(core, [this] {
      entered_.give();
      EXPECT_TRUE(leave_.take());
      left_.give();
    }));
    EXPECT_TRUE(entered_.take());
  }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  ~Blocked() { release(); }
  void release() {  // idempotent
    if (!released_) {
      released_ = true;
      leave_.give();
      EXPECT_TRUE(left_.take());
    }
  }

 private:
  Signal entered_;
  Signal leave_;
  Signal left_;
  bool released_ = false;
};

// Live: counts its live objects.
struct Live {
  static inline std::atomic<int> alive{0};
  Live() { alive.fetch_add(1); }
  Live(const Live&) { alive.fetch_add(1); }
  Live(Live&&) noexcept { alive.fetch_add(1); }
  Live& operator=(const Live&) = default;
  Live& operator=(Live&&) = default;
  ~Live() { alive.fetch_sub(1); }
};

}  // namespace weft::rt::test
