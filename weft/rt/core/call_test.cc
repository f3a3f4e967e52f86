// SPDX-License-Identifier: MIT
#include "weft/rt/core/call.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_scope.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Blocked;
using test::in_a_minute;
using test::Live;
using test::on_core;
using test::Owned;
using test::Signal;
using test::start_runtime;
using test::Started;

TEST(Call, BringsTheResultBackToTheCallersCore) {
  const auto runtime = start_runtime(2);
  Signal done;
  auto caller = [&]() -> Started {
    auto owned = std::make_unique<int>(20);  // makes the closure and its result move-only
    auto add_one = [owned = std::move(owned)]() mutable {
      EXPECT_EQ(Core::current()->index(), 1u);
      *owned += 1;
      return std::move(owned);
    };
    auto calling = runtime->call(1, std::move(add_one));
    auto result = co_await calling;
    EXPECT_EQ(Core::current()->index(), 0u);
    EXPECT_EQ(**result, 21);
    bool ran = false;
    const Result<void> nothing = co_await runtime->call(1, [&ran] { ran = true; });
    EXPECT_TRUE(nothing);
    EXPECT_TRUE(ran);
    const Result<int> refused = co_await runtime->call(1, []() -> Result<int> { return Errc::unreachable; });
    EXPECT_EQ(refused.error(), Errc::unreachable) << "a Result comes as it is";
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  EXPECT_TRUE(done.take());
}

// Whether co_await takes the awaiter only by its name.
template <typename Awaiter>
constexpr bool kByName = requires(Awaiter& awaiter) { awaiter.operator co_await(); } &&
                         !requires(Awaiter&& awaiter) { std::move(awaiter).operator co_await(); };

TEST(Call, AClosureThatGcc12WouldDestroyTwiceIsNotAwaitedInOneStep) {
  auto make = [](Runtime& runtime, auto&& function) {
    using F = decltype(function);
    constexpr bool call = kByName<decltype(runtime.call(0, std::forward<F>(function)))>;
    static_assert(call == kByName<decltype(runtime.post_wait(0, std::forward<F>(function)))>);
    return std::bool_constant<call>();
  };
  auto owning = [text = std::string()] {};
  auto owning_task = [text = std::string()]() -> Task<int> { co_return 1; };
  auto plain = [&owning] { owning(); };
  std::function<void()> erased = plain;
  using detail::kClosuresEndTwice;
  static_assert(decltype(make(std::declval<Runtime&>(), std::move(owning)))() == kClosuresEndTwice);
  static_assert(decltype(make(std::declval<Runtime&>(), std::move(owning_task)))() == kClosuresEndTwice);
  static_assert(!decltype(make(std::declval<Runtime&>(), owning))(), "a copy of a closure with a name");
  static_assert(!decltype(make(std::declval<Runtime&>(), std::move(plain)))());
  static_assert(!decltype(make(std::declval<Runtime&>(), std::move(erased)))());
}

TEST(Call, ClosuresOfAnySizeArePassed) {
  const auto runtime = start_runtime(2);
  Signal done;
  auto caller = [&]() -> Started {
    std::array<int, 5000> numbers{};
    numbers[4999] = 7;
    const auto result = co_await runtime->call(1, [numbers] { return numbers[4999]; });
    EXPECT_EQ(result.value_or(0), 7);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  EXPECT_TRUE(done.take());
}

TEST(Call, EndsAtItsDeadlineAndTheLateResultIsDropped) {
  const auto runtime = start_runtime(2);
  Signal done;
  auto blocked = std::make_unique<Blocked>(*runtime, 1);
  std::atomic<bool> began{false};
  auto caller = [&]() -> Started {
    auto begin = [&, counted = Live()] {
      began = true;
      return 1;
    };
    auto calling = runtime->call(1, std::move(begin), sys::now() + std::chrono::milliseconds(1));
    const auto result = co_await calling;
    EXPECT_EQ(result.error(), Errc::timed_out);
    const auto past = co_await runtime->call(0, [] { return 1; }, Instant());
    EXPECT_EQ(past.error(), Errc::timed_out);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  ASSERT_TRUE(done.take());
  blocked.reset();
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_FALSE(began.load()) << "given up before it began";
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(Call, ADeadlineThatIsKeptLeavesNoTimer) {
  const auto runtime = start_runtime(2);
  Signal done;
  auto caller = [&]() -> Started {
    const auto result = co_await runtime->call(1, [] { return 1; }, in_a_minute());
    EXPECT_TRUE(result);
    EXPECT_EQ(Core::current()->loop().timers().size(), 0u);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  EXPECT_TRUE(done.take());
}

TEST(Call, IsCancelledByDroppingTheCoroutine) {
  const auto runtime = start_runtime(2);
  auto blocked = std::make_unique<Blocked>(*runtime, 1);
  std::atomic<bool> began{false};
  auto caller = [&]() -> Owned {
    auto calling = runtime->call(1, [&began, counted = Live()] { began = true; }, in_a_minute());
    (void)co_await calling;
    ADD_FAILURE() << "nobody goes on with it";
  };
  on_core(*runtime, 0, [&] {
    const Owned owned = caller();
    EXPECT_EQ(Live::alive.load(), 1);
    owned.handle.destroy();
    EXPECT_EQ(Core::current()->loop().timers().size(), 0u);
  });
  blocked.reset();
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_FALSE(began.load());
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(Call, ACallThatIsNotAwaitedDoesNothing) {
  const auto runtime = start_runtime(1);
  on_core(*runtime, 0, [&] { auto call = runtime->call(0, [counted = Live()] { FAIL(); }); });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(Call, IsMadeOnce) {
  const auto runtime = start_runtime(1);
  std::atomic<int> calls{0};
  auto future = spawn(runtime->core(0), [](Runtime* where, std::atomic<int>* count) -> Task<bool> {
    auto calling = where->call(0, [count] { count->fetch_add(1); });
    (void)co_await calling;
    const Result<void> again = co_await calling;
    co_return again.error() == Errc::invalid_state;
  }(runtime.get(), &calls));
  EXPECT_TRUE(future->get().value());
  EXPECT_EQ(calls.load(), 1);
}

TEST(Call, AnImpossibleCallIsRefusedWithoutWaiting) {
  const auto runtime = start_runtime(1);
  std::optional<Error> foreign;
  auto outside = [&]() -> Started { foreign = (co_await runtime->call(0, [] {})).error(); };
  outside();
  EXPECT_EQ(*foreign, Errc::invalid_state) << "a foreign thread cannot be resumed";
  on_core(*runtime, 0, [&] {
    std::optional<Error> error;
    auto caller = [&]() -> Started { error = (co_await runtime->call(9, [] {})).error(); };
    caller();
    ASSERT_TRUE(error) << "it did not suspend";
    EXPECT_EQ(*error, Errc::invalid_argument);
  });
}

TEST(Call, ADeadlineBoundsTheWaitForRoomToo) {
  RuntimeOptions options;
  options.lane_capacity = 1;
  const auto runtime = start_runtime(2, options);
  Signal done;
  auto caller = [&]() -> Started {
    auto calling = runtime->call(1, [counted = Live()] { FAIL(); }, sys::now() + std::chrono::milliseconds(1));
    EXPECT_EQ((co_await calling).error(), Errc::timed_out);
    done.give();
  };
  Blocked blocked(*runtime, 1);
  ASSERT_TRUE(runtime->post(0, [&] {
    EXPECT_TRUE(runtime->post(1, [] {}));
    caller();
  }));
  ASSERT_TRUE(done.take());
  blocked.release();
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(Call, ManyCallsAtOnceReturnThroughFullLanes) {
  constexpr int kCalls = 500;
  RuntimeOptions options;
  options.lane_capacity = 8;
  const auto runtime = start_runtime(2, options);
  Signal done;
  int back = 0;
  int sum = 0;
  auto caller = [&](int number) -> Started {
    sum += (co_await runtime->call(1, [number] { return number; })).value_or(0);
    if (++back == kCalls) {
      done.give();
    }
  };
  ASSERT_TRUE(runtime->post(0, [&] {
    for (int i = 0; i < kCalls; ++i) {
      caller(i);
    }
  }));
  EXPECT_TRUE(done.take());
  EXPECT_EQ(sum, kCalls * (kCalls - 1) / 2);
}

TEST(Call, KeepsItsPlaceAmongThePostsOfItsSenderBothWays) {
  const auto runtime = start_runtime(2);
  std::vector<int> there;
  std::vector<int> here;
  Signal done;
  auto caller = [&]() -> Started {
    EXPECT_TRUE(runtime->post(1, [&] { there.push_back(1); }));
    const auto result = co_await runtime->call(1, [&] {
      there.push_back(2);
      EXPECT_TRUE(runtime->post(0, [&] { here.push_back(1); }));
    });
    EXPECT_TRUE(result);
    here.push_back(2);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  ASSERT_TRUE(done.take());
  EXPECT_EQ(there, (std::vector{1, 2}));
  EXPECT_EQ(here, (std::vector{1, 2}));
}

TEST(PostWait, WaitsForRoomAndKeepsTheOrderOfSeveralWaiters) {
  constexpr int kWaiters = 100;
  RuntimeOptions options;
  options.lane_capacity = 4;
  const auto runtime = start_runtime(2, options);
  std::vector<int> seen;
  int resumed = 0;
  auto waiter = [&](int number) -> Started {
    EXPECT_TRUE(co_await runtime->post_wait(1, [&seen, number] { seen.push_back(number); }));
    EXPECT_EQ(Core::current()->index(), 0u);
    ++resumed;
  };
  Blocked blocked(*runtime, 1);
  on_core(*runtime, 0, [&] {
    for (int i = 0; i < kWaiters; ++i) {
      waiter(i);
    }
    EXPECT_EQ(resumed, 4) << "as many as there was room for";
    EXPECT_FALSE(runtime->post(1, [] {})) << "a post must not overtake them";
  });
  blocked.release();
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(resumed, kWaiters);
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(kWaiters));
  for (int i = 0; i < kWaiters; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  }
}

TEST(PostWait, WaitsForRoomInItsOwnLaneToo) {
  RuntimeOptions options;
  options.lane_capacity = 2;
  const auto runtime = start_runtime(1, options);
  int ran = 0;
  auto waiter = [&]() -> Started {
    for (int i = 0; i < 50; ++i) {
      EXPECT_TRUE(co_await runtime->post_wait(0, [&ran] { ++ran; }));
    }
  };
  ASSERT_TRUE(runtime->post(0, [&] { waiter(); }));
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(ran, 50);
}

TEST(PostWait, DroppingTheCoroutineTakesTheMessageBack) {
  RuntimeOptions options;
  options.lane_capacity = 1;
  const auto runtime = start_runtime(2, options);
  auto waiter = [&]() -> Owned {
    auto posting = runtime->post_wait(1, [counted = Live()] { FAIL(); });
    (void)co_await posting;
  };
  Blocked blocked(*runtime, 1);
  on_core(*runtime, 0, [&] {
    EXPECT_TRUE(runtime->post(1, [] {}));
    const Owned owned = waiter();
    EXPECT_FALSE(runtime->post(1, [] {}));
    owned.handle.destroy();
    EXPECT_EQ(Live::alive.load(), 0);
  });
  blocked.release();
  EXPECT_TRUE(runtime->stop(in_a_minute())) << "it is not waited for";
}

// --- tasks, which the core's loop turns and cancels ---

Task<void> call_until_cancelled(Runtime& runtime, std::vector<Error>& errors) {
  auto calling = runtime.call(1, [counted = Live()] {}, in_a_minute());
  const auto called = co_await calling;
  errors.push_back(called ? Error() : called.error());
  const auto again = co_await runtime.call(1, [] {});
  errors.push_back(again ? Error() : again.error());
}
Task<void> post_until_cancelled(Runtime& runtime, std::vector<Error>& errors) {
  auto posting = runtime.post_wait(1, [counted = Live()] { FAIL(); });
  const auto posted = co_await posting;
  errors.push_back(posted ? Error() : posted.error());
}

TEST(CallOfTask, ReturnsToTheTask) {
  const auto runtime = start_runtime(2);
  const auto sum = [&]() -> Task<int> {
    int total = 0;
    for (int i = 0; i < 100; ++i) {
      total += (co_await runtime->call(1, [i] { return i; })).value_or(-1000);
      EXPECT_TRUE(co_await runtime->post_wait(1, [] {}));
      EXPECT_EQ(Core::current()->index(), 0u);
    }
    co_return total;
  };
  auto future = spawn(runtime->core(0).loop(), sum());
  EXPECT_EQ(future.get().value_or(0), 4950);
}

TEST(CallOfTask, IsCutShortWhenTheTaskIsCancelled) {
  RuntimeOptions options;
  options.lane_capacity = 1;
  const auto runtime = start_runtime(2, options);
  std::vector<Error> errors;
  std::stop_source stop;
  Blocked blocked(*runtime, 1);
  auto first = spawn(runtime->core(0).loop(), call_until_cancelled(*runtime, errors), stop.get_token());
  auto second = spawn(runtime->core(0).loop(), post_until_cancelled(*runtime, errors), stop.get_token());
  on_core(*runtime, 0, [] {});
  stop.request_stop();
  (void)first.get();
  (void)second.get();
  blocked.release();
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  ASSERT_EQ(errors.size(), 3u);
  for (const Error& error : errors) {
    EXPECT_EQ(error, Errc::cancelled);
  }
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(CallOfTask, AStopThatCannotWaitCancelsTasksToo) {
  auto runtime = start_runtime(2);
  std::vector<Error> errors;
  auto blocked = std::make_unique<Blocked>(*runtime, 1);
  auto future = spawn(runtime->core(0).loop(), call_until_cancelled(*runtime, errors));
  on_core(*runtime, 0, [] {});
  EXPECT_EQ(runtime->stop(sys::now()).error(), Errc::timed_out);
  (void)future.get();
  EXPECT_EQ(errors.size(), 2u);
  blocked.reset();
  runtime.reset();
  EXPECT_EQ(Live::alive.load(), 0);
}

// --- defects of the published design ---

TEST(CallRegression, ACoreMayCallItself) {
  const auto runtime = start_runtime(1);
  Signal done;
  auto caller = [&]() -> Started {
    const auto result = co_await runtime->call(0, [] { return Core::current()->index(); });
    EXPECT_EQ(result.value_or(9), 0u);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  EXPECT_TRUE(done.take());
}

TEST(CallRegression, AnExceptionOfTheFunctionIsAnError) {
  const auto runtime = start_runtime(2);
  Signal done;
  auto caller = [&]() -> Started {
    const auto result = co_await runtime->call(1, []() -> int { throw std::runtime_error("of the function"); });
    EXPECT_EQ(result.error(), Errc::job_threw);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  EXPECT_TRUE(done.take());
}

TEST(Call, TakesResultsThatAreConstantOrCannotBeAssigned) {
  struct Fixed {
    const int value;
  };
  const auto runtime = start_runtime(2);
  Signal done;
  auto caller = [&]() -> Started {
    const auto fixed = co_await runtime->call(1, [] { return Fixed{7}; });
    EXPECT_EQ(fixed.value().value, 7);
    const auto text = co_await runtime->call(1, []() -> const std::string { return "constant"; });
    EXPECT_EQ(text.value(), "constant");
    const auto none = co_await runtime->call(1, []() -> Fixed { throw std::runtime_error("of the function"); });
    EXPECT_EQ(none.error(), Errc::job_threw);
    done.give();
  };
  ASSERT_TRUE(runtime->post(0, [&] { caller(); }));
  EXPECT_TRUE(done.take());
}

TEST(CallRegression, TheSecondWaiterIsNotLost) {
  RuntimeOptions options;
  options.lane_capacity = 1;
  const auto runtime = start_runtime(2, options);
  int resumed = 0;
  std::atomic<int> ran{0};
  auto waiter = [&]() -> Started {
    EXPECT_TRUE(co_await runtime->post_wait(1, [&ran] { ran.fetch_add(1); }));
    ++resumed;
  };
  Blocked blocked(*runtime, 1);
  on_core(*runtime, 0, [&] {
    EXPECT_TRUE(runtime->post(1, [&] { ran.fetch_add(1); }));
    waiter();
    waiter();
    EXPECT_EQ(resumed, 0);
  });
  blocked.release();
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(resumed, 2);
  EXPECT_EQ(ran.load(), 3);
}

// In the published design, a post took the room that a waiter had been woken for, and the waiter's message vanished.
TEST(CallRegression, APostDoesNotTakeTheRoomThatAWaiterWaitsFor) {
  constexpr int kEach = 300;
  RuntimeOptions options;
  options.lane_capacity = 2;
  const auto runtime = start_runtime(2, options);
  std::atomic<int> ran{0};
  std::atomic<int> posted{0};
  std::atomic<int> ended{0};
  auto waiter = [&]() -> Started {
    for (int i = 0; i < kEach; ++i) {
      EXPECT_TRUE(co_await runtime->post_wait(1, [&ran] { ran.fetch_add(1); }));
      posted.fetch_add(1);
      if (runtime->post(1, [&ran] { ran.fetch_add(1); })) {
        posted.fetch_add(1);
      }
    }
    ended.fetch_add(1);
  };
  ASSERT_TRUE(runtime->post(0, [&] {
    waiter();
    waiter();
  }));
  while (ended.load() != 2) {  // a stop does not wait for a coroutine that is about to resume
    std::this_thread::yield();
  }
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_GE(posted.load(), 2 * kEach);
  EXPECT_EQ(ran.load(), posted.load());
}

TEST(CallRegression, StopEndsEveryCallAndNoCallerHangs) {
  const auto runtime = start_runtime(3);
  std::atomic<int> ended{0};
  std::atomic<int> succeeded{0};
  constexpr int kCalls = 100;
  auto caller = [&](unsigned target) -> Started {
    auto calling = runtime->call(target, [counted = Live()] { return 1; });
    const auto result = co_await calling;
    succeeded.fetch_add(result ? 1 : 0);
    ended.fetch_add(1);
  };
  on_core(*runtime, 0, [&] {
    for (int i = 0; i < kCalls; ++i) {
      caller(1 + static_cast<unsigned>(i % 2));
    }
  });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(ended.load(), kCalls);
  EXPECT_EQ(succeeded.load(), kCalls) << "what was called before the stop is answered";
  EXPECT_EQ(Live::alive.load(), 0);
}

TEST(CallRegression, CallsAndWaitersThatAStopCutsOffGetAnErrorAndLeakNothing) {
  RuntimeOptions options;
  options.lane_capacity = 64;
  auto runtime = start_runtime(2, options);
  std::vector<Error> errors;
  auto caller = [&]() -> Started {
    auto calling = runtime->call(1, [counted = Live()] {});
    const auto result = co_await calling;
    errors.push_back(result ? Error() : result.error());
    // Later calls and posts of this coroutine are refused at once.
    errors.push_back((co_await runtime->call(1, [] {})).error());
    errors.push_back((co_await runtime->post_wait(1, [] {})).error());
  };
  auto waiter = [&]() -> Started {
    auto posting = runtime->post_wait(1, [counted = Live()] {});
    const auto result = co_await posting;
    errors.push_back(result ? Error() : result.error());
  };
  auto blocked = std::make_unique<Blocked>(*runtime, 1);
  on_core(*runtime, 0, [&] {
    caller();
    while (runtime->post(1, [] {})) {
    }
    waiter();
  });
  EXPECT_EQ(runtime->stop(sys::now()).error(), Errc::timed_out);
  blocked.reset();
  EXPECT_TRUE(runtime->stop(in_a_minute()));
  ASSERT_EQ(errors.size(), 4u);
  for (const Error& error : errors) {
    EXPECT_EQ(error, Errc::closed);
  }
  runtime.reset();
  EXPECT_EQ(Live::alive.load(), 0);
}

struct ThrowsInItsCopy {
  static inline std::atomic<int> alive{0};
  ThrowsInItsCopy() = default;
  ThrowsInItsCopy(const ThrowsInItsCopy& /*other*/) { throw std::runtime_error("a copy"); }
  int operator()() const { return room[0]; }
  char room[64 * 1024] = {};
};

Task<int> call_with_a_copy_that_throws(Runtime& runtime, const ThrowsInItsCopy& function) {
  int caught = 0;
  for (int i = 0; i < 10; ++i) {
    const auto before = mem::pool_allocate(sizeof(function) + 1024);
    mem::pool_deallocate(before);
    try {
      auto call = runtime.call(0, function);
      (void)call;
    } catch (const std::runtime_error&) {
      ++caught;
    }
    void* const after = mem::pool_allocate(sizeof(function) + 1024);
    EXPECT_EQ(after, before) << "the block went back";
    mem::pool_deallocate(after);
  }
  co_return caught;
}

TEST(Call, GivesItsBlockBackWhenTheCopyOfTheFunctionThrows) {
  const auto runtime = test::start_runtime(1);
  const auto function = std::make_unique<ThrowsInItsCopy>();
  EXPECT_EQ(spawn(runtime->core(0), call_with_a_copy_that_throws(*runtime, *function)).value().get().value(), 10);
}

}  // namespace
}  // namespace weft::rt
