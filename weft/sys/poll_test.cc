// SPDX-License-Identifier: MIT
// The small waiting tools: EpollSet, EventFd, poll_fds, is_writable, futex, SignalsBlocked.
#include "weft/sys/poll.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/sys/epoll_set.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/futex.h"
#include "weft/sys/signals.h"
#include "weft/sys/socket.h"
#include "weft/sys/test_socket_pair.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

constexpr Duration kForever{-1};
constexpr Duration kAtOnce{0};

// While it lives, SIGUSR1 hits the thread that made it again and again.
class SignalStorm {
 public:
  explicit SignalStorm(int flags = 0) {
    struct sigaction action{};
    action.sa_flags = flags;
    action.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &action, &before_);
    thread_ = std::thread([this, victim = ::pthread_self()] {
      while (!stop_.load()) {
        ::pthread_kill(victim, SIGUSR1);
        std::this_thread::yield();
      }
    });
  }
  ~SignalStorm() {
    stop_.store(true);
    thread_.join();
    ::sigaction(SIGUSR1, &before_, nullptr);
  }

 private:
  struct sigaction before_{};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST(IsWritable, WhileThereIsRoomAndWhenAWriteWouldFail) {
  test::SocketPair pair;
  EXPECT_TRUE(is_writable(pair.near.fd()));
  const std::vector<std::uint8_t> bytes(64 * 1024);
  while (write_some(pair.near.fd(), bytes).status == IoResult::Status::done) {
  }
  EXPECT_FALSE(is_writable(pair.near.fd()));
  pair.far = Fd();
  EXPECT_TRUE(is_writable(pair.near.fd()));
  EXPECT_FALSE(is_writable(-1));
}

TEST(PollFds, TheMaskCountsDuringTheWaitOnly) {
  sigset_t usr1;
  sigset_t before;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &usr1, &before), 0);
  {
    const SignalStorm storm;
    sigset_t pending;
    do {
      sigpending(&pending);
    } while (sigismember(&pending, SIGUSR1) == 0);
    EXPECT_EQ(poll_fds({}, kAtOnce).error(), Errc::ok);
    sigset_t open = before;
    sigdelset(&open, SIGUSR1);
    SignalMask mask;
    std::memcpy(mask.bytes.data(), &open, sizeof open);
    EXPECT_EQ(poll_fds({}, kForever, &mask).error(), Errc::interrupted);
    sigset_t after;
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
    EXPECT_EQ(sigismember(&after, SIGUSR1), 1);
  }
  timespec none{};
  while (::sigtimedwait(&usr1, nullptr, &none) == SIGUSR1) {  // a pending signal must not reach the next test
  }
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
}

TEST(EventFd, IsReadableFromSignalToDrain) {
  EventFd event = std::move(EventFd::make()).value();
  PollFd polled{.fd = event.fd(), .want = Interest::readable};
  EXPECT_EQ(*poll_fds({&polled, 1}, kAtOnce), 0u);
  event.signal();
  event.signal();
  EXPECT_EQ(*poll_fds({&polled, 1}, kForever), 1u);
  EXPECT_TRUE(has(polled.got, Interest::readable));
  event.drain();
  event.drain();  // the counter is 0 already: drain() returns at once
  EXPECT_EQ(*poll_fds({&polled, 1}, kAtOnce), 0u);
  EXPECT_EQ(polled.got, Interest::none);
}

TEST(EpollSet, ReportsItsMembersAndNests) {
  EpollSet inner = std::move(EpollSet::make()).value();
  EpollSet outer = std::move(EpollSet::make()).value();
  EventFd event = std::move(EventFd::make()).value();
  ASSERT_TRUE(inner.add(event.fd(), 7, Interest::readable));
  ASSERT_TRUE(outer.add(inner.fd(), 8, Interest::readable));
  PollEvent events[4];
  EXPECT_EQ(*outer.wait(events, kAtOnce), 0u);
  event.signal();
  ASSERT_EQ(*outer.wait(events, kForever), 1u);
  EXPECT_EQ(events[0].tag, 8u);
  ASSERT_EQ(*inner.wait(events, kAtOnce), 1u);
  EXPECT_EQ(events[0].tag, 7u);
  ASSERT_TRUE(inner.remove(event.fd()));
  EXPECT_EQ(*outer.wait(events, kAtOnce), 0u);
}

TEST(EpollSet, ASignalIsInterrupted) {
  EpollSet set = std::move(EpollSet::make()).value();
  PollEvent events[1];
  const SignalStorm storm;
  EXPECT_EQ(set.wait(events, kForever).error().code(), Errc::interrupted);
  EXPECT_EQ(set.wait(events, std::chrono::hours(1)).error().code(), Errc::interrupted);
}

// Simulates a kernel before 5.11 with a system-call filter.
int hide_epoll_pwait2() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) : -1;
}

TEST(EpollSetDeathTest, WaitsInMillisecondsWhereTheKernelHasNothingBetter) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        if (hide_epoll_pwait2() != 0) {
          std::exit(0);  // the system accepts no filter: nothing to test
        }
        EpollSet set = std::move(EpollSet::make()).value();
        PollEvent events[1];
        int failures = 0;
        for (const Duration timeout : {Duration(1), Duration(1'000'001)}) {
          const Instant start = now();
          failures += set.wait(events, timeout).value_or(std::size_t{9}) == 0 ? 0 : 1;
          failures += now() - start >= timeout ? 0 : 1;
        }
        std::exit(failures);
      },
      testing::ExitedWithCode(0), "");
}

TEST(PollFds, ReportsEachDescriptorItsOwn) {
  EventFd quiet = std::move(EventFd::make()).value();
  EventFd loud = std::move(EventFd::make()).value();
  loud.signal();
  std::vector<PollFd> fds = {{.fd = quiet.fd(), .want = Interest::readable},
                             {.fd = loud.fd(), .want = Interest::readable | Interest::writable},
                             {.fd = -1, .want = Interest::readable},
                             {.fd = 1 << 20, .want = Interest::readable}};
  EXPECT_EQ(*poll_fds(fds, kForever), 2u);
  EXPECT_EQ(fds[0].got, Interest::none);
  EXPECT_EQ(fds[1].got, Interest::readable | Interest::writable);
  EXPECT_FALSE(fds[1].failed);
  EXPECT_FALSE(fds[2].failed);
  EXPECT_TRUE(fds[3].failed);  // not a descriptor
}

TEST(PollFds, TakesMoreThanFitOnTheStack) {
  EventFd event = std::move(EventFd::make()).value();
  event.signal();
  std::vector<PollFd> fds(200, PollFd{.fd = event.fd(), .want = Interest::readable});
  EXPECT_EQ(*poll_fds(fds, kForever), 200u);
}

TEST(PollFds, TimesOutAndIsInterrupted) {
  const Instant start = now();
  EXPECT_EQ(*poll_fds({}, std::chrono::microseconds(300)), 0u);
  EXPECT_GE(now() - start, std::chrono::microseconds(300));
  const SignalStorm storm;
  EXPECT_EQ(poll_fds({}, kForever).error().code(), Errc::interrupted);
}

TEST(Futex, AnswersWhyItReturned) {
  std::atomic<std::uint32_t> word{1};
  EXPECT_EQ(futex_wait(word, 0, kForever), FutexResult::changed);
  const Instant start = now();
  EXPECT_EQ(futex_wait(word, 1, std::chrono::microseconds(200)), FutexResult::timed_out);
  EXPECT_GE(now() - start, std::chrono::microseconds(200));
  EXPECT_EQ(futex_wait(word, 1, kAtOnce), FutexResult::timed_out);
  for (const int flags : {0, SA_RESTART}) {  // with which the kernel restarts some waits
    const SignalStorm storm(flags);
    EXPECT_EQ(futex_wait(word, 1, kForever), FutexResult::interrupted);
    EXPECT_EQ(futex_wait_cancellably(word, 1, kForever), FutexResult::interrupted);
    EXPECT_EQ(poll_fds({}, kForever).error().code(), Errc::interrupted);
  }
}

TEST(Futex, WakesAWaiter) {
  constexpr std::uint32_t kRounds = 2000;
  std::atomic<std::uint32_t> word{0};
  std::atomic<std::uint32_t> echo{0};
  std::thread waiter([&] {
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      while (word.load() == round) {
        futex_wait(word, round, kForever);
      }
      echo.store(round + 1);
      futex_wake(echo, 1);
    }
  });
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    word.store(round + 1);
    futex_wake(word, 1);
    while (echo.load() == round) {
      futex_wait(echo, round, kForever);
    }
  }
  waiter.join();
  EXPECT_EQ(echo.load(), kRounds);
}

TEST(SignalsBlocked, CoversItsScopeAndTheThreadsStartedInIt) {
  const auto blocked = [] {
    sigset_t mask;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &mask);
    return ::sigismember(&mask, SIGINT) == 1 && ::sigismember(&mask, SIGSEGV) == 0;
  };
  ASSERT_FALSE(blocked());
  bool in_thread = false;
  std::thread thread;
  {
    const SignalsBlocked guard;
    EXPECT_TRUE(blocked());
    thread = std::thread([&] { in_thread = blocked(); });
  }
  thread.join();
  EXPECT_TRUE(in_thread);
  EXPECT_FALSE(blocked());
}

}  // namespace
}  // namespace weft::sys
