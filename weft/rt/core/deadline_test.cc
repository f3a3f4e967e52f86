// SPDX-License-Identifier: MIT
// Every call of sync and rt that takes a time, with the least, the greatest, a negative time and zero.
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include "weft/rt/loop/interval_timers.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/rt/task/test_tasks.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sync/wait_queue.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;

// A call that waits, and the end of the wait.
struct Waiting {
  std::function<Errc(Instant deadline)> wait;
  std::function<void()> give;
};
struct Row {
  const char* name;
  Waiting (*make)();
};

using Queue = sync::WaitQueue<int>;
struct Ends {
  std::unique_ptr<Queue> queue = std::move(Queue::make(1, 1)).value();
  Queue::Producer producer = std::move(queue->producer()).value();
};

template <typename T>
Errc code(const Result<T>& result) {
  return result ? Errc::ok : result.error().code();
}

// An executor with a job that runs until release().
struct BusyExecutor {
  explicit BusyExecutor(const test::Kind& kind) : made(kind.make({})) {
    runner = std::thread([this] {  // an inline executor runs the job in this thread
      EXPECT_TRUE(made.executor->execute([this] {
        begun.give();
        EXPECT_TRUE(released.take());
      }));
    });
    EXPECT_TRUE(begun.take());
  }
  ~BusyExecutor() { runner.join(); }
  test::Signal begun;
  test::Signal released;
  test::Made made;
  std::thread runner;
};

Waiting stop_of(std::size_t kind) {
  auto busy = std::make_shared<BusyExecutor>(test::kKinds[kind]);
  return {[busy](Instant deadline) { return code(busy->made.executor->stop(StopMode::drain, deadline)); },
          [busy] { busy->released.give(); }};
}

struct BusyFuture {
  test::Signal released;
  std::unique_ptr<ThreadPool> pool = std::move(ThreadPool::make_single()).value();
  Future<void> future = pool->submit([this] { EXPECT_TRUE(released.take()); });
};

const Row kRows[] = {
    {"WaitQueue::pop_until",
     [] {
       auto ends = std::make_shared<Ends>();
       return Waiting{[ends](Instant deadline) { return code(ends->queue->pop_until(deadline)); },
                      [ends] { EXPECT_TRUE(ends->producer.try_push(1)); }};
     }},
    {"WaitQueue::pop_batch_until",
     [] {
       auto ends = std::make_shared<Ends>();
       return Waiting{[ends](Instant deadline) {
                        std::array<int, 2> values{};
                        return code(ends->queue->pop_batch_until(values, deadline));
                      },
                      [ends] { EXPECT_TRUE(ends->producer.try_push(1)); }};
     }},
    {"WaitQueue::Producer::push_until",
     [] {
       auto ends = std::make_shared<Ends>();
       EXPECT_TRUE(ends->producer.try_push(1));
       return Waiting{[ends](Instant deadline) { return code(ends->producer.push_until(2, deadline)); },
                      [ends] { EXPECT_TRUE(ends->queue->try_pop()); }};
     }},
    {"Future::get_until",
     [] {
       auto busy = std::make_shared<BusyFuture>();
       return Waiting{[busy](Instant deadline) { return code(busy->future.get_until(deadline)); },
                      [busy] { busy->released.give(); }};
     }},
    {"Future::wait_until",
     [] {
       auto busy = std::make_shared<BusyFuture>();
       return Waiting{
           [busy](Instant deadline) { return busy->future.wait_until(deadline) ? Errc::ok : Errc::timed_out; },
           [busy] { busy->released.give(); }};
     }},
    {"sync::sleep_until",
     [] {
       struct Changed {
         sync::StdMutex mutex;
         sync::Condition changed;
         bool given = false;
       };
       auto changed = std::make_shared<Changed>();
       return Waiting{[changed](Instant deadline) {
                        sync::UniqueLock lock(changed->mutex);
                        while (!changed->given) {
                          if (!sync::sleep_until(changed->changed, lock, deadline)) {
                            return Errc::timed_out;
                          }
                        }
                        return Errc::ok;
                      },
                      [changed] {
                        const sync::LockGuard lock(changed->mutex);
                        changed->given = true;
                        changed->changed.notify_all();
                      }};
     }},
    {"InlineExecutor::stop", [] { return stop_of(0); }},
    {"ThreadPool::stop, one worker", [] { return stop_of(1); }},
    {"ThreadPool::stop", [] { return stop_of(2); }},
    {"Strand::stop", [] { return stop_of(4); }},
    {"Strand::stop, inline", [] { return stop_of(5); }},
    {"Runtime::stop",
     [] {
       auto runtime = std::shared_ptr<Runtime>(test::start_runtime(1));
       auto blocked = std::make_shared<test::Blocked>(*runtime, 0);
       return Waiting{[runtime](Instant deadline) { return code(runtime->stop(deadline)); },
                      [blocked] { blocked->release(); }};
     }},
};

TEST(Deadline, AWaitUntilAnInstantThatHasPassedTimesOutAtOnce) {
  for (const Row& row : kRows) {
    const Waiting call = row.make();
    for (const Instant past : {Instant::min(), Instant::min() + 1ns, Instant(-1ns), Instant(), Instant(1ns)}) {
      EXPECT_EQ(call.wait(past), Errc::timed_out) << row.name << ' ' << past.time_since_epoch().count();
    }
    call.give();
  }
}

TEST(Deadline, AWaitUntilTheEndOfTimeLastsUntilItsEvent) {
  for (const Row& row : kRows) {
    for (const Instant late : {kNever, kNever - 1ns}) {
      const Waiting call = row.make();
      Errc outcome = Errc::timed_out;
      std::thread waiter([&] { outcome = call.wait(late); });
      call.give();
      waiter.join();
      EXPECT_EQ(outcome, Errc::ok) << row.name;
    }
  }
}

TEST(Deadline, AStopWithoutTimeReturnsAtOnceBesideOneThatWaits) {
  for (const Row& row : kRows) {
    if (std::string_view(row.name).find("::stop") == std::string_view::npos) {
      continue;
    }
    const Waiting call = row.make();
    std::atomic<bool> begun{false};
    std::thread waiter([&] {
      begun.store(true);
      (void)call.wait(kNever);
    });
    for (int turn = 0; turn < 100 || !begun.load(); ++turn) {
      std::this_thread::yield();
    }
    EXPECT_EQ(call.wait(Instant::min()), Errc::timed_out) << row.name;
    call.give();
    waiter.join();
  }
}

TEST(Deadline, AnExecutorRunsAJobWithANegativeDelayAtOnceAndOneWithTheLongestNever) {
  for (const test::Kind& kind : test::kKinds) {
    test::Made made = kind.make({});
    std::atomic<int> ran{0};
    for (const Duration delay : {Duration::min(), Duration(-1), Duration::zero()}) {
      EXPECT_TRUE(made.executor->execute_after(delay, [&] { ran.fetch_add(1); })) << kind.name;
    }
    Future<void> never = made.executor->submit_after(Duration::max(), [&] { ran.fetch_add(100); });
    EXPECT_TRUE(made.executor->stop(StopMode::drain, kNever)) << kind.name;
    EXPECT_EQ(ran.load(), 3) << kind.name;
  }
}

TEST(Deadline, ATimerOfThePastFiresInTheNextAdvanceAndOneOfTheEndOfTimeNever) {
  for (const Instant origin : {Instant::min(), Instant(), Instant(1h)}) {
    TimerWheel wheel(origin);
    int fired = 0;
    const TimerCallback count = {[](void* number) { ++*static_cast<int*>(number); }, &fired};
    for (const Instant past : {Instant::min(), Instant(-1h), origin}) {
      (void)wheel.schedule(std::min(past, origin), count);
    }
    const TimerId never = wheel.schedule(kNever, count);
    EXPECT_LE(wheel.next_deadline(), origin);
    EXPECT_EQ(wheel.advance(origin, 100), 3u);
    EXPECT_TRUE(wheel.reschedule(never, kNever));
    EXPECT_EQ(wheel.advance(origin + 24h, 100), 0u);
    EXPECT_EQ(wheel.next_deadline() > origin + 24h, true);
    EXPECT_EQ(fired, 3);
  }
}

TEST(Deadline, IntervalTimersTakeEveryIntervalAtEveryInstant) {
  for (const Instant now : {Instant::min(), Instant(), kNever - 1ns}) {
    IntervalTimers timers;
    int ran = 0;
    const auto count = [](int, void* number) { ++*static_cast<int*>(number); };
    (void)timers.add(now, Duration::min(), count, &ran);  // negative: never due
    (void)timers.add(now, Duration::max(), count, &ran);
    EXPECT_GT(timers.until_next(now).value(), Duration::zero());
    timers.run(now);
    EXPECT_EQ(ran, 0);
    (void)timers.add(now, Duration::zero(), count, &ran);
    EXPECT_EQ(timers.until_next(now).value(), Duration::zero());
    EXPECT_EQ(timers.until_next(kNever).value(), Duration::zero());
    timers.run(now);
    EXPECT_EQ(ran, 1);
  }
  IntervalTimers timers;
  (void)timers.add(Instant(), Duration::max(), [](int, void*) {}, nullptr);
  EXPECT_EQ(timers.until_next(Instant::min()).value(), Duration::max());
  int ran = 0;
  (void)timers.add(Instant(), Duration::min(), [](int, void* count) { ++*static_cast<int*>(count); }, &ran);
  timers.run(Instant::max());
  EXPECT_EQ(ran, 0) << "never is not even the end of time";
}

Task<Errc> sleep_for(Duration wait) { co_return code(co_await sleep(wait)); }
Task<Errc> sleep_to(Instant deadline) { co_return code(co_await sleep_until(deadline)); }
Task<Errc> limited(Duration limit) { co_return code(co_await with_timeout(sleep_for(Duration(-1)), limit)); }

TEST(Deadline, ATaskSleepsUntilAnyInstant) {
  test::HandTurned loop;
  EXPECT_EQ(loop.run(sleep_for(Duration::zero())), Errc::ok);
  for (const Instant past : {Instant::min(), Instant(-1ns), Instant()}) {
    EXPECT_EQ(loop.run(sleep_to(past)), Errc::ok);
  }
  EXPECT_EQ(loop.run(limited(Duration::zero())), Errc::timed_out);
  for (const Duration ever : {Duration::min(), Duration(-1), Duration::max()}) {
    EXPECT_EQ(loop.run(sleep_for(ever)), std::nullopt);
    EXPECT_EQ(loop.run(limited(ever)), std::nullopt);
  }
  EXPECT_EQ(loop.run(sleep_to(kNever)), std::nullopt);
  loop.runner().cancel_all();
  loop.turn();
}

}  // namespace
}  // namespace weft::rt
