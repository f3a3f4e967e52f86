// SPDX-License-Identifier: MIT
#include "weft/serve/client/reconnect.h"

#include <chrono>
#include <vector>

#include "weft/rt/task/test_tasks.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using namespace std::chrono_literals;

// Attempts in a time of the test's own. All fail at once except those in `proved`.
struct Attempts {
  rt::test::HandTurned* time;
  std::size_t proved_every = 0;
  std::vector<Instant> at;

  static rt::Task<Attempt> one(Attempts* self) {
    self->at.push_back(self->time->now());
    const bool proved = self->proved_every != 0 && self->at.size() % self->proved_every == 0;
    co_return proved ? Attempt::proved : Attempt::failed;
  }
  [[nodiscard]] std::vector<Duration> waits() const {
    std::vector<Duration> waits;
    for (std::size_t i = 1; i < at.size(); ++i) {
      waits.push_back(at[i] - at[i - 1]);
    }
    return waits;
  }
};

class ReconnectTest : public testing::Test {
 protected:
  void run(Attempts& attempts, std::uint64_t seed, Duration how_long) {
    rt::TaskScope scope(time_.runner());
    ASSERT_TRUE(scope.spawn(keep_connected([&attempts] { return Attempts::one(&attempts); }, [] { return true; },
                                           net::Backoff(50ms, 10s, seed))));
    time_.pass(how_long);
    scope.cancel();
    time_.turn();
    EXPECT_EQ(scope.size(), 0u);
  }

  rt::test::HandTurned time_;
};

TEST_F(ReconnectTest, AStormIsBoundedByWaitsThatDouble) {
  Attempts attempts{&time_, 0, {}};
  run(attempts, 1, 60s);
  // 0.1 s, 0.2 s ... 10 s, each halved at most: the first 7 take 6.4 s at least, the rest 5 s each.
  EXPECT_LE(attempts.at.size(), 19u);
  EXPECT_GE(attempts.at.size(), 10u);
  const auto waits = attempts.waits();
  Duration ceiling = 100ms;
  for (const Duration wait : waits) {
    EXPECT_GE(wait, ceiling / 2);
    EXPECT_LE(wait, ceiling + 2 * time_.wheel().tick());
    ceiling = std::min<Duration>(2 * ceiling, 10s);
  }
}

TEST_F(ReconnectTest, ClientsOfOneServerDoNotReturnInStep) {
  Attempts first{&time_, 0, {}};
  run(first, 1, 5s);
  Attempts second{&time_, 0, {}};
  run(second, 2, 5s);
  EXPECT_NE(first.waits(), second.waits());
}

TEST_F(ReconnectTest, AConnectionThatProvedItselfMakesTheNextWaitShort) {
  Attempts attempts{&time_, 4, {}};
  run(attempts, 1, 20s);
  const auto waits = attempts.waits();
  ASSERT_GE(waits.size(), 8u);
  for (std::size_t i = 3; i < waits.size(); i += 4) {
    EXPECT_LE(waits[i], 100ms + 2 * time_.wheel().tick());  // after the fourth, the eighth ...
    EXPECT_GE(waits[i - 1], 200ms);
  }
}

TEST_F(ReconnectTest, WhoIsToldToStopMakesNoOtherAttempt) {
  Attempts attempts{&time_, 0, {}};
  rt::TaskScope scope(time_.runner());
  ASSERT_TRUE(scope.spawn(keep_connected([&attempts] { return Attempts::one(&attempts); },
                                         [&attempts] { return attempts.at.size() < 3; }, net::Backoff(50ms, 10s, 1))));
  time_.pass(60s);
  EXPECT_EQ(attempts.at.size(), 3u);
  EXPECT_EQ(scope.size(), 0u);
}

}  // namespace
}  // namespace weft::serve
