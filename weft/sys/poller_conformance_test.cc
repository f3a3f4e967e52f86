// SPDX-License-Identifier: MIT
// The contract of sys::Poller. A new implementation adds one line at the end.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/epoll_poller.h"
#include "weft/sys/linux/uring_poller.h"
#include "weft/sys/poll.h"
#include "weft/sys/poller.h"
#include "weft/sys/socket.h"
#include "weft/sys/test_socket_pair.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kForever{-1};
constexpr Duration kAtOnce{0};

struct Implementation {
  const char* name;
  Result<std::unique_ptr<Poller>> (*make)();
};

Result<std::unique_ptr<Poller>> make_default() { return std::move(WEFT_TRY(make_poller()).poller); }

using test::SocketPair;

class PollerConformance : public testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override {
    auto made = GetParam().make();
    if (!made && GetParam().make == &UringPoller::make) {
      GTEST_SKIP() << "not here: " << made.error().message();
    }
    ASSERT_TRUE(made) << made.error().message();
    poller_ = std::move(*made);
  }

  // The kernel takes a ring apart later, and then interrupts the thread that used it. A later test in the
  // same process would see that as a wait that ends early.
  void TearDown() override {
    const bool ring = poller_ != nullptr && GetParam().make == &UringPoller::make;
    poller_.reset();
    constexpr Duration kShort = std::chrono::milliseconds(1);
    for (int i = 0; ring && i < 20 && poll_fds({}, kShort).has_value(); ++i) {
    }
  }

  std::vector<PollEvent> wait(Duration timeout, std::size_t capacity = 16) {
    std::vector<PollEvent> events(capacity);
    const auto count = poller_->wait(events, timeout);
    EXPECT_TRUE(count) << count.error().message();
    events.resize(count ? *count : 0);
    return events;
  }
  // No leftover event or wake ends a wait early.
  void expect_a_whole_wait() {
    constexpr Duration kShort = std::chrono::milliseconds(2);
    const Instant start = now();
    EXPECT_TRUE(wait(kShort).empty());
    EXPECT_GE(now() - start, kShort);
  }
  static void send(const Fd& fd) { EXPECT_EQ(write_some(fd.fd(), as_bytes("x")).bytes, 1u); }
  static void receive(const Fd& fd) {
    std::uint8_t byte = 0;
    EXPECT_EQ(read_some(fd.fd(), {&byte, 1}).bytes, 1u);
  }

  std::unique_ptr<Poller> poller_;
};

TEST_P(PollerConformance, ReportsReadinessWithItsToken) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 42));
  EXPECT_TRUE(wait(kAtOnce).empty());
  send(pair.far);
  const auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tag, 42u);
  EXPECT_TRUE(events[0].readable);
  EXPECT_FALSE(events[0].writable);
  EXPECT_FALSE(events[0].failed);
  EXPECT_FALSE(events[0].peer_closed);
}

TEST_P(PollerConformance, LevelTriggeredRepeatsUntilDrained) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 1));
  send(pair.far);
  EXPECT_EQ(wait(kForever).size(), 1u);
  EXPECT_EQ(wait(kAtOnce).size(), 1u);
  receive(pair.near);
  EXPECT_TRUE(wait(kAtOnce).empty());
}

TEST_P(PollerConformance, EdgeTriggeredReportsEachArrivalOnce) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, true, 1));
  send(pair.far);
  EXPECT_EQ(wait(kForever).size(), 1u);
  EXPECT_TRUE(wait(kAtOnce).empty());
  send(pair.far);  // undrained, but a new edge
  EXPECT_EQ(wait(kForever).size(), 1u);
  EXPECT_TRUE(wait(kAtOnce).empty());
}

TEST_P(PollerConformance, EdgeTriggeredReportsWhatWasReadyBeforeItWasAdded) {
  const SocketPair pair;
  send(pair.far);
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable | Interest::writable, true, 1));
  const auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].readable);
  EXPECT_TRUE(events[0].writable);
}

TEST_P(PollerConformance, ModifyChangesInterestAndToken) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::none, false, 1));
  send(pair.far);
  EXPECT_TRUE(wait(kAtOnce).empty());
  ASSERT_TRUE(poller_->modify(pair.near.fd(), Interest::writable, false, 2));
  auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tag, 2u);
  EXPECT_TRUE(events[0].writable);
  EXPECT_FALSE(events[0].readable);
  ASSERT_TRUE(poller_->modify(pair.near.fd(), Interest::none, false, 2));
  EXPECT_TRUE(wait(kAtOnce).empty());
}

TEST_P(PollerConformance, RemovedIsNotReported) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 1));
  send(pair.far);
  ASSERT_TRUE(poller_->remove(pair.near.fd()));
  EXPECT_TRUE(wait(kAtOnce).empty());
  EXPECT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 3));
  EXPECT_EQ(wait(kForever).at(0).tag, 3u);
}

TEST_P(PollerConformance, ReportsHalfCloseAndHangUp) {
  SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::peer_closed, false, 1));
  EXPECT_TRUE(wait(kAtOnce).empty());
  shutdown_write(pair.far.fd());
  auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].peer_closed);
  EXPECT_FALSE(events[0].failed);
  pair.far.close();
  ASSERT_TRUE(poller_->modify(pair.near.fd(), Interest::none, false, 1));
  events = wait(kForever);  // always reported, even without interest
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].failed);
}

TEST_P(PollerConformance, RefusedCallsChangeNothing) {
  const SocketPair pair;
  EXPECT_FALSE(poller_->add(-1, Interest::readable, false, 1));
  EXPECT_FALSE(poller_->modify(pair.near.fd(), Interest::readable, false, 1));
  EXPECT_FALSE(poller_->remove(pair.near.fd()));
  EXPECT_EQ(poller_->add(pair.near.fd(), Interest::readable, false, Poller::kReservedTag).error().code(),
            Errc::invalid_argument);
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 1));
  EXPECT_EQ(poller_->add(pair.near.fd(), Interest::writable, false, 2).error().code(), Errc::invalid_state);
  EXPECT_EQ(poller_->wait({}, kAtOnce).error().code(), Errc::invalid_argument);
  send(pair.far);
  EXPECT_EQ(wait(kForever).at(0).tag, 1u);
}

TEST_P(PollerConformance, WakeEndsTheNextWaitOnce) {
  poller_->wake();
  EXPECT_TRUE(wait(kForever).empty());
  expect_a_whole_wait();
  poller_->wake();
  EXPECT_TRUE(wait(kForever).empty());
}

TEST_P(PollerConformance, ManyWakesAreOne) {
  for (int i = 0; i < 1000; ++i) {
    poller_->wake();
  }
  EXPECT_TRUE(wait(kForever).empty());
  expect_a_whole_wait();
}

TEST_P(PollerConformance, WakeComesBesideEvents) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, false, 5));
  send(pair.far);
  poller_->wake();
  std::vector<std::uint64_t> tags;
  for (int i = 0; i < 3; ++i) {
    for (const auto& event : wait(kAtOnce, 1)) {  // one place: the wake must neither starve the event nor be an event
      tags.push_back(event.tag);
    }
  }
  EXPECT_GE(tags.size(), 2u);
  EXPECT_TRUE(std::all_of(tags.begin(), tags.end(), [](auto tag) { return tag == 5; }));
}

TEST_P(PollerConformance, NoWakeIsLostAcrossThreads) {
  constexpr int kRounds = 2000;
  std::atomic<int> requested{0};
  std::atomic<int> answered{0};
  std::thread waker([&] {
    for (int round = 1; round <= kRounds; ++round) {
      requested.store(round, std::memory_order_relaxed);  // wake() must publish it
      poller_->wake();
      while (answered.load(std::memory_order_acquire) < round) {
        std::this_thread::yield();
      }
    }
  });
  bool lost = false;
  for (int seen = 0; seen < kRounds;) {
    const Instant start = now();
    wait(kPatience);
    lost = lost || now() - start >= kPatience;
    seen = requested.load(std::memory_order_relaxed);
    answered.store(lost ? kRounds : seen, std::memory_order_release);
    if (lost) {
      break;
    }
  }
  waker.join();
  EXPECT_FALSE(lost);
}

TEST_P(PollerConformance, TimeoutIsNeverEarly) {
  for (const Duration timeout : {Duration(1), Duration(70'000), Duration(1'300'000)}) {
    const Instant start = now();
    EXPECT_TRUE(wait(timeout).empty());
    EXPECT_GE(now() - start, timeout);
  }
}

TEST_P(PollerConformance, EveryReadyDescriptorGetsItsTurn) {
  constexpr std::size_t kPairs = 20;
  std::array<SocketPair, kPairs> pairs;
  std::vector<int> seen(kPairs, 0);
  for (std::size_t i = 0; i < kPairs; ++i) {
    ASSERT_TRUE(poller_->add(pairs[i].near.fd(), Interest::readable, false, i));
    send(pairs[i].far);
  }
  for (std::size_t round = 0; round < 2 * kPairs / 3 + 1; ++round) {
    for (const auto& event : wait(kAtOnce, 3)) {
      ++seen[event.tag];
    }
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int count) { return count > 0; }));
}

TEST_P(PollerConformance, ASignalEndsTheWaitWithoutAnError) {
  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> returned{false};
  const pthread_t self = ::pthread_self();
  std::thread signaller([&] {
    while (!returned.load()) {
      ::pthread_kill(self, SIGUSR1);
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(wait(kForever).empty());
  returned.store(true);
  signaller.join();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(PollerConformance, ADescriptorThatWasRemovedCloses) {
  SocketPair pair;
  for (const bool edge : {false, true}) {
    ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, edge, 1));
    EXPECT_TRUE(wait(kAtOnce).empty());
    ASSERT_TRUE(poller_->remove(pair.near.fd()));
  }
  pair.near.close();
  PollFd other{.fd = pair.far.fd(), .want = Interest::readable};
  EXPECT_EQ(*poll_fds({&other, 1}, kAtOnce), 1u);  // at once, not only when the poller waits or ends
}

TEST_P(PollerConformance, ADescriptorUsedAnewTellsNothingOfTheOldOne) {
  for (const bool edge : {false, true}) {
    SocketPair pair;
    const int number = pair.near.fd();
    ASSERT_TRUE(poller_->add(number, Interest::readable, edge, 1));
    EXPECT_TRUE(wait(kAtOnce).empty());
    send(pair.far);  // the poller has the event but has not reported it
    ASSERT_TRUE(poller_->remove(number));
    pair.near.close();
    SocketPair next;
    ASSERT_EQ(next.near.fd(), number);
    ASSERT_TRUE(poller_->add(number, Interest::readable, edge, 2));
    EXPECT_TRUE(wait(kAtOnce).empty());
    send(next.far);
    EXPECT_EQ(wait(kForever).at(0).tag, 2u);
    ASSERT_TRUE(poller_->remove(number));
  }
}

TEST_P(PollerConformance, AModifiedEdgeReportsAnewWhatIsReady) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable, true, 1));
  send(pair.far);
  EXPECT_EQ(wait(kForever).size(), 1u);
  ASSERT_TRUE(poller_->modify(pair.near.fd(), Interest::readable | Interest::writable, true, 2));
  const auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tag, 2u);
  EXPECT_TRUE(events[0].readable);
  EXPECT_TRUE(events[0].writable);
  EXPECT_TRUE(wait(kAtOnce).empty());
}

TEST_P(PollerConformance, EdgeTriggeredTellsTheEndAlsoBesideUnreadBytes) {
  SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::readable | Interest::peer_closed, true, 1));
  send(pair.far);
  EXPECT_FALSE(wait(kForever).at(0).peer_closed);
  shutdown_write(pair.far.fd());
  EXPECT_TRUE(wait(kForever).at(0).peer_closed);
}

TEST_P(PollerConformance, AHalfClosedPeerThatNobodyAskedAboutEndsNoWait) {
  const SocketPair pair;
  shutdown_write(pair.far.fd());
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::none, false, 1));
  expect_a_whole_wait();
  expect_a_whole_wait();
  ASSERT_TRUE(poller_->modify(pair.near.fd(), Interest::writable, false, 1));
  EXPECT_TRUE(wait(kForever).at(0).writable);
  EXPECT_TRUE(wait(kForever).at(0).writable);  // still level-triggered
}

TEST_P(PollerConformance, EventsBesideAHalfClosedPeerAreReportedAndRepeated) {
  const SocketPair pair;
  ASSERT_TRUE(poller_->add(pair.near.fd(), Interest::writable, false, 1));
  std::vector<std::uint8_t> block(4096);
  while (write_some(pair.near.fd(), block).status == IoResult::Status::done) {
  }
  shutdown_write(pair.far.fd());
  EXPECT_TRUE(wait(kAtOnce).empty());
  while (read_some(pair.far.fd(), block).status == IoResult::Status::done) {
  }
  EXPECT_TRUE(wait(kForever).at(0).writable);
  EXPECT_TRUE(wait(kForever).at(0).writable);
}

TEST_P(PollerConformance, UrgentIsWhatWasSentUrgently) {
  const Fd listener = std::move(open_tcp_listener(*SocketAddress::parse_numeric("127.0.0.1", 0), {})).value();
  const Fd far = std::move(open_tcp_connection(*local_address(listener.fd()), nullptr, {})).value().fd;
  PollFd arrived{.fd = listener.fd(), .want = Interest::readable};
  ASSERT_EQ(*poll_fds({&arrived, 1}, kPatience), 1u);
  const Fd near = std::move(accept_connection(listener.fd())).value();
  ASSERT_TRUE(poller_->add(near.fd(), Interest::readable | Interest::urgent, true, 1));
  send(far);
  const auto events = wait(kForever);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].readable);
  EXPECT_FALSE(events[0].urgent);
  ASSERT_EQ(::send(far.fd(), "!", 1, MSG_OOB), 1);
  bool urgent = false;
  while (!urgent) {
    urgent = wait(kForever).at(0).urgent;
  }
}

TEST_P(PollerConformance, OfManyPollersTheOneThatWaitsGetsTheEvent) {
  const SocketPair pair;
  const auto another = std::move(GetParam().make()).value();
  std::vector<PollEvent> none(1);
  EXPECT_EQ(another->wait(none, kAtOnce).value_or(1u), 0u);
  for (Poller* const poller : {another.get(), poller_.get()}) {
    ASSERT_TRUE(poller->add(pair.near.fd(), Interest::readable | Interest::one_of_many, true, 1));
  }
  send(pair.far);
  EXPECT_TRUE(wait(kForever).at(0).readable);
  for (Poller* const poller : {another.get(), poller_.get()}) {
    EXPECT_TRUE(poller->remove(pair.near.fd()));
  }
}

TEST_P(PollerConformance, FilesThatAreAlwaysReadyAreRefused) {
  const Fd folder(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(folder.valid());
  EXPECT_EQ(poller_->add(folder.fd(), Interest::readable, false, 1).error().os_errno(), EPERM);
  EXPECT_TRUE(wait(kAtOnce).empty());
}

INSTANTIATE_TEST_SUITE_P(All, PollerConformance,
                         testing::Values(Implementation{"Default", &make_default},
                                         Implementation{"Epoll", &EpollPoller::make},
                                         Implementation{"IoUring", &UringPoller::make}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace weft::sys
