// SPDX-License-Identifier: MIT
// Coroutines in one thread. "by_hand" is the least that a task type can be: frames from malloc, the compiler's
// symmetric transfer, no cancellation, no time, no groups.
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <limits>
#include <utility>

#include "bench/micro/micro.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_scope.h"
#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"

#if __has_include(<boost/asio/awaitable.hpp>)
#define WEFT_RIVAL_ASIO
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

namespace {

constexpr int kCalls = 1000;
constexpr int kGroups = 100;
constexpr int kSleeps = 100;

void check(bool right) {
  if (!right) {
    std::abort();
  }
}

// --- weft: the benchmark turns a runner, as a loop does ---

using weft::rt::Task;

class Here {
 public:
  void run(Task<void> task) {
    check(static_cast<bool>(scope_.spawn(std::move(task))));
    while (runner_.tasks() != 0) {
      now_ = weft::sys::now();
      wheel_.advance(now_, std::numeric_limits<std::size_t>::max());
      runner_.turn();
    }
  }
  weft::rt::TaskScope& scope() { return scope_; }

 private:
  weft::Instant now_ = weft::sys::now();
  weft::rt::TimerWheel wheel_{now_};
  weft::rt::TaskRunner runner_{wheel_, now_, nullptr};
  weft::rt::TaskScope scope_{runner_};
};

[[gnu::noinline]] Task<int> weft_leaf(int value) { co_return value; }
Task<void> weft_calls(long& sum) {
  for (int i = 0; i < kCalls; ++i) {
    sum += co_await weft_leaf(i);
  }
}
Task<int> weft_nested(int depth) {
  if (depth == 0) {
    co_return 0;
  }
  const int below = co_await weft_nested(depth - 1);
  co_return below + 1;
}
Task<void> weft_nest(long& sum) { sum += co_await weft_nested(kCalls); }
Task<void> weft_groups(long& sum) {
  for (int i = 0; i < kGroups; ++i) {
    auto [a, b, c, d, e, f, g, h, j, k] =
        co_await weft::rt::when_all(weft_leaf(i), weft_leaf(1), weft_leaf(2), weft_leaf(3), weft_leaf(4), weft_leaf(5),
                                    weft_leaf(6), weft_leaf(7), weft_leaf(8), weft_leaf(9));
    sum += a + b + c + d + e + f + g + h + j + k;
  }
}
// In a loop with its descriptors, as the rival's sleeps are.
Task<void> weft_sleeps(benchmark::State& state, weft::rt::Loop& loop) {
  for (auto _ : state) {
    long sum = 0;
    for (int i = 0; i < kSleeps; ++i) {
      const weft::Result<void> slept = co_await weft::rt::sleep(weft::Duration::zero());
      sum += slept ? 1 : 0;
    }
    check(sum == kSleeps);
  }
  loop.stop();
}
void weft_sleeps_in_a_loop(benchmark::State& state) {
  const auto loop = std::move(weft::rt::Loop::make(nullptr)).value();
  weft::rt::TaskScope scope(loop->tasks());
  check(static_cast<bool>(scope.spawn(weft_sleeps(state, *loop))));
  (void)loop->run(nullptr, weft::sync::WaitMode::adaptive);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kSleeps);
}
Task<void> weft_spawned(long& sum) {
  ++sum;
  co_return;
}
Task<void> weft_spawns(Here& here, long& sum) {
  for (int i = 0; i < kCalls; ++i) {
    check(static_cast<bool>(here.scope().spawn(weft_spawned(sum))));
  }
  co_return;
}

// --- by hand ---

template <typename T>
class Plain {
 public:
  struct promise_type {
    T value{};
    std::coroutine_handle<> parent = std::noop_coroutine();

    Plain get_return_object() { return Plain(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Final {
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> self) noexcept {
        return self.promise().parent;
      }
      void await_resume() noexcept {}
    };
    Final final_suspend() noexcept { return {}; }
    void return_value(T result) { value = result; }
    void unhandled_exception() { std::terminate(); }
  };
  explicit Plain(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  Plain(Plain&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Plain& operator=(Plain&&) = delete;
  ~Plain() {
    if (frame_) {
      frame_.destroy();
    }
  }
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
    frame_.promise().parent = parent;
    return frame_;
  }
  T await_resume() { return frame_.promise().value; }
  void run() { frame_.resume(); }

 private:
  std::coroutine_handle<promise_type> frame_;
};

[[gnu::noinline]] Plain<int> plain_leaf(int value) { co_return value; }
Plain<int> plain_calls(long& sum) {
  for (int i = 0; i < kCalls; ++i) {
    sum += co_await plain_leaf(i);
  }
  co_return 0;
}
Plain<int> plain_nested(int depth) {
  if (depth == 0) {
    co_return 0;
  }
  const int below = co_await plain_nested(depth - 1);
  co_return below + 1;
}
Plain<int> plain_nest(long& sum) {
  sum += co_await plain_nested(kCalls);
  co_return 0;
}

// --- Boost.Asio ---

#ifdef WEFT_RIVAL_ASIO
namespace asio = boost::asio;
template <typename T>
using Awaitable = asio::awaitable<T>;

[[gnu::noinline]] Awaitable<int> asio_leaf(int value) { co_return value; }
Awaitable<void> asio_calls(long& sum) {
  for (int i = 0; i < kCalls; ++i) {
    sum += co_await asio_leaf(i);
  }
}
Awaitable<int> asio_nested(int depth) {
  if (depth == 0) {
    co_return 0;
  }
  const int below = co_await asio_nested(depth - 1);
  co_return below + 1;
}
Awaitable<void> asio_nest(long& sum) { sum += co_await asio_nested(kCalls); }
Awaitable<void> asio_groups(long& sum) {
  using namespace asio::experimental::awaitable_operators;
  for (int i = 0; i < kGroups; ++i) {
    auto [a, b, c, d, e, f, g, h, j, k] =
        co_await (asio_leaf(i) && asio_leaf(1) && asio_leaf(2) && asio_leaf(3) && asio_leaf(4) && asio_leaf(5) &&
                  asio_leaf(6) && asio_leaf(7) && asio_leaf(8) && asio_leaf(9));
    sum += a + b + c + d + e + f + g + h + j + k;
  }
}
Awaitable<void> asio_sleeps(long& sum) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int i = 0; i < kSleeps; ++i) {
    timer.expires_after(std::chrono::nanoseconds(0));
    co_await timer.async_wait(asio::use_awaitable);
    ++sum;
  }
}
Awaitable<void> asio_spawned(long& sum) {
  ++sum;
  co_return;
}
Awaitable<void> asio_spawns(long& sum) {
  const auto executor = co_await asio::this_coro::executor;
  for (int i = 0; i < kCalls; ++i) {
    asio::co_spawn(executor, asio_spawned(sum), asio::detached);
  }
}

template <typename Make>
bench::Body on_asio(Make make, long expected, int items) {
  return [=](benchmark::State& state) {
    asio::io_context context(1);
    for (auto _ : state) {
      long sum = 0;
      asio::co_spawn(context, make(sum), asio::detached);
      context.run();
      context.restart();
      check(sum == expected);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * items);
  };
}
#endif

template <typename Make>
bench::Body on_weft(Make make, long expected, int items) {
  return [=](benchmark::State& state) {
    Here here;
    for (auto _ : state) {
      long sum = 0;
      here.run(make(here, sum));
      check(sum == expected);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * items);
  };
}

template <typename Make>
bench::Body by_hand(Make make, long expected, int items) {
  return [=](benchmark::State& state) {
    for (auto _ : state) {
      long sum = 0;
      Plain<int> task = make(sum);
      task.run();
      check(sum == expected);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * items);
  };
}

constexpr long kCallSum = static_cast<long>(kCalls) * (kCalls - 1) / 2;
constexpr long kGroupSum = static_cast<long>(kGroups) * (kGroups - 1) / 2 + 45L * kGroups;

// One item of a row is a call, a sleep, a group of ten, or the start of a task.
[[maybe_unused]] const auto kRows = [] {
  auto calls = bench::row("Task_CallAndReturn")
                   .run("weft", on_weft([](Here& /*here*/, long& sum) { return weft_calls(sum); }, kCallSum, kCalls))
                   .run("by_hand", by_hand([](long& sum) { return plain_calls(sum); }, kCallSum, kCalls));
  auto nested = bench::row("Task_Nested1000")
                    .run("weft", on_weft([](Here& /*here*/, long& sum) { return weft_nest(sum); }, kCalls, kCalls))
                    .run("by_hand", by_hand([](long& sum) { return plain_nest(sum); }, kCalls, kCalls));
  auto groups =
      bench::row("Task_WhenAllOf10")
          .run("weft", on_weft([](Here& /*here*/, long& sum) { return weft_groups(sum); }, kGroupSum, kGroups));
  auto sleeps = bench::row("Task_Sleep0").run("weft", weft_sleeps_in_a_loop);
  auto spawns = bench::row("Task_Spawn")
                    .run("weft", on_weft([](Here& here, long& sum) { return weft_spawns(here, sum); }, kCalls, kCalls));
#ifdef WEFT_RIVAL_ASIO
  calls.run("asio", on_asio([](long& sum) { return asio_calls(sum); }, kCallSum, kCalls));
  nested.run("asio", on_asio([](long& sum) { return asio_nest(sum); }, kCalls, kCalls));
  groups.run("asio", on_asio([](long& sum) { return asio_groups(sum); }, kGroupSum, kGroups));
  sleeps.run("asio", on_asio([](long& sum) { return asio_sleeps(sum); }, kSleeps, kSleeps));
  spawns.run("asio", on_asio([](long& sum) { return asio_spawns(sum); }, kCalls, kCalls));
#endif
  return 0;
}();

}  // namespace
