// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <memory>
#include <thread>
#include <utility>

#include "weft/base/time.h"
#include "weft/rt/exec/inline_executor.h"
#include "weft/rt/exec/strand.h"
#include "weft/rt/exec/thread_pool.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/sys/clock.h"

namespace weft::rt::test {

// A deadline that passes only in a test that fails.
inline Instant in_a_long_time() { return deadline_after(sys::now(), std::chrono::seconds(60)); }

// A coroutine without an awaiter.
struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// An executor and the one below it, if any.
struct Made {
  std::unique_ptr<Executor> below;
  std::unique_ptr<Executor> executor;
};

// Keeps threads of an executor busy until release(). The destructor waits for the jobs that it released.
class Blocker {
 public:
  Blocker() = default;
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;
  ~Blocker() {
    while (inside_.load(std::memory_order_acquire) > 0) {
      std::this_thread::yield();
    }
  }

  // Executes `jobs` blocking jobs. Returns true once `at_once` of them run.
  [[nodiscard]] bool block(Executor& executor, int jobs = 1) { return block(executor, jobs, jobs); }
  [[nodiscard]] bool block(Executor& executor, int jobs, int at_once) {
    for (int i = 0; i < jobs; ++i) {
      if (!executor.execute([this] { run(); })) {
        return false;
      }
      ++blocked_;
    }
    for (int i = 0; i < at_once; ++i) {
      if (!begun_.take()) {
        return false;
      }
    }
    return true;
  }
  void release() { released_.give(std::exchange(blocked_, 0)); }

 private:
  void run() {
    inside_.fetch_add(1, std::memory_order_relaxed);
    begun_.give();
    (void)released_.take();
    inside_.fetch_sub(1, std::memory_order_release);
  }

  Signal begun_;
  Signal released_;
  std::atomic<int> inside_{0};
  int blocked_ = 0;
};

struct Kind {
  const char* name;
  Made (*make)(ExceptionHandler handler);
  bool has_threads;  // jobs run in other threads than the caller's
};

inline ThreadPoolOptions with(ExceptionHandler handler) {
  ThreadPoolOptions options;
  options.on_exception = std::move(handler);
  return options;
}

inline const Kind kKinds[] = {
    {"inline",
     [](ExceptionHandler handler) { return Made{nullptr, std::make_unique<InlineExecutor>(std::move(handler))}; },
     false},
    {"single_thread",
     [](ExceptionHandler handler) {
       return Made{nullptr, std::move(ThreadPool::make_single(with(std::move(handler)))).value()};
     },
     true},
    {"fixed_pool",
     [](ExceptionHandler handler) {
       return Made{nullptr, std::move(ThreadPool::make_fixed(3, with(std::move(handler)))).value()};
     },
     true},
    {"dynamic_pool",
     [](ExceptionHandler handler) {
       return Made{nullptr, std::move(ThreadPool::make_dynamic(1, 3, with(std::move(handler)))).value()};
     },
     true},
    {"strand_of_a_pool",
     [](ExceptionHandler handler) {
       Made made{std::move(ThreadPool::make_fixed(2)).value(), nullptr};
       made.executor = std::make_unique<Strand>(*made.below, Strand::kQueueDefault, std::move(handler));
       return made;
     },
     true},
    {"strand_of_an_inline_executor",
     [](ExceptionHandler handler) {
       Made made{std::make_unique<InlineExecutor>(), nullptr};
       made.executor = std::make_unique<Strand>(*made.below, Strand::kQueueDefault, std::move(handler));
       return made;
     },
     false},
};

}  // namespace weft::rt::test
