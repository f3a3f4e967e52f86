// SPDX-License-Identifier: MIT
#include "bench/stage.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kLastBall = 0x8000'0000;
constexpr double kSharedNs = 1'500;                   // a slower round trip means that the two share a core ...
constexpr std::chrono::milliseconds kSeparation(12);  // ... which the scheduler mends within some ticks, if it can

}  // namespace

Stage::Stage(int parties) : parties_(static_cast<std::uint32_t>(parties)) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&barrier_, &attributes, parties_);
  pthread_barrierattr_destroy(&attributes);
}

void Stage::arrive(std::atomic<std::uint32_t>& arrived, std::uint32_t parties) {
  const std::uint32_t mine = arrived.fetch_add(1) + 1;
  const std::uint32_t all = (mine + parties - 1) / parties * parties;
  yield_until([&] { return static_cast<std::int32_t>(arrived.load() - all) >= 0; });
}

void Stage::meet_awake() { arrive(arrived_, parties_); }

// The leader makes the ball odd, the follower makes it even again. The last ball has its top bit set.
double Stage::ping_pong(Side side, int chunks, std::uint32_t rounds) {
  if (side == Side::follower) {
    return_balls();
    return 0;
  }
  ball_.store(0);
  arrive(players_, 2);
  std::uint32_t ball = 0;
  const auto play = [&] {
    const auto start = Clock::now();
    for (std::uint32_t round = 0; round < rounds; ++round, ball += 2) {
      ball_.store(ball + 1, std::memory_order_release);
      yield_until([&] { return ball_.load(std::memory_order_acquire) == ball + 2; });
    }
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / rounds;
  };
  const auto give_up = Clock::now() + kSeparation;
  while (play() > kSharedNs && Clock::now() < give_up) {
  }
  std::vector<double> times(static_cast<std::size_t>(chunks));
  std::generate(times.begin(), times.end(), play);
  ball_.store(kLastBall, std::memory_order_release);
  std::nth_element(times.begin(), times.begin() + chunks / 2, times.end());
  return times[static_cast<std::size_t>(chunks / 2)];
}

void Stage::return_balls() {
  arrive(players_, 2);
  for (std::uint32_t expected = 1;; expected += 2) {
    std::uint32_t ball = 0;
    yield_until([&] { return (ball = ball_.load(std::memory_order_acquire)) == expected || ball == kLastBall; });
    if (ball == kLastBall) {
      return;
    }
    ball_.store(ball + 1, std::memory_order_release);
  }
}

void* shared_memory(std::size_t size) {
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    fail("no shared memory");
  }
  return memory;
}

void pin(Side side) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  int wanted = side == Side::leader ? 0 : 1 % CPU_COUNT(&allowed);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      sched_setaffinity(0, sizeof one, &one);
    }
  }
}

void run_both(bool processes, const std::function<void()>& leader, const std::function<void()>& follower) {
  if (!processes) {
    std::thread other(follower);
    leader();
    other.join();
    return;
  }
  // The leader may sleep at the barrier when the other process dies, so the signal's handler ends the program.
  std::signal(SIGCHLD, [](int) {
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) > 0 && status != 0) {
      _exit(1);
    }
  });
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    fail("no second process");
  }
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) {
      follower();
      _exit(0);
    }
    _exit(1);
  }
  leader();
  while (waitpid(child, nullptr, 0) == -1 && errno == EINTR) {
  }
}

}  // namespace bench
