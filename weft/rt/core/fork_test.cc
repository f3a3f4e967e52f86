// SPDX-License-Identifier: MIT
// A forked child inherits the objects without their threads: destruction there waits for nothing.
#include <memory>
#include <string_view>
#include <thread>

#include "weft/rt/bus/event_bus.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include "weft/rt/task/task_scope.h"
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

TEST(ForkedChild, TakesNoJobAndWaitsForNoneOfItsParents) {
  for (const test::Kind& kind : test::kKinds) {
    test::Made made = kind.make({});
    ASSERT_TRUE(made.executor->submit_after(1ns, [] { return 1; }).get());
    Future<int> waits = made.executor->submit_after(1h, [] { return 1; });
    EXPECT_TRUE(sys::test::holds_in_a_child([&] {
      const auto delayed = made.executor->execute_after(1h, [] {});
      const bool refused = delayed.error_or(Errc::ok) == Errc::closed;
      const auto soon = made.executor->execute([] {});
      const bool runs_here = std::string_view(kind.name) == "inline";  // a caller's thread is there
      const bool taken = runs_here ? bool(soon) : soon.error_or(Errc::ok) == Errc::closed;
      return refused && taken && !waits.wait_until(kNever) && waits.get().error() == Errc::invalid_state;
    })) << kind.name;
    EXPECT_FALSE(waits.ready());
  }
}

TEST(ForkedChild, TakesNothingForTheLoopTheRuntimeAndTheBusOfItsParent) {
  const auto loop = std::move(Loop::make("fork")).value();
  ASSERT_TRUE(loop->start(nullptr));
  const auto runtime = test::start_runtime(1);
  EventBus bus;
  const auto task = []() -> Task<int> { co_return 1; };
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    Job job([] {});
    const bool loop_refuses = loop->try_post(job).error_or(Errc::ok) == Errc::closed;
    const bool loop_ends_futures = spawn(*loop, task()).get().error() == Errc::terminated;
    const bool runtime_refuses = runtime->post(0, [] {}).error_or(Errc::ok) == Errc::closed;
    const bool bus_refuses = bus.subscribe<int>([](int) {}).error() == Errc::closed;
    return loop_refuses && loop_ends_futures && runtime_refuses && bus_refuses;
  }));
}

}  // namespace
}  // namespace weft::rt
