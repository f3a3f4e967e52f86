// SPDX-License-Identifier: MIT
// A forked child inherits the objects without their threads: destruction there waits for nothing.
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <thread>

#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;

// Runs the function in a forked child. True: it returned. The alarm ends a child that hangs.
bool ends_in_a_child(const std::function<void()>& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    function();
    ::_exit(0);
  }
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ForkedChild, DestroysAnExecutorWhoseJobsRunInItsParent) {
  for (const test::Kind& kind : test::kKinds) {
    test::Made made = kind.make({});
    test::Signal begun;
    test::Signal released;
    std::thread runner([&] {
      EXPECT_TRUE(made.executor->execute([&] {
        begun.give();
        EXPECT_TRUE(released.take());
      }));
    });
    ASSERT_TRUE(begun.take());
    Future<int> delayed = made.executor->submit_after(1h, [] { return 1; });
    EXPECT_TRUE(ends_in_a_child([&] {
      if (made.executor->stop(StopMode::drain, kNever).error_or(Errc::ok) != Errc::invalid_state) {
        ::_exit(1);
      }
      made.executor.reset();
      made.below.reset();
    })) << kind.name;
    released.give();
    runner.join();
    EXPECT_TRUE(made.executor->stop(StopMode::drain, kNever)) << "the parent's executor is as before";
    EXPECT_EQ(delayed.get().error(), Errc::terminated);
  }
}

TEST(ForkedChild, DestroysALoopARuntimeAndABusThatAreAtWorkInItsParent) {
  auto loop = std::move(Loop::make("fork")).value();
  ASSERT_TRUE(loop->start(nullptr));
  auto runtime = test::start_runtime(1);
  auto* const inherited = new EventBus;
  test::Signal begun;
  test::Signal released;
  const auto wait = [&] {
    begun.give();
    EXPECT_TRUE(released.take());
  };
  Subscription subscription = inherited->subscribe<int>([&](int) { wait(); }).value();
  loop->post(wait);
  ASSERT_TRUE(runtime->post(0, wait));
  std::thread publisher([&] { EXPECT_EQ(inherited->publish(1), 1u); });
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(begun.take());
  }
  EXPECT_TRUE(ends_in_a_child([&] {
    subscription.unsubscribe();
    inherited->close();
    delete inherited;
  })) << "bus";
  EXPECT_TRUE(ends_in_a_child([&] { loop.reset(); })) << "loop";
  EXPECT_TRUE(ends_in_a_child([&] { runtime.reset(); })) << "runtime";
  released.give(3);
  publisher.join();
  delete inherited;
}

}  // namespace
}  // namespace weft::rt
