// SPDX-License-Identifier: MIT
#include "weft/sys/thread.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "weft/sys/linux/test_child.h"
#include "weft/sys/thread_id.h"
#include <gtest/gtest.h>

namespace weft::sys {
namespace {

// The state that a thread reads of itself after set_up_thread().
struct Seen {
  ThreadOptions options;
  char name[16] = {};
  int policy = -1;
  cpu_set_t cpus{};
};

Seen seen_with(const ThreadOptions& options) {
  Seen seen{options};
  auto thread = Thread::start(
      [](void* pointer) {
        auto& self = *static_cast<Seen*>(pointer);
        set_up_thread("worker", self.options);
        pthread_getname_np(pthread_self(), self.name, sizeof self.name);
        self.policy = sched_getscheduler(0);
        sched_getaffinity(0, sizeof self.cpus, &self.cpus);
      },
      &seen);
  EXPECT_TRUE(thread);
  thread->join();
  return seen;
}

int a_cpu_of_ours() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) {
    ++cpu;
  }
  return cpu;
}

TEST(ThreadTest, RunsOnceAndIsJoinedByDestruction) {
  std::atomic<int> runs{0};
  {
    auto thread = Thread::start([](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &runs);
    ASSERT_TRUE(thread);
    Thread moved = std::move(*thread);
    thread->join();  // moved from: no thread to wait for
  }
  EXPECT_EQ(runs, 1);
}

TEST(ThreadTest, SuccessiveThreadsHaveSuccessiveNumbers) {
  constexpr std::size_t kThreads = 8;
  std::size_t first[kThreads];
  std::size_t again[kThreads];
  for (std::size_t i = 0; i < kThreads; ++i) {
    std::thread([&, i] {
      first[i] = thread_number();
      again[i] = thread_number();
    }).join();
    EXPECT_EQ(first[i], again[i]);
    EXPECT_EQ(first[i], first[0] + i);
  }
}

TEST(ThreadTest, AForkedChildDoesNotWaitForAThreadOfItsParent) {
  std::atomic<bool> goes_on{true};
  auto thread = Thread::start(
      [](void* flag) {
        while (static_cast<std::atomic<bool>*>(flag)->load()) {
          sched_yield();
        }
      },
      &goes_on);
  ASSERT_TRUE(thread);
  EXPECT_TRUE(test::holds_in_a_child([&] {
    thread->join();
    *thread = Thread();
    return true;
  }));
  goes_on.store(false);
}

TEST(ThreadTest, IsNamedAndStaysAsItWasWithoutOptions) {
  const Seen seen = seen_with({});
  EXPECT_STREQ(seen.name, "worker");
  EXPECT_EQ(seen.policy, sched_getscheduler(0));
}

TEST(ThreadTest, ThePrefixComesBeforeTheNameAndFifteenBytesCount) {
  ThreadOptions options;
  std::strcpy(options.name_prefix, "app");
  EXPECT_STREQ(seen_with(options).name, "app/worker");
  std::strcpy(options.name_prefix, "0123456789abcdef");
  EXPECT_STREQ(seen_with(options).name, "0123456789abcde");
}

TEST(ThreadTest, StaysOnTheCpusItIsGiven) {
  ThreadOptions options;
  const int cpu = a_cpu_of_ours();
  options.cpus.set(static_cast<std::size_t>(cpu));
  const Seen seen = seen_with(options);
  EXPECT_EQ(CPU_COUNT(&seen.cpus), 1);
  EXPECT_TRUE(CPU_ISSET(cpu, &seen.cpus));
}

TEST(ThreadTest, TakesThePolicyItIsGiven) {
  ThreadOptions options;
  options.policy = SCHED_BATCH;  // needs no rights
  EXPECT_EQ(seen_with(options).policy, SCHED_BATCH);
}

TEST(ThreadTest, RunsAllTheSameWhenTheSystemRefuses) {
  ThreadOptions options;
  options.policy = 12345;
  options.priority = 99;
  options.cpus.set(ThreadOptions::kCpusMax - 1);
  const Seen seen = seen_with(options);
  EXPECT_EQ(seen.policy, sched_getscheduler(0));
  EXPECT_TRUE(CPU_ISSET(a_cpu_of_ours(), &seen.cpus));
}

}  // namespace
}  // namespace weft::sys
