// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "weft/rt/loop/timer_wheel.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

// The same cases in every run.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=5", 0);

// A wheel and its model: a multimap by tick.
class Both {
 public:
  void schedule(std::uint64_t delay) {
    auto timer = std::make_unique<Timer>(Timer{this, now_ + delay, false, {}});
    timer->id = wheel_.schedule(at(timer->tick), {&Both::on_fire, timer.get()});
    RC_ASSERT(timer->id);
    RC_ASSERT(std::find(stale_.begin(), stale_.end(), timer->id) == stale_.end());
    live_.emplace(timer->tick, std::move(timer));
  }
  void cancel(std::uint64_t which) {
    if (!live_.empty()) {
      const auto victim = pick(which);
      RC_ASSERT(wheel_.cancel(victim->second->id));
      stale_.push_back(victim->second->id);
      live_.erase(victim);
    }
  }
  void reschedule(std::uint64_t which, std::uint64_t delay) {
    if (!live_.empty()) {
      auto moved = live_.extract(pick(which));
      moved.key() = moved.mapped()->tick = now_ + delay;
      RC_ASSERT(wheel_.reschedule(moved.mapped()->id, at(moved.key())));
      live_.insert(std::move(moved));
    }
  }
  void use_stale(std::uint64_t which) {
    if (!stale_.empty()) {
      RC_ASSERT(!wheel_.cancel(stale_[which % stale_.size()]));
      RC_ASSERT(!wheel_.reschedule(stale_[which % stale_.size()], at(now_)));
    }
  }
  void advance(std::uint64_t ticks, std::size_t limit) {
    now_ += ticks;
    last_tick_ = 0;
    for (auto& [tick, timer] : live_) {
      timer->overdue = tick <= now_ - ticks;
    }
    const std::size_t before = live_.size();
    const std::size_t fired = wheel_.advance(at(now_), limit);
    RC_ASSERT(fired <= limit && before - live_.size() == fired);
    RC_ASSERT(fired == limit || wheel_.next_deadline() <= at(now_) || live_.empty() || live_.begin()->first > now_);
  }
  void check() const {
    RC_ASSERT(wheel_.size() == live_.size());
    RC_ASSERT((wheel_.next_deadline() == kNever) == live_.empty());
    RC_ASSERT(live_.empty() || wheel_.next_deadline() <= at(std::max(live_.begin()->first, now_)));
  }
  void finish() {
    for (std::size_t calls = 0; wheel_.size() != 0; ++calls) {
      RC_ASSERT(calls < 10'000);
      advance(live_.begin()->first > now_ ? live_.begin()->first - now_ : 0, 3);
    }
  }

 private:
  struct Timer {
    Both* both;
    std::uint64_t tick;
    bool overdue;  // before the call that fires it
    TimerId id;
  };
  using Live = std::multimap<std::uint64_t, std::unique_ptr<Timer>>;

  static Instant at(std::uint64_t tick) { return Instant(Duration(static_cast<Duration::rep>(tick))); }
  Live::iterator pick(std::uint64_t which) {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(which % live_.size()));
  }
  static void on_fire(void* context) {
    auto* timer = static_cast<Timer*>(context);
    Both& both = *timer->both;
    RC_ASSERT(timer->tick <= both.now_);
    RC_ASSERT(timer->overdue || timer->tick >= both.last_tick_);
    if (!timer->overdue) {
      both.last_tick_ = timer->tick;
    }
    both.stale_.push_back(timer->id);
    const auto [begin, end] = both.live_.equal_range(timer->tick);
    const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.get() == timer; });
    RC_ASSERT(found != end);
    both.live_.erase(found);
  }

  std::uint64_t now_ = 0;
  std::uint64_t last_tick_ = 0;
  TimerWheel wheel_{Instant{}, Duration(1)};
  Live live_;
  std::vector<TimerId> stale_;
};

// Every magnitude of delay, and many that meet.
rc::Gen<std::uint64_t> delays() {
  return rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 48), rc::gen::inRange<std::uint64_t>(0, 7)),
                      [](const auto& each) { return (each.second << each.first) + each.second % 2; });
}

TEST(TimerWheelProperty, BehavesAsAMultimapDoes) {
  EXPECT_TRUE(rc::check("the wheel is a multimap by tick", [] {
    Both both;
    const int steps = *rc::gen::inRange(0, 300);
    for (int step = 0; step < steps; ++step) {
      const auto which = *rc::gen::arbitrary<std::uint64_t>();
      switch (*rc::gen::inRange(0, 8)) {
        case 0: both.cancel(which); break;
        case 1: both.reschedule(which, *delays()); break;
        case 2: both.use_stale(which); break;
        case 3:
        case 4: both.advance(*delays() / 2, *rc::gen::inRange<std::size_t>(0, 40)); break;
        default: both.schedule(*delays()); break;
      }
      both.check();
    }
    both.finish();
  }));
}

}  // namespace
}  // namespace weft::rt
