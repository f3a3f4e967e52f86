// SPDX-License-Identifier: MIT
// Jobs that an executor drops: where their destructors run, and the calls that these may make.
#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "weft/rt/exec/test_executors.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Signal;

// A job whose destructor calls a function.
class AtDrop {
 public:
  explicit AtDrop(std::function<void()> function) : function_(std::move(function)) {}
  AtDrop(AtDrop&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  AtDrop& operator=(AtDrop&&) = delete;
  ~AtDrop() {
    if (function_) {
      function_();
    }
  }
  void operator()() const { ADD_FAILURE() << "a job that was to be dropped runs"; }

 private:
  std::function<void()> function_;
};

// A destructor that runs until it may end.
struct Slow {
  Signal begun;
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
  AtDrop job() {
    return AtDrop([this] {
      begun.give();
      while (!may_end.load()) {
        std::this_thread::yield();
      }
      ended.store(true);
    });
  }
};

// Another thread's stop(), which must not return while the destructor runs.
void expect_that_a_stop_waits_for(Slow& slow, Executor& executor) {
  std::atomic<bool> returned{false};
  std::thread stopper([&] {
    (void)executor.stop(StopMode::drain, kNever);
    returned.store(true);
    EXPECT_TRUE(slow.ended.load()) << "stop() returned while a dropped job's destructor ran";
  });
  for (int i = 0; i < 500 && !returned.load(); ++i) {  // for a stop() that does not wait
    std::this_thread::yield();
  }
  slow.may_end.store(true);
  stopper.join();
}

enum class By : std::uint8_t { token, stop };  // how a delayed job is dropped
constexpr By kWays[] = {By::token, By::stop};

void drop(By way, std::stop_source& source, Executor& executor) {
  if (way == By::token) {
    source.request_stop();
  } else {
    (void)executor.stop(StopMode::abandon, kNever);
  }
}

class Dropping : public testing::TestWithParam<test::Kind> {};

TEST_P(Dropping, AStopWaitsForTheDestructorsThatAnotherThreadRuns) {
  for (const By way : kWays) {
    const test::Made made = GetParam().make({});
    Slow slow;
    std::stop_source source;
    const Future<void> future = made.executor->submit_after(1h, source.get_token(), slow.job());
    std::thread dropper([&] { drop(way, source, *made.executor); });
    ASSERT_TRUE(slow.begun.take());
    expect_that_a_stop_waits_for(slow, *made.executor);
    EXPECT_TRUE(future.ready());
    dropper.join();
  }
}

TEST_P(Dropping, AStopWaitsForADestructorUntilItsDeadline) {
  const test::Made made = GetParam().make({});
  Slow slow;
  std::stop_source source;
  ASSERT_TRUE(made.executor->execute_after(1h, source.get_token(), slow.job()));
  std::thread dropper([&] { source.request_stop(); });
  ASSERT_TRUE(slow.begun.take());
  EXPECT_EQ(made.executor->stop(StopMode::drain, deadline_after(sys::now(), 1ms)).error(), Errc::timed_out);
  slow.may_end.store(true);
  EXPECT_TRUE(made.executor->stop(StopMode::drain, kNever));
  EXPECT_TRUE(slow.ended.load());
  dropper.join();
}

TEST_P(Dropping, ADestructorThatStopsItsOwnExecutorIsToldThatItCannotWait) {
  for (const By way : kWays) {
    const test::Made made = GetParam().make({});
    std::stop_source source;
    Result<void> stopped;
    ASSERT_TRUE(made.executor->execute_after(1h, source.get_token(),
                                             AtDrop([&] { stopped = made.executor->stop(StopMode::drain, kNever); })));
    drop(way, source, *made.executor);
    EXPECT_EQ(stopped.error(), Errc::invalid_state);
    EXPECT_TRUE(made.executor->stop(StopMode::drain, kNever));
    EXPECT_EQ(made.executor->counts().abandoned, 1u);
  }
}

TEST_P(Dropping, ADestructorMayDestroyItsOwnExecutor) {
  for (const By way : kWays) {
    test::Made made = GetParam().make({});
    std::stop_source source;
    std::atomic<int> dropped{0};
    ASSERT_TRUE(made.executor->execute_after(1h, source.get_token(), AtDrop([&] {
                                               made.executor.reset();
                                               dropped.fetch_add(1);
                                             })));
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(made.executor->execute_after(1h, AtDrop([&] { dropped.fetch_add(1); })));
    }
    drop(way, source, *made.executor);
    EXPECT_EQ(made.executor, nullptr);
    EXPECT_EQ(dropped.load(), 4);
  }
}

std::string name_of_kind(const testing::TestParamInfo<test::Kind>& each) { return each.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Dropping, testing::ValuesIn(test::kKinds), name_of_kind);

// --- jobs that wait in a queue ---

// The jobs that keep an executor of this kind from its queue; 0: it has no queue.
int jobs_to_block(const test::Kind& kind) {
  const std::string name = kind.name;
  return !kind.has_threads ? 0 : name == "fixed_pool" || name == "dynamic_pool" ? 3 : 1;
}

TEST(DroppingFromAQueue, AStopWaitsForTheDestructorsThatAnotherStopRuns) {
  for (const test::Kind& kind : test::kKinds) {
    SCOPED_TRACE(kind.name);
    if (const int blocking = jobs_to_block(kind); blocking > 0) {
      const test::Made made = kind.make({});
      test::Blocker blocker;
      ASSERT_TRUE(blocker.block(*made.executor, blocking));
      Slow slow;
      ASSERT_TRUE(made.executor->execute(slow.job()));
      std::thread dropper([&] { (void)made.executor->stop(StopMode::abandon, kNever); });
      ASSERT_TRUE(slow.begun.take());
      blocker.release();
      expect_that_a_stop_waits_for(slow, *made.executor);
      dropper.join();
    }
  }
}

TEST(DroppingFromAQueue, ADestructorMayDestroyItsOwnExecutor) {
  for (const test::Kind& kind : test::kKinds) {
    SCOPED_TRACE(kind.name);
    if (const int blocking = jobs_to_block(kind); blocking > 0) {
      test::Made made = kind.make({});
      test::Blocker blocker;
      ASSERT_TRUE(blocker.block(*made.executor, blocking));
      std::atomic<int> dropped{0};
      ASSERT_TRUE(made.executor->execute(AtDrop([&] {
        made.executor.reset();
        dropped.fetch_add(1);
        blocker.release();
      })));
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(made.executor->execute(AtDrop([&] { dropped.fetch_add(1); })));
      }
      (void)made.executor->stop(StopMode::abandon, kNever);
      EXPECT_EQ(made.executor, nullptr);
      EXPECT_EQ(dropped.load(), 4);
    }
  }
}

}  // namespace
}  // namespace weft::rt
