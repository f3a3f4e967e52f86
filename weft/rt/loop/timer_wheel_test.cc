// SPDX-License-Identifier: MIT
#include "weft/rt/loop/timer_wheel.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
constexpr Duration kTick = TimerWheel::kDefaultTick;

Instant at(Duration since_zero) { return Instant(since_zero); }

// Counts its calls, and calls `then` at each.
struct Counter {
  int calls = 0;
  std::function<void()> then;

  TimerCallback callback() {
    return {[](void* self) {
              auto* counter = static_cast<Counter*>(self);
              ++counter->calls;
              if (counter->then) {
                counter->then();
              }
            },
            this};
  }
};

TEST(TimerWheel, IsQuietWhenEmpty) {
  TimerWheel wheel(at(hours(1)));
  EXPECT_EQ(wheel.next_deadline(), kNever);
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.advance(at(hours(100000)), kAll), 0u);
  EXPECT_FALSE(wheel.cancel({}));
}

TEST(TimerWheel, FiresWithinATickAndNeverEarly) {
  for (const Duration delay : {Duration(1), kTick - Duration(1), kTick, kTick * 63, kTick * 64, kTick * 65,
                               kTick * 4096, kTick * 4097 + Duration(7), Duration(hours(24 * 365))}) {
    const Instant origin = at(Duration(12'345));
    TimerWheel wheel(origin);
    Counter counter;
    const Instant deadline = origin + delay;
    ASSERT_TRUE(wheel.schedule(deadline, counter.callback()));
    EXPECT_LE(wheel.next_deadline(), deadline + kTick);
    EXPECT_EQ(wheel.advance(deadline - Duration(1), kAll), 0u);
    EXPECT_EQ(wheel.size(), 1u);
    EXPECT_EQ(wheel.advance(deadline + kTick, kAll), 1u);
    EXPECT_EQ(counter.calls, 1);
    EXPECT_EQ(wheel.next_deadline(), kNever);
    EXPECT_EQ(wheel.advance(deadline + hours(1), kAll), 0u);
  }
}

TEST(TimerWheel, ADeadlineInThePastFiresInTheNextAdvance) {
  TimerWheel wheel(at(hours(1)));
  wheel.advance(at(hours(2)), kAll);
  Counter counter;
  ASSERT_TRUE(wheel.schedule(at(hours(1)), counter.callback()));
  ASSERT_TRUE(wheel.schedule(Instant::min(), counter.callback()));
  EXPECT_LE(wheel.next_deadline(), at(hours(2)));
  EXPECT_EQ(wheel.advance(at(hours(2)), kAll), 2u);
}

TEST(TimerWheel, ADeadlineThatHasComeDoesNotWaitForItsTick) {
  TimerWheel wheel(at(hours(1)));
  const Instant now = at(hours(2)) + kTick / 2;
  wheel.advance(now, kAll);
  Counter counter;
  ASSERT_TRUE(wheel.schedule(now, counter.callback()));
  const TimerId moved = wheel.schedule(at(hours(3)), counter.callback());
  ASSERT_TRUE(wheel.reschedule(moved, now));
  ASSERT_TRUE(wheel.schedule(now + Duration(1), counter.callback()));
  EXPECT_LE(wheel.next_deadline(), now);
  EXPECT_EQ(wheel.advance(now, kAll), 2u);
  EXPECT_EQ(wheel.advance(now, kAll), 0u);
  EXPECT_EQ(wheel.advance(now + kTick, kAll), 1u);
}

TEST(TimerWheel, ANextDeadlineComputedInsideACallbackIsNotKept) {
  TimerWheel wheel(at(hours(1)));
  Counter counter;
  const auto ask = [](void* context) { (void)static_cast<TimerWheel*>(context)->next_deadline(); };
  ASSERT_TRUE(wheel.schedule(at(hours(2)), {ask, &wheel}));
  ASSERT_TRUE(wheel.schedule(at(hours(2)) + kTick, counter.callback()));
  ASSERT_TRUE(wheel.schedule(at(hours(4)), counter.callback()));
  EXPECT_EQ(wheel.advance(at(hours(3)), kAll), 2u);
  EXPECT_GT(wheel.next_deadline(), at(hours(3)));
}

TEST(TimerWheel, TakesTheWholeRangeOfTime) {
  TimerWheel wheel(Instant::min(), Duration(1));
  Counter counter;
  const TimerId never = wheel.schedule(kNever, counter.callback());
  EXPECT_EQ(wheel.next_deadline(), kNever);
  ASSERT_TRUE(wheel.schedule(at(Duration(0)), counter.callback()));
  EXPECT_EQ(wheel.advance(at(Duration(-1)), kAll), 0u);
  EXPECT_EQ(wheel.advance(at(Duration(0)), kAll), 1u);
  EXPECT_EQ(wheel.advance(kNever - Duration(1), kAll), 0u);
  EXPECT_TRUE(wheel.cancel(never));
}

TEST(TimerWheel, TimeDoesNotTurnBack) {
  TimerWheel wheel(at(hours(1)));
  Counter counter;
  wheel.advance(at(hours(3)), kAll);
  ASSERT_TRUE(wheel.schedule(at(hours(4)), counter.callback()));
  EXPECT_EQ(wheel.advance(at(hours(2)), kAll), 0u);
  EXPECT_EQ(wheel.advance(at(hours(4)) + kTick, kAll), 1u);
}

TEST(TimerWheel, StaleIdsAreRejected) {
  TimerWheel wheel(at(Duration(0)));
  Counter counter;
  const TimerId fired = wheel.schedule(at(milliseconds(1)), counter.callback());
  wheel.advance(at(milliseconds(2)), kAll);
  const TimerId current = wheel.schedule(at(milliseconds(3)), counter.callback());  // reuses the node
  EXPECT_FALSE(fired == current);
  EXPECT_FALSE(wheel.cancel(fired));
  EXPECT_FALSE(wheel.cancel({current.value + 1}));
  EXPECT_TRUE(wheel.cancel(current));
  EXPECT_FALSE(wheel.cancel(current));
  EXPECT_EQ(wheel.size(), 0u);
  EXPECT_EQ(wheel.advance(at(hours(1)), kAll), 0u);
  EXPECT_EQ(counter.calls, 1);
}

TEST(TimerWheel, TheLimitLeavesTheRestDue) {
  TimerWheel wheel(at(Duration(0)));
  Counter counter;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(wheel.schedule(at(milliseconds(i)), counter.callback()));
  }
  EXPECT_EQ(wheel.advance(at(hours(1)), 0), 0u);
  EXPECT_EQ(wheel.advance(at(hours(1)), 4), 4u);
  EXPECT_LE(wheel.next_deadline(), at(hours(1)));
  EXPECT_EQ(wheel.advance(at(hours(1)), 4), 4u);
  EXPECT_EQ(wheel.advance(at(hours(1)), 4), 2u);
}

TEST(TimerWheel, CallbacksMayCancelOthersThatAreDue) {
  TimerWheel wheel(at(Duration(0)));
  Counter first;
  Counter second;
  ASSERT_TRUE(wheel.schedule(at(milliseconds(1)), first.callback()));
  const TimerId victim = wheel.schedule(at(milliseconds(1)), second.callback());
  bool cancelled = false;
  first.then = [&] { cancelled = wheel.cancel(victim); };
  EXPECT_EQ(wheel.advance(at(milliseconds(5)), kAll), 1u);
  EXPECT_TRUE(cancelled);
  EXPECT_EQ(second.calls, 0);
}

TEST(TimerWheel, CallbacksMayScheduleForThisAdvanceAndForThePast) {
  TimerWheel wheel(at(Duration(0)), Duration(1));
  Counter periodic;
  Duration next = milliseconds(1);
  periodic.then = [&] {
    next += milliseconds(1);
    (void)wheel.schedule(at(next), periodic.callback());
  };
  (void)wheel.schedule(at(next), periodic.callback());
  EXPECT_EQ(wheel.advance(at(milliseconds(10)), kAll), 10u);  // the periodic timer catches up and then waits
  EXPECT_EQ(wheel.size(), 1u);

  Counter restless;
  restless.then = [&] { (void)wheel.schedule(at(Duration(0)), restless.callback()); };
  (void)wheel.schedule(at(Duration(0)), restless.callback());
  EXPECT_EQ(wheel.advance(at(milliseconds(10)), kAll), 1u);  // a timer for the past waits for the next advance()
  EXPECT_EQ(wheel.advance(at(milliseconds(10)), kAll), 1u);
}

TEST(TimerWheel, AdvanceInsideACallbackDoesNothing) {
  TimerWheel wheel(at(Duration(0)), Duration(1));
  Counter outer;
  Counter inner;
  std::size_t nested = 7;
  outer.then = [&] { nested = wheel.advance(at(hours(1)), kAll); };
  (void)wheel.schedule(at(milliseconds(1)), outer.callback());
  (void)wheel.schedule(at(milliseconds(2)), inner.callback());
  EXPECT_EQ(wheel.advance(at(milliseconds(1)), kAll), 1u);
  EXPECT_EQ(nested, 0u);
  EXPECT_EQ(inner.calls, 0);
}

TEST(TimerWheel, AShortListIsWaitedForExactlyAndALongOneNeedsFewWakeUps) {
  for (const int timers : {1, 15, 1000}) {
    TimerWheel wheel(at(Duration(0)));
    Counter counter;
    for (int i = 0; i < timers; ++i) {
      (void)wheel.schedule(at(hours(1)) + microseconds(i), counter.callback());
    }
    int wake_ups = 0;
    for (; counter.calls == 0; ++wake_ups) {
      ASSERT_LT(wake_ups, 12);
      wheel.advance(wheel.next_deadline(), kAll);
    }
    EXPECT_LE(wake_ups, timers <= 15 ? 1 : 8);
  }
}

TEST(TimerWheel, TheTickIsAPowerOfTwo) {
  EXPECT_EQ(TimerWheel(at(Duration(0)), Duration(1)).tick(), Duration(1));
  EXPECT_EQ(TimerWheel(at(Duration(0)), Duration(1023)).tick(), Duration(512));
  EXPECT_EQ(TimerWheel(at(Duration(0))).tick(), kTick);
}

TEST(TimerWheel, TakesAnyDelayToTheTick) {
  for (int bit = 1; bit < 63; ++bit) {
    for (const std::int64_t offset : {-1, 0, 1}) {
      const Instant deadline = at(Duration((std::int64_t{1} << bit) + offset));
      TimerWheel wheel(at(Duration(0)), Duration(1));
      Counter counter;
      (void)wheel.schedule(deadline, counter.callback());
      EXPECT_EQ(wheel.next_deadline(), deadline);
      EXPECT_EQ(wheel.advance(deadline - Duration(1), kAll), 0u);
      EXPECT_EQ(wheel.advance(deadline, kAll), 1u) << deadline.time_since_epoch().count();
    }
  }
}

// A late advance() does not shift the deadlines after it. The published wheel counts its own calls and so drifts.
TEST(TimerWheel, LatePollsDoNotAddUp) {
  TimerWheel wheel(at(Duration(0)), Duration(1));
  Counter periodic;
  Duration next = milliseconds(10);
  periodic.then = [&] {
    next += milliseconds(10);
    (void)wheel.schedule(at(next), periodic.callback());
  };
  (void)wheel.schedule(at(next), periodic.callback());
  Duration now{};
  for (int poll = 1; poll <= 1000; ++poll) {
    now = milliseconds(13) * poll;
    wheel.advance(at(now), kAll);
    ASSERT_EQ(periodic.calls, now / milliseconds(10));
  }
}

TEST(TimerWheel, ATimerCanBeGivenAnotherDeadline) {
  TimerWheel wheel(at(Duration(0)), Duration(1));
  Counter counter;
  const TimerId id = wheel.schedule(at(hours(1)), counter.callback());
  EXPECT_TRUE(wheel.reschedule(id, at(milliseconds(5))));  // earlier
  EXPECT_EQ(wheel.next_deadline(), at(milliseconds(5)));
  EXPECT_TRUE(wheel.reschedule(id, at(hours(2))));  // later
  EXPECT_EQ(wheel.advance(at(hours(1)), kAll), 0u);
  EXPECT_TRUE(wheel.reschedule(id, at(hours(2))));                // the same
  EXPECT_TRUE(wheel.reschedule(id, at(hours(2)) + Duration(1)));  // and in the same slot
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(wheel.advance(at(hours(2)), kAll), 0u);
  EXPECT_TRUE(wheel.reschedule(id, at(hours(1))));  // to the past
  EXPECT_EQ(wheel.advance(at(hours(2)), kAll), 1u);
  EXPECT_FALSE(wheel.reschedule(id, at(hours(3))));
  EXPECT_EQ(wheel.size(), 0u);
}

TEST(TimerWheel, CallbacksMayPostponeOthersThatAreDue) {
  TimerWheel wheel(at(Duration(0)), Duration(1));
  Counter first;
  Counter second;
  (void)wheel.schedule(at(milliseconds(1)), first.callback());
  const TimerId postponed = wheel.schedule(at(milliseconds(1)), second.callback());
  first.then = [&] { EXPECT_TRUE(wheel.reschedule(postponed, at(milliseconds(9)))); };
  EXPECT_EQ(wheel.advance(at(milliseconds(5)), kAll), 1u);
  EXPECT_EQ(second.calls, 0);
  EXPECT_EQ(wheel.advance(at(milliseconds(9)), kAll), 1u);
}

// All timers are due at once, in one slot of a high level: no call exceeds its bounds, and no timer is lost or out of
// order.
TEST(TimerWheel, OneCallMovesNoMoreThanItSays) {
  constexpr std::size_t kTimers = 10'000;
  constexpr std::size_t kLimit = 10;
  TimerWheel wheel(at(Duration(0)), Duration(1));
  struct Timer {
    std::vector<std::size_t>* order;
    std::size_t number;
  };
  std::vector<std::size_t> order;
  std::vector<Timer> timers;
  for (std::size_t i = 0; i < kTimers; ++i) {
    timers.push_back({&order, i});
  }
  const Instant start = at(Duration(std::int64_t{1} << 40));
  std::vector<TimerId> ids(kTimers);
  for (std::size_t i = kTimers; i-- > 0;) {
    ids[i] = wheel.schedule(start + Duration(static_cast<std::int64_t>(i)), {[](void* self) {
                                                                               auto* timer = static_cast<Timer*>(self);
                                                                               timer->order->push_back(timer->number);
                                                                             },
                                                                             &timers[i]});
  }
  const Instant now = start + hours(1);
  std::size_t idle_calls = 0;
  for (; order.empty(); ++idle_calls) {
    ASSERT_LE(wheel.next_deadline(), now);
    ASSERT_LE(wheel.advance(now, kLimit), kLimit);
  }
  EXPECT_GE(idle_calls, kTimers / (kLimit * TimerWheel::kMovesPerFire));
  EXPECT_TRUE(wheel.cancel(ids[kTimers / 2]));  // half-way
  EXPECT_TRUE(wheel.cancel(ids[kTimers - 1]));
  while (wheel.size() != 0) {
    ASSERT_LE(wheel.next_deadline(), now);
    ASSERT_LE(wheel.advance(now, kLimit), kLimit);
  }
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(order.size(), kTimers - 2);
}

TEST(TimerWheel, TimersScheduledDuringALongMoveKeepTheirOrder) {
  TimerWheel wheel(at(Duration(0)), Duration(1));
  Counter many;
  Counter early;
  Counter late;
  const Instant start = at(Duration(std::int64_t{1} << 40));
  for (int i = 0; i < 1000; ++i) {
    (void)wheel.schedule(start + Duration(300), many.callback());
  }
  EXPECT_EQ(wheel.advance(start + Duration(300), 1), 0u);  // some are moved
  early.then = [&] { EXPECT_EQ(many.calls, 0); };
  late.then = [&] { EXPECT_EQ(many.calls, 1000); };
  (void)wheel.schedule(start + Duration(299), early.callback());
  (void)wheel.schedule(start + Duration(301), late.callback());
  while (wheel.size() != 0) {
    wheel.advance(start + Duration(301), 7);
  }
  EXPECT_EQ(early.calls + late.calls, 2);
}

// The wheel against an ordered multimap, in virtual time.
class Model {
 public:
  explicit Model(std::uint64_t seed)
      : random_(seed), now_(Duration(static_cast<Duration::rep>(random_.below(1u << 30)))), wheel_(now_) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      switch (random_.below(4)) {
        case 0:
        case 1: schedule(); break;
        case 2: cancel(); break;
        default: advance(); break;
      }
      ASSERT_EQ(wheel_.size(), expected_.size());
      ASSERT_EQ(wheel_.next_deadline() == kNever, expected_.empty());
      if (!expected_.empty()) {
        ASSERT_LE(wheel_.next_deadline(), std::max(expected_.begin()->first, now_) + kTick);
      }
    }
  }

 private:
  struct Timer {
    Model* model;
    Instant deadline;
    TimerId id;
  };

  Duration random_delay() {
    return Duration(static_cast<Duration::rep>(random_.next() >> (20 + random_.below(44))));  // every magnitude
  }

  void schedule() {
    auto timer = std::make_unique<Timer>(Timer{this, now_ + random_delay() - Duration(1000), {}});
    timer->id = wheel_.schedule(timer->deadline, {&Model::on_fire, timer.get()});
    expected_.emplace(timer->deadline, std::move(timer));
  }

  void cancel() {
    if (expected_.empty()) {
      return;
    }
    const auto victim = std::next(expected_.begin(), static_cast<std::ptrdiff_t>(random_.below(expected_.size())));
    ASSERT_TRUE(wheel_.cancel(victim->second->id));
    ASSERT_FALSE(wheel_.cancel(victim->second->id));
    expected_.erase(victim);
  }

  void advance() {
    now_ += random_delay() / 4;
    const std::size_t limit = random_.below(2) == 0 ? kAll : random_.below(8);
    const std::size_t fired = wheel_.advance(now_, limit);
    ASSERT_LE(fired, limit);
    // Every timer that is a tick overdue has fired, unless a callback just made it or the call used up its moves.
    if (fired < limit && !expected_.empty() && wheel_.next_deadline() > now_) {
      ASSERT_GE(std::max(expected_.begin()->first, scheduled_late_), now_ - kTick);
    }
    scheduled_late_ = Instant::min();
  }

  static void on_fire(void* context) {
    auto* timer = static_cast<Timer*>(context);
    Model& model = *timer->model;
    ASSERT_LE(timer->deadline, model.now_);  // never early
    const auto [begin, end] = model.expected_.equal_range(timer->deadline);
    const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.get() == timer; });
    ASSERT_NE(found, end);  // fired once
    model.expected_.erase(found);
    switch (model.random_.below(8)) {
      case 0:
        model.schedule();
        model.scheduled_late_ = kNever;  // the new timer may be due before now_ and wait for the next advance()
        break;
      case 1: model.cancel(); break;
      default: break;
    }
  }

  Random random_;
  Instant now_;
  TimerWheel wheel_;
  std::multimap<Instant, std::unique_ptr<Timer>> expected_;
  Instant scheduled_late_ = Instant::min();
};

TEST(TimerWheel, BehavesAsAnOrderedMultimapWould) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Model model(seed);
    model.run(500);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(TimerWheel, ATickOfNothingOrLessIsANanosecond) {
  for (const Duration tick : {Duration::min(), Duration(-1), Duration::zero(), Duration(1)}) {
    TimerWheel wheel(at(Duration(0)), tick);
    EXPECT_EQ(wheel.tick(), Duration(1));
    Counter counter;
    (void)wheel.schedule(at(Duration(5)), counter.callback());
    EXPECT_EQ(wheel.advance(at(Duration(4)), kAll), 0u);
    EXPECT_EQ(wheel.advance(at(Duration(6)), kAll), 1u);
  }
}

TEST(TimerWheel, ATimerWithoutAFunctionIsNone) {
  TimerWheel wheel(at(Duration(0)));
  EXPECT_FALSE(wheel.schedule(at(Duration(1)), {}));
  EXPECT_EQ(wheel.size(), 0u);
}

// Wherever the timers lie: scheduled for the past, in one slot, and in several.
TEST(TimerWheel, ATimerThatThrowsHasFiredAndTheNextAdvanceFiresTheOthers) {
  for (const bool past : {true, false}) {
    for (const Duration apart : {Duration(0), 10 * TimerWheel::kDefaultTick}) {
      TimerWheel wheel(at(std::chrono::seconds(0)));
      Counter counter;
      const TimerCallback throws{[](void* /*context*/) { throw std::runtime_error("a timer"); }, nullptr};
      const Instant first = past ? Instant::min() : at(std::chrono::seconds(1));
      (void)wheel.schedule(first, counter.callback());
      (void)wheel.schedule(first + apart, throws);
      (void)wheel.schedule(first + apart + apart, counter.callback());
      EXPECT_THROW(wheel.advance(at(std::chrono::seconds(2)), kAll), std::runtime_error);
      EXPECT_EQ(wheel.size(), 1u + (counter.calls == 0 ? 1 : 0));
      EXPECT_LE(wheel.next_deadline(), at(std::chrono::seconds(2)));
      wheel.advance(at(std::chrono::seconds(2)), kAll);
      EXPECT_EQ(counter.calls, 2);
      EXPECT_EQ(wheel.size(), 0u);
      (void)wheel.schedule(at(std::chrono::seconds(3)), counter.callback());
      EXPECT_EQ(wheel.advance(at(std::chrono::seconds(4)), kAll), 1u);
    }
  }
}

TEST(TimerWheel, ACallbackMayDestroyTheWheelAndNoOtherTimerFires) {
  for (const Instant deadline : {Instant::min(), at(std::chrono::seconds(1))}) {
    auto wheel = std::make_unique<TimerWheel>(at(std::chrono::seconds(0)));
    for (int i = 0; i < 3; ++i) {
      (void)wheel->schedule(deadline,
                            {[](void* owner) { static_cast<std::unique_ptr<TimerWheel>*>(owner)->reset(); }, &wheel});
    }
    EXPECT_EQ(wheel->advance(at(std::chrono::seconds(2)), kAll), 1u);
    EXPECT_EQ(wheel, nullptr);
  }
}

}  // namespace
}  // namespace weft::rt
