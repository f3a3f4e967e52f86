// SPDX-License-Identifier: MIT
#include "weft/rt/core/core_job.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/task/task_time.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::Blocked;
using test::in_a_minute;
using test::on_core;
using test::Signal;
using test::start_runtime;

RuntimeOptions narrow_lanes() {
  RuntimeOptions options;
  options.lane_capacity = 1;
  return options;
}

// A job that calls a function.
class Calls final : public CoreJob {
 public:
  explicit Calls(std::function<void()> function)
      : CoreJob([](CoreJob& job) noexcept { static_cast<Calls&>(job).function_(); }), function_(std::move(function)) {}

 private:
  std::function<void()> function_;
};
class CallsAtEnd final : public TurnJob {
 public:
  explicit CallsAtEnd(std::function<void()> function)
      : TurnJob([](TurnJob& job) noexcept { static_cast<CallsAtEnd&>(job).function_(); }),
        function_(std::move(function)) {}

 private:
  std::function<void()> function_;
};

TEST(CoreJob, RunsOnTheCoresThreadWhoeverGivesIt) {
  const auto runtime = start_runtime(2);
  Signal done;
  const Core* ran_on = nullptr;
  Calls job([&] {
    ran_on = Core::current();
    done.give();
  });
  runtime->core(1).give(job);
  ASSERT_TRUE(done.take());
  EXPECT_EQ(ran_on, &runtime->core(1));
  for (const unsigned giver : {0u, 1u}) {
    ran_on = nullptr;
    on_core(*runtime, giver, [&] { runtime->core(1).give(job); });
    ASSERT_TRUE(done.take());
    EXPECT_EQ(ran_on, &runtime->core(1));
  }
}

TEST(CoreJob, NeedsNoRoomInALaneAndNoTurnOfTheCoreToBeTaken) {
  const auto runtime = start_runtime(2, narrow_lanes());
  Signal done;
  Calls job([&] { done.give(); });
  {
    Blocked blocked(*runtime, 1);
    while (runtime->post(1, [] {})) {
    }
    runtime->core(1).give(job);
  }
  ASSERT_TRUE(done.take());
  on_core(*runtime, 1, [&] {  // its own lane, which only this core empties
    while (runtime->post(1, [] {})) {
    }
    runtime->core(1).give(job);
  });
  ASSERT_TRUE(done.take());
}

// A job that notes how many messages ran before it.
struct Counting {
  Signal done;
  std::atomic<int> before{0};
  int seen = 0;
  Calls job{[this] {
    seen = before.load();
    done.give();
  }};
};

// A core runs at most 256 messages of a lane in a turn.
TEST(CoreJob, RunsAfterAllThatItsGiverPostedBefore) {
  constexpr int kMessages = 1000;
  const auto runtime = start_runtime(2);
  Counting counting;
  auto& [done, before, seen, job] = counting;
  const auto post_and_give = [&](unsigned target) {
    before = 0;
    for (int i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(runtime->post(target, [&] { ++before; }));
    }
    runtime->core(target).give(job);
  };
  {
    Blocked blocked(*runtime, 1);
    post_and_give(1);
  }
  ASSERT_TRUE(done.take());
  EXPECT_EQ(seen, kMessages);
  for (const unsigned target : {0u, 1u}) {  // from core 0
    on_core(*runtime, 0, [&] { post_and_give(target); });
    ASSERT_TRUE(done.take());
    EXPECT_EQ(seen, kMessages);
  }
}

// A core runs at most 256 messages of a lane in a turn.
TEST(CoreJob, GivenBehindAllRunsAfterTheMessagesOfEveryThread) {
  constexpr int kMessages = 1000;
  const auto runtime = start_runtime(2);
  Counting counting;
  auto& [done, before, seen, job] = counting;
  const auto post = [&](int messages) {
    for (int i = 0; i < messages; ++i) {
      EXPECT_TRUE(runtime->post(1, [&] { ++before; }));
    }
  };
  {
    Blocked blocked(*runtime, 1);
    on_core(*runtime, 0, [&] { post(1); });  // the first lane is empty soon
    std::thread(post, kMessages).join();
    std::thread(post, kMessages).join();
    runtime->core(1).give_behind_all(job);
  }
  ASSERT_TRUE(done.take());
  EXPECT_EQ(seen, 1 + 2 * kMessages);
}

TEST(CoreJob, GivenBehindAllRunsAfterTheJobsOfTheLoop) {
  const auto runtime = start_runtime(1);
  Loop& loop = runtime->core(0).loop();
  std::vector<std::string> ran;
  Signal done;
  Calls job([&] {
    ran.emplace_back("given");
    done.give();
  });
  loop.post([&] {
    loop.post([&] { ran.emplace_back("posted"); });
    runtime->core(0).give_behind_all(job);
  });
  ASSERT_TRUE(done.take());
  EXPECT_EQ(ran, (std::vector<std::string>{"posted", "given"}));
}

TEST(CoreJob, MayGiveItselfAgainAndDestroyItself) {
  class Thrice final : public CoreJob {
   public:
    Thrice(Core& core, Signal& done) noexcept
        : CoreJob([](CoreJob& job) noexcept { static_cast<Thrice&>(job).run(); }), core_(core), done_(done) {}

   private:
    void run() noexcept {
      if (++runs_ < 3) {
        return core_.give(*this);
      }
      Signal& done = done_;
      delete this;
      done.give();
    }
    Core& core_;
    Signal& done_;
    int runs_ = 0;
  };
  const auto runtime = start_runtime(1);
  Signal done;
  runtime->core(0).give(*new Thrice(runtime->core(0), done));
  ASSERT_TRUE(done.take());
}

TEST(CoreJob, RunsInTheGiversThreadWhenTheCoreHasEnded) {
  const auto runtime = start_runtime(2);
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  std::vector<int> ran;
  Calls inner([&] {
    EXPECT_EQ(ran, std::vector<int>{1});  // not inside the other job
    ran.push_back(2);
  });
  Calls job([&] {
    EXPECT_TRUE(runtime->core(0).ended());
    EXPECT_EQ(Core::current(), nullptr);
    runtime->core(0).give(inner);
    ran.push_back(1);
  });
  runtime->core(0).give(job);
  EXPECT_EQ(ran, (std::vector<int>{1, 2}));
}

// The jobs of one core share their data.
TEST(CoreJob, EachRunsOnceAndNoTwoAtATimeWhileTheRuntimeStops) {
  constexpr int kThreads = 3;
  constexpr int kJobs = 100;
  for (int round = 0; round < 10; ++round) {
    const auto runtime = start_runtime(1, narrow_lanes());
    int runs = 0;  // no atomic
    std::atomic<bool> busy{false};
    std::vector<std::unique_ptr<Calls>> jobs;
    for (int i = 0; i < kThreads * kJobs; ++i) {
      jobs.push_back(std::make_unique<Calls>([&] {
        EXPECT_FALSE(busy.exchange(true));
        ++runs;
        busy = false;
      }));
    }
    std::vector<std::thread> givers;
    for (int thread = 0; thread < kThreads; ++thread) {
      givers.emplace_back([&, thread] {
        for (int i = 0; i < kJobs; ++i) {
          runtime->core(0).give(*jobs[static_cast<std::size_t>(thread * kJobs + i)]);
        }
      });
    }
    ASSERT_TRUE(runtime->stop(in_a_minute()));
    for (std::thread& giver : givers) {
      giver.join();
    }
    EXPECT_EQ(runs, kThreads * kJobs);
  }
}

Task<void> sleep_until_cancelled(bool* over) {
  (void)co_await sleep(std::chrono::hours(1));
  *over = true;
}

TEST(CoreEnd, AJobAtTheEndRunsOnTheCoreAfterItsCoroutines) {
  const auto runtime = start_runtime(1);
  Core& core = runtime->core(0);
  bool over = false;
  bool ran = false;
  bool taken_back = true;
  CallsAtEnd at_end([&] {
    EXPECT_TRUE(over);
    EXPECT_EQ(Core::current(), &core);
    EXPECT_TRUE(core.ended());
    EXPECT_EQ(runtime->post(0, [] {}).error(), Errc::closed);
    ran = true;
  });
  CallsAtEnd other([&] { taken_back = false; });
  on_core(*runtime, 0, [&] {
    EXPECT_TRUE(spawn(core, sleep_until_cancelled(&over)));
    core.at_end(at_end);
    core.at_end(other);
    other.unhook();
  });
  ASSERT_TRUE(runtime->stop(in_a_minute()));
  EXPECT_TRUE(ran);
  EXPECT_TRUE(taken_back);
}

}  // namespace
}  // namespace weft::rt
