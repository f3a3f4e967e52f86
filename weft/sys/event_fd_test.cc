// SPDX-License-Identifier: MIT
#include "weft/sys/event_fd.h"

#include <chrono>

#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

using namespace std::chrono_literals;

bool readable(const TimerFd& timer, Duration timeout) {
  PollFd polled{.fd = timer.fd(), .want = Interest::readable};
  return poll_fds({&polled, 1}, timeout).value_or(std::size_t{0}) == 1;
}

TEST(TimerFd, IsReadableFromItsDeadlineOnAndNotBefore) {
  TimerFd timer = TimerFd::make().value();
  EXPECT_FALSE(readable(timer, Duration(0)));
  const Instant deadline = now() + 20ms;
  timer.set(deadline);
  EXPECT_TRUE(readable(timer, 10s));
  EXPECT_GE(now(), deadline);
  EXPECT_TRUE(readable(timer, Duration(0)));
}

TEST(TimerFd, TheLastDeadlineIsTheOneThatCounts) {
  TimerFd timer = TimerFd::make().value();
  timer.set(Instant::min());
  EXPECT_TRUE(readable(timer, 10s));
  timer.set(now() + 1h);
  EXPECT_FALSE(readable(timer, Duration(0)));
  timer.set(now());
  EXPECT_TRUE(readable(timer, 10s));
  timer.set(kNever);
  EXPECT_FALSE(readable(timer, Duration(0)));
}

}  // namespace
}  // namespace weft::sys
