// SPDX-License-Identifier: MIT
#include "weft/sync/wake_list.h"

#include <atomic>
#include <thread>

#include "weft/sys/poll.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

bool readable(sys::EventFd& event, Duration timeout = Duration::zero()) {
  sys::PollFd polled{.fd = event.fd(), .want = sys::Interest::readable};
  return std::move(sys::poll_fds({&polled, 1}, timeout)).value() == 1;
}

struct Listed {
  sys::EventFd event = std::move(sys::EventFd::make()).value();
  WakeList::Sleeper sleeper{&event};
};

TEST(WakeList, RingsWhoIsInItAndNobodyElse) {
  WakeList list;
  Listed first;
  Listed second;
  Listed outside;
  list.signal();
  list.add(first.sleeper);
  list.add(second.sleeper);
  EXPECT_FALSE(list.take_rung(first.sleeper));
  list.signal();
  for (Listed* listed : {&first, &second}) {
    EXPECT_TRUE(readable(listed->event));
    EXPECT_TRUE(list.take_rung(listed->sleeper));
    EXPECT_FALSE(list.take_rung(listed->sleeper));
  }
  EXPECT_FALSE(readable(outside.event));
}

TEST(WakeList, AddingAndRemovingTwiceIsOnce) {
  WakeList list;
  Listed first;
  Listed second;
  list.add(first.sleeper);
  list.add(second.sleeper);
  list.add(first.sleeper);
  list.remove(second.sleeper);
  list.remove(second.sleeper);
  list.signal();
  EXPECT_TRUE(readable(first.event));
  EXPECT_FALSE(readable(second.event));
  list.remove(first.sleeper);
  first.event.drain();
  list.signal();
  EXPECT_FALSE(readable(first.event));
}

// The sleeper is destroyed right after its removal: no signal may reach it then.
TEST(WakeList, ASleeperMayEndAsSoonAsItIsRemoved) {
  constexpr int kRounds = 500;
  WakeList list;
  std::atomic<bool> stop{false};
  std::thread signaller([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      list.signal();
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    Listed listed;
    list.add(listed.sleeper);
    if (i % 2 == 0) {
      EXPECT_TRUE(readable(listed.event, Duration(-1)));
      EXPECT_TRUE(list.take_rung(listed.sleeper));
    }
    list.remove(listed.sleeper);
  }
  stop.store(true, std::memory_order_relaxed);
  signaller.join();
}

}  // namespace
}  // namespace weft::sync
