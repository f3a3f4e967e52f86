// SPDX-License-Identifier: MIT
#include "weft/sync/parker.h"

#include <thread>
#include <vector>

#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

constexpr Duration kForever{-1};
constexpr Duration kAtOnce{0};

bool readable(sys::EventFd& event, Duration timeout = kAtOnce) {
  sys::PollFd polled{.fd = event.fd(), .want = sys::Interest::readable};
  return std::move(sys::poll_fds({&polled, 1}, timeout)).value() == 1;
}

void wake(Parker& parker, bool heavy) { heavy ? parker.wake() : parker.wake_with_fence(); }

// Both ways to pair the fences.
class ParkerTest : public testing::TestWithParam<bool> {
 protected:
  const bool heavy_ = GetParam();
  Parker parker_;
};

TEST_P(ParkerTest, AWakeAfterTheAnnouncementKeepsTheSleeperAwake) {
  const auto ticket = parker_.announce_futex(heavy_);
  wake(parker_, heavy_);
  EXPECT_EQ(parker_.sleep(ticket, kForever), sys::FutexResult::changed);
}

TEST_P(ParkerTest, AWakeBeforeTheAnnouncementDoesNot) {
  wake(parker_, heavy_);
  EXPECT_EQ(parker_.sleep(parker_.announce_futex(heavy_), kAtOnce), sys::FutexResult::timed_out);
}

TEST_P(ParkerTest, AnothersAnnouncementDoesNotStandForOneThatIsGone) {
  const auto first = parker_.announce_futex(heavy_);
  wake(parker_, heavy_);
  const auto second = parker_.announce_futex(heavy_);
  EXPECT_EQ(parker_.sleep(first, kForever), sys::FutexResult::changed);
  EXPECT_EQ(parker_.sleep(second, kAtOnce), sys::FutexResult::timed_out);
}

TEST_P(ParkerTest, AnAnnouncementOutlivesASleepThatTimedOut) {
  const auto ticket = parker_.announce_futex(heavy_);
  EXPECT_EQ(parker_.sleep(ticket, kAtOnce), sys::FutexResult::timed_out);
  EXPECT_EQ(parker_.sleep(ticket, kAtOnce), sys::FutexResult::timed_out);
  wake(parker_, heavy_);
  EXPECT_EQ(parker_.sleep(ticket, kForever), sys::FutexResult::changed);
}

// One sleeper in poll.
struct Poller {
  sys::EventFd event = std::move(sys::EventFd::make()).value();
  WakeList list;
  WakeList::Sleeper sleeper{&event};

  Poller() { list.add(sleeper); }
};

TEST_P(ParkerTest, SignalsTheSleepersInPollOncePerAnnouncement) {
  Poller poller;
  wake(parker_, heavy_);
  parker_.announce_poll(&poller.list, heavy_);
  EXPECT_FALSE(readable(poller.event));
  wake(parker_, heavy_);
  EXPECT_TRUE(readable(poller.event));
  poller.event.drain();
  wake(parker_, heavy_);
  EXPECT_FALSE(readable(poller.event));
}

TEST_P(ParkerTest, OneWakeReachesBothKindsOfSleepers) {
  Poller poller;
  const auto ticket = parker_.announce_futex(heavy_);
  parker_.announce_poll(&poller.list, heavy_);
  wake(parker_, heavy_);
  EXPECT_EQ(parker_.sleep(ticket, kForever), sys::FutexResult::changed);
  EXPECT_TRUE(readable(poller.event));
}

// Messages that receivers wait for. Taking is not ordered by the parker, so the count is an atomic of its own.
struct Place {
  Parker parker;
  std::atomic<int> available{0};

  bool try_take() {
    int old = available.load();
    while (old > 0) {
      if (available.compare_exchange_weak(old, old - 1)) {
        return true;
      }
    }
    return false;
  }
  void post(bool heavy) {
    available.fetch_add(1, std::memory_order_release);
    wake(parker, heavy);
  }
  void take_asleep_on_futex(bool heavy) {
    while (!try_take()) {
      const auto ticket = parker.announce_futex(heavy);
      if (try_take()) {
        return;
      }
      parker.sleep(ticket, kForever);
    }
  }
  void take_asleep_in_poll(Poller& poller, bool heavy) {
    while (!try_take()) {
      parker.announce_poll(&poller.list, heavy);
      if (try_take()) {
        return;
      }
      EXPECT_TRUE(readable(poller.event, kForever));
      poller.event.drain();
    }
  }
};

constexpr int kRounds = 5000;

TEST_P(ParkerTest, LosesNoWakeUpBetweenTwoThreadsThatAnswerEachOther) {
  Place ping;
  Place pong;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      ping.take_asleep_on_futex(heavy_);
      pong.post(heavy_);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ping.post(heavy_);
    pong.take_asleep_on_futex(heavy_);
  }
  other.join();
  EXPECT_EQ(ping.available + pong.available, 0);
}

TEST_P(ParkerTest, LosesNoWakeUpInPoll) {
  Poller poller;
  Place ping;
  Place pong;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      ping.take_asleep_in_poll(poller, heavy_);
      pong.post(heavy_);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    ping.post(heavy_);
    pong.take_asleep_on_futex(heavy_);
  }
  other.join();
  EXPECT_EQ(ping.available + pong.available, 0);
}

TEST_P(ParkerTest, LosesNoWakeUpOfSeveralSleepers) {
  constexpr int kSleepers = 3;
  Place place;
  Place done;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < kSleepers; ++i) {
    sleepers.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        place.take_asleep_on_futex(heavy_);
        done.post(heavy_);
      }
    });
  }
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kSleepers; ++i) {
      place.post(heavy_);
    }
    for (int i = 0; i < kSleepers; ++i) {
      done.take_asleep_on_futex(heavy_);
    }
  }
  for (std::thread& sleeper : sleepers) {
    sleeper.join();
  }
  EXPECT_EQ(place.available + done.available, 0);
}

INSTANTIATE_TEST_SUITE_P(Fences, ParkerTest, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "Heavy" : "Full"; });

}  // namespace
}  // namespace weft::sync
