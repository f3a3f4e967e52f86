// SPDX-License-Identifier: MIT
// A forked child inherits the objects without their threads: destruction there waits for nothing.
#include <memory>
#include <thread>

#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include "weft/sys/linux/test_child.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;

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
    EXPECT_TRUE(sys::test::holds_in_a_child([&] {
      const auto stopped = made.executor->stop(StopMode::drain, kNever);
      made.executor.reset();
      made.below.reset();
      return stopped.error_or(Errc::ok) == Errc::invalid_state;
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
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    subscription.unsubscribe();
    inherited->close();
    delete inherited;
    return true;
  })) << "bus";
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    loop.reset();
    return true;
  })) << "loop";
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    const auto stopped = runtime->stop(kNever);
    runtime.reset();
    return stopped.error_or(Errc::ok) == Errc::invalid_state;
  })) << "runtime";
  released.give(3);
  publisher.join();
  delete inherited;
}

}  // namespace
}  // namespace weft::rt
