// SPDX-License-Identifier: MIT
#include "weft/rt/loop/activity.h"

#include <memory>

#include "weft/rt/loop/loop.h"
#include "weft/rt/loop/test_signal.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

constexpr ActivityName kOuter{"Room", "on_frame"};
constexpr ActivityName kInner{"Room", "coroutine"};
constexpr Instant at(int ms) { return Instant() + std::chrono::milliseconds(ms); }

TEST(Activity, TellsOfATurnThatBeganBeforeAMomentAndOfNoOther) {
  Activity activity;
  EXPECT_FALSE(activity.busy_since(at(1000)));
  activity.begin_turn(at(500));
  EXPECT_FALSE(activity.busy_since(at(499)));
  ASSERT_TRUE(activity.busy_since(at(500)));
  EXPECT_EQ(activity.busy_since(at(500))->since, at(500));
  activity.end_turn();
  EXPECT_FALSE(activity.busy_since(at(1000)));
}

TEST(Activity, NamesTheInnermostCallAndTheOuterOneAgainAfterwards) {
  Activity activity;
  activity.begin_turn(at(1));
  const auto text = [&] { return activity.busy_since(at(1))->text(); };
  EXPECT_EQ(text(), "a job, message or timer");
  {
    const InActivity outer(activity, kOuter, 7);
    activity.set_detail(0);
    EXPECT_EQ(text(), "Room on_frame (frame 0)");
    EXPECT_EQ(activity.busy_since(at(1))->subject, 7u);
    {
      const InActivity inner(activity, kInner, 8);
      activity.clear_detail();
      EXPECT_EQ(text(), "Room coroutine");
      EXPECT_EQ(activity.busy_since(at(1))->subject, 8u);
    }
    EXPECT_EQ(text(), "Room on_frame");
    EXPECT_EQ(activity.busy_since(at(1))->subject, 7u);
  }
  EXPECT_EQ(text(), "a job, message or timer");
}

TEST(Activity, CountsATurnOnceHoweverOftenItIsSeen) {
  Activity activity;
  for (const int turn : {1, 2}) {
    activity.begin_turn(at(turn));
    activity.note_stall(*activity.busy_since(at(9)));
    activity.note_stall(*activity.busy_since(at(9)));
    EXPECT_EQ(activity.stalls(), static_cast<std::uint64_t>(turn));
  }
}

TEST(Activity, OfALoopIsBusyDuringAJobAndNotWhileTheLoopSleepsOrHasEnded) {
  auto loop = std::move(Loop::make("test")).value();
  const std::shared_ptr<Activity> activity = loop->activity();
  ASSERT_TRUE(loop->start(nullptr));
  test::Signal entered;
  test::Signal leave;
  loop->post([&] {
    entered.give();
    EXPECT_TRUE(leave.take());
  });
  ASSERT_TRUE(entered.take());
  EXPECT_TRUE(activity->busy_since(sys::now()));
  leave.give();
  while (activity->busy_since(sys::now())) {
    std::this_thread::yield();
  }
  loop.reset();
  EXPECT_FALSE(activity->busy_since(sys::now()));
}

}  // namespace
}  // namespace weft::rt
