// SPDX-License-Identifier: MIT
#include "weft/topic/loop/connection_sweep.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using std::chrono::milliseconds;

// Sweeps of a loop that does not turn: the test passes the time to its timers.
class ConnectionSweepTest : public testing::Test {
 protected:
  ConnectionSweepTest() {
    EXPECT_TRUE(loop_.make(owner_, [] {}));
  }
  ~ConnectionSweepTest() override {
    sweep_.stop();
    loop_.end_turns();
  }
  // The times of the sweeps within so many milliseconds more.
  std::vector<int> sweeps_within(int more) {
    sweeps_.clear();
    for (const int end = passed_ + more; passed_ < end; ++passed_) {
      loop_.loop().timers().advance(loop_.loop().now() + milliseconds(passed_), 100);
    }
    return sweeps_;
  }

  std::unique_ptr<rt::Loop> programs_ = rt::Loop::make("test").value();
  std::shared_ptr<int> owner_ = std::make_shared<int>();
  NodeLoop loop_{programs_.get()};
  int passed_ = 0;
  std::vector<int> sweeps_;
  ConnectionSweep sweep_{loop_,
                         {[](void* self) {
                            auto& test = *static_cast<ConnectionSweepTest*>(self);
                            test.sweeps_.push_back(test.passed_);
                            test.sweep_.schedule();
                          },
                          this}};
};

TEST_F(ConnectionSweepTest, AConnectionThatIsGoneHasSweepsForTwoSeconds) {
  sweep_.restart(0);
  sweep_.schedule();
  EXPECT_EQ(sweeps_within(5000).size(), 5U);
  EXPECT_GE(sweeps_.front(), 5);
  EXPECT_LE(sweeps_.back(), 2000);
  EXPECT_TRUE(sweeps_within(5000).empty());
}

TEST_F(ConnectionSweepTest, AnEndedConnectionWhoseMessagesWaitHasSweepsUntilNobodyKnowsIt) {
  auto peer = msg::KnownPeer::remember({});
  ASSERT_NE(peer, nullptr);
  sweep_.restart(peer->id());
  sweep_.schedule();
  EXPECT_GE(sweeps_within(5000).size(), 6U);  // the loop's own time stands still: later sweeps are due at once
  EXPECT_EQ(sweeps_within(1).size(), 1U);
  peer.reset();  // after the sweep, before the next schedule()
  sweep_.schedule();
  EXPECT_EQ(sweeps_within(2).size(), 1U) << "the last sweep may have found it known";
  EXPECT_TRUE(sweeps_within(5000).empty());
}

TEST_F(ConnectionSweepTest, AnotherEndBeginsAgainWithShortWaits) {
  sweep_.restart(0);
  sweep_.schedule();
  EXPECT_EQ(sweeps_within(50).size(), 2U);
  sweep_.restart(0);
  sweep_.stop();
  sweep_.schedule();
  EXPECT_EQ(sweeps_within(1).size(), 1U);
}

}  // namespace
}  // namespace weft::topic
