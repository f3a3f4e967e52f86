// SPDX-License-Identifier: MIT
#include "weft/rt/runtime.h"

#include <atomic>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "weft/rt/test_signal.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Signal;

std::unique_ptr<Runtime> start(unsigned cores, RuntimeOptions options = {}) {
  options.cores = cores;
  auto made = Runtime::start(options);
  EXPECT_TRUE(made) << made.error().message();
  return std::move(made).value();
}

Instant soon() { return sys::now() + std::chrono::seconds(60); }

TEST(Runtime, RunsAMessageOnTheCoreItWasPostedTo) {
  const auto runtime = start(3);
  ASSERT_EQ(runtime->size(), 3u);
  EXPECT_EQ(Core::current(), nullptr);
  Signal done;
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_TRUE(runtime->post(i, [&, i] {
      EXPECT_EQ(Core::current(), &runtime->core(i));
      EXPECT_EQ(Core::current()->index(), i);
      EXPECT_EQ(Loop::current(), &Core::current()->loop());
      done.give();
    }));
    ASSERT_TRUE(done.take());
  }
}

TEST(Runtime, WhatWasPostedBeforeStopRunsWithAllThatItLeadsTo) {
  const auto runtime = start(3);
  std::atomic<int> ran{0};
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(runtime->post(0, [&] {
      ran.fetch_add(1);
      EXPECT_TRUE(runtime->post(1, [&] {
        ran.fetch_add(1);
        EXPECT_TRUE(runtime->post(2, [&] { ran.fetch_add(1); }));
      }));
    }));
  }
  EXPECT_TRUE(runtime->stop(soon()));
  EXPECT_EQ(ran.load(), 1500);
  EXPECT_TRUE(runtime->stop(soon())) << "idempotent";
  EXPECT_EQ(runtime->post(0, [] {}).error(), Errc::closed);
}

TEST(Runtime, TurnTasksRunOnceAtTheEndOfTheTurn) {
  const auto runtime = start(2);
  struct Flush : TurnTask {
    Flush() : TurnTask([](TurnTask& self) noexcept { ++static_cast<Flush&>(self).runs; }) {}
    int runs = 0;
  } flush;
  Signal done;
  ASSERT_TRUE(runtime->post(0, [&] {
    Core::current()->at_turn_end(flush);
    Core::current()->at_turn_end(flush);
    EXPECT_EQ(flush.runs, 0);
    done.give();
  }));
  ASSERT_TRUE(done.take());
  ASSERT_TRUE(runtime->post(0, [&] { done.give(); }));
  ASSERT_TRUE(done.take());
  ASSERT_TRUE(runtime->stop(soon()));
  EXPECT_EQ(flush.runs, 1);
}

}  // namespace
}  // namespace weft::rt
