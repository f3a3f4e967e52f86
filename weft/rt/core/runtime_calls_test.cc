// SPDX-License-Identifier: MIT
// The calls of a runtime's cores may throw, post to wrong places, and destroy the runtime.
#include <chrono>
#include <exception>
#include <memory>
#include <stdexcept>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::in_a_minute;
using test::on_core;
using test::Signal;
using test::start_runtime;

TEST(Core, PostsInItsOwnThreadAndToCoresThatThereAre) {
  const auto runtime = start_runtime(1);
  EXPECT_EQ(runtime->core(0).post(0, [] { FAIL(); }).error(), Errc::invalid_state);
  on_core(*runtime, 0, [] {
    EXPECT_EQ(Core::current()->post(1, [] { FAIL(); }).error(), Errc::invalid_argument);
    EXPECT_EQ(Core::current()->post(~0u, [] { FAIL(); }).error(), Errc::invalid_argument);
  });
}

TEST(Runtime, WhatTheLoopOfACoreCallsMayThrow) {
  Signal thrown;
  RuntimeOptions options;
  options.on_exception = [&](const std::exception_ptr& /*what*/) { thrown.give(); };
  const auto runtime = start_runtime(1, options);
  runtime->core(0).loop().post([] { throw std::runtime_error("a job of the loop"); });
  EXPECT_TRUE(thrown.take());
  on_core(*runtime, 0, [] {
    Loop& loop = Core::current()->loop();
    (void)loop.timers().schedule(loop.now(), {[](void* /*context*/) { throw std::runtime_error("a timer"); }, nullptr});
  });
  EXPECT_TRUE(thrown.take());
  EXPECT_TRUE(runtime->post(0, [] { throw std::runtime_error("a message"); }));
  EXPECT_TRUE(thrown.take());
  EXPECT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_EQ(runtime->core(0).counts().threw, 3u);
}

// Another thread ends it: the job and the task that destroyed it go on to their ends.
TEST(Runtime, MayBeDestroyedByAJobAndByATaskOfItsOwn) {
  for (const bool by_task : {false, true}) {
    Signal over;
    struct AtEnd {
      explicit AtEnd(Signal& to) : signal(to) {}
      AtEnd(const AtEnd&) = delete;
      AtEnd& operator=(const AtEnd&) = delete;
      ~AtEnd() { signal.give(); }
      Signal& signal;
    };
    auto runtime = start_runtime(2);
    runtime->core(1).loop().post([end = std::make_shared<AtEnd>(over)] {});
    if (by_task) {
      auto task = spawn(runtime->core(0), [](std::unique_ptr<Runtime>* owner) -> Task<bool> {
        owner->reset();
        const Result<void> slept = co_await sleep(std::chrono::hours(1));
        co_return slept == Errc::cancelled;
      }(&runtime));
      EXPECT_TRUE(task->get().value_or(false));
    } else {
      Signal destroyed;
      ASSERT_TRUE(runtime->post(0, [&] {
        runtime.reset();
        EXPECT_NE(Core::current(), nullptr);
        destroyed.give();
      }));
      EXPECT_TRUE(destroyed.take());
    }
    EXPECT_TRUE(over.take());
    EXPECT_EQ(runtime, nullptr);
  }
}

}  // namespace
}  // namespace weft::rt
