// SPDX-License-Identifier: MIT
// The suite of everything that takes jobs, one line per kind: taken = executed + abandoned (+ waiting), and each future
// ends when its executor does.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/rt/exec/test_executors.h"
#include "weft/rt/task/task_scope.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using namespace std::chrono_literals;
using test::Signal;

// Ledger: counts the ends of closures.
struct Ledger {
  std::atomic<std::uint64_t> alive{0};
  std::atomic<std::uint64_t> ran{0};
  std::atomic<std::uint64_t> dropped{0};  // destroyed without a call
};

// A closure that its ledger counts: one life, whatever moves it.
class Tracked {
 public:
  explicit Tracked(Ledger& ledger, std::function<void()> work = {}, std::function<void()> at_drop = {})
      : ledger_(&ledger), work_(std::move(work)), at_drop_(std::move(at_drop)) {
    ledger.alive.fetch_add(1);
  }
  Tracked(Tracked&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)),
        ran_(other.ran_),
        work_(std::move(other.work_)),
        at_drop_(std::move(other.at_drop_)) {}
  Tracked& operator=(Tracked&&) = delete;
  ~Tracked() {
    if (ledger_ != nullptr) {
      if (!ran_ && at_drop_) {
        at_drop_();
      }
      ledger_->dropped.fetch_add(ran_ ? 0 : 1);
      ledger_->alive.fetch_sub(1);
    }
  }
  void operator()() {
    EXPECT_FALSE(std::exchange(ran_, true)) << "a job ran twice";
    ledger_->ran.fetch_add(1);
    if (work_) {
      work_();
    }
  }

 private:
  Ledger* ledger_;
  bool ran_ = false;
  std::function<void()> work_;
  std::function<void()> at_drop_;
};

struct Counts {
  std::uint64_t executed;
  std::uint64_t abandoned;
};

// One that takes jobs. Destruction ends it.
class Subject {
 public:
  Subject() = default;
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  virtual ~Subject() = default;
  virtual bool take(Tracked job) = 0;  // false: refused
  virtual Future<int> submit(std::function<int()> job) = 0;
  // Waits until it has ended.
  virtual void stop(StopMode mode) = 0;
  virtual std::optional<Counts> counts() { return std::nullopt; }
  virtual Executor* executor() { return nullptr; }
};

class ExecutorSubject final : public Subject {
 public:
  explicit ExecutorSubject(const test::Kind& kind) : made_(kind.make({})) {}
  ~ExecutorSubject() override { made_.executor.reset(); }  // before the executor below it
  bool take(Tracked job) override { return made_.executor->execute(std::move(job)).has_value(); }
  Future<int> submit(std::function<int()> job) override { return made_.executor->submit(std::move(job)); }
  void stop(StopMode mode) override { (void)made_.executor->stop(mode, kNever); }
  std::optional<Counts> counts() override {
    const ExecutorCounts counts = made_.executor->counts();
    return Counts{counts.executed, counts.abandoned};
  }
  Executor* executor() override { return made_.executor.get(); }

 private:
  test::Made made_;
};

Task<void> run(Tracked job) {
  job();
  co_return;
}
Task<int> answer(std::function<int()> job) { co_return job(); }

class LoopSubject : public Subject {
 public:
  LoopSubject() { EXPECT_TRUE(loop_->start(nullptr)); }
  bool take(Tracked job) override {
    Job made(std::move(job));
    return loop_->try_post(made).has_value();
  }
  Future<int> submit(std::function<int()> job) override { return spawn(*loop_, answer(std::move(job))); }
  void stop(StopMode /*mode*/) override { loop_->stop(); }

 protected:
  std::unique_ptr<Loop> loop_ = std::move(Loop::make("ending")).value();
};
class LoopTaskSubject final : public LoopSubject {
 public:
  bool take(Tracked job) override {
    const Future<void> future = spawn(*loop_, run(std::move(job)));
    return true;  // a future shows it
  }
};

class RuntimeSubject : public Subject {
 public:
  bool take(Tracked job) override { return runtime_->post(0, std::move(job)).has_value(); }
  Future<int> submit(std::function<int()> job) override {
    auto spawned = spawn(runtime_->core(0), answer(std::move(job)));
    return spawned ? std::move(spawned).value() : Future<int>(spawned.error());
  }
  void stop(StopMode mode) override {
    (void)runtime_->stop(mode == StopMode::drain ? kNever : Instant::min());
    (void)runtime_->stop(kNever);
  }
  std::optional<Counts> counts() override { return std::nullopt; }

 protected:
  std::unique_ptr<Runtime> runtime_ = test::start_runtime(1);
};
class CoreTaskSubject final : public RuntimeSubject {
 public:
  bool take(Tracked job) override { return spawn(runtime_->core(0), run(std::move(job))).has_value(); }
};

enum class Takes : std::uint8_t { jobs, jobs_that_stop, delayed_jobs };  // each takes the ones before, too
struct EndingRow {
  std::string name;
  Takes takes;
  std::function<std::unique_ptr<Subject>()> make;
};
std::vector<EndingRow> rows(Takes least) {
  std::vector<EndingRow> all;
  for (const test::Kind& kind : test::kKinds) {
    all.push_back({kind.name, Takes::delayed_jobs, [&kind] { return std::make_unique<ExecutorSubject>(kind); }});
  }
  all.push_back({"loop", Takes::jobs_that_stop, [] { return std::make_unique<LoopSubject>(); }});
  all.push_back({"loop_task", Takes::jobs_that_stop, [] { return std::make_unique<LoopTaskSubject>(); }});
  all.push_back({"runtime", Takes::jobs, [] { return std::make_unique<RuntimeSubject>(); }});
  all.push_back({"core_task", Takes::jobs, [] { return std::make_unique<CoreTaskSubject>(); }});
  std::erase_if(all, [least](const EndingRow& row) { return row.takes < least; });
  return all;
}

class Ending : public testing::TestWithParam<EndingRow> {
 protected:
  std::unique_ptr<Subject> subject_ = GetParam().make();
};
class EndingInside : public Ending {};
class EndingOfDelays : public Ending {};

void expect_ended(const Future<int>& future) { EXPECT_TRUE(future.ready()) << "a future outlives its executor"; }

TEST_P(Ending, EveryJobThatIsTakenRunsOnceOrIsDroppedWhileSeveralThreadsStop) {
  constexpr int kThreads = 3;
  constexpr int kJobs = 300;
  for (const StopMode mode : {StopMode::drain, StopMode::abandon}) {
    Ledger ledger;
    std::atomic<std::uint64_t> refused{0};
    subject_ = GetParam().make();
    std::vector<std::vector<Future<int>>> futures(kThreads);
    std::atomic<int> begun{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kJobs; ++i) {
          refused.fetch_add(subject_->take(Tracked(ledger)) ? 0 : 1);
          futures[static_cast<std::size_t>(t)].push_back(subject_->submit([i] { return i; }));
          begun.fetch_add(1);
        }
      });
    }
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        while (begun.load() < kJobs / 2) {
          std::this_thread::yield();
        }
        subject_->stop(mode);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    if (const auto counts = subject_->counts()) {
      std::uint64_t submitted = 0;
      for (const auto& mine : futures) {
        for (const Future<int>& future : mine) {
          expect_ended(future);
        }
      }
      for (auto& mine : futures) {
        for (Future<int>& future : mine) {
          const auto result = future.get();
          const bool taken = result || result.error() == Errc::terminated || result.error() == Errc::cancelled;
          submitted += taken ? 1 : 0;
        }
      }
      const std::uint64_t taken = kThreads * kJobs - refused.load() + submitted;
      EXPECT_EQ(counts->executed + counts->abandoned, taken);
    }
    subject_.reset();
    EXPECT_EQ(ledger.alive.load(), 0u);
    EXPECT_EQ(ledger.ran.load() + ledger.dropped.load(), static_cast<std::uint64_t>(kThreads * kJobs));
    for (const auto& mine : futures) {
      for (const Future<int>& future : mine) {
        expect_ended(future);
      }
    }
  }
}

TEST_P(Ending, AJobAfterTheStopIsRefusedAndDestroyedAndItsFutureHasEnded) {
  Ledger ledger;
  subject_->stop(StopMode::drain);
  (void)subject_->take(Tracked(ledger));
  EXPECT_EQ(ledger.alive.load(), 0u);
  EXPECT_EQ(ledger.ran.load(), 0u);
  Future<int> future = subject_->submit([] { return 1; });
  ASSERT_TRUE(future.ready());
  const Error error = future.get().error();
  EXPECT_TRUE(error == Errc::closed || error == Errc::terminated) << error.message();
}

TEST_P(Ending, AJobThatWasDroppedMayBringOthersInItsDestructor) {
  Ledger ledger;
  Ledger late;
  Signal begun;
  Signal go_on;
  std::thread holder([&] {  // an inline executor runs it here
    (void)subject_->take(Tracked(ledger, [&] {
      begun.give();
      EXPECT_TRUE(go_on.take());
    }));
  });
  ASSERT_TRUE(begun.take());
  std::thread stopper;
  Subject* const subject = subject_.get();  // also while it is being destroyed
  const auto bring = [&late, subject] { (void)subject->take(Tracked(late)); };
  for (int i = 0; i < 100 && GetParam().name.find("inline") == std::string::npos; ++i) {
    (void)subject_->take(Tracked(ledger, {}, bring));
  }
  stopper = std::thread([&] { subject_->stop(StopMode::abandon); });
  go_on.give();
  stopper.join();
  holder.join();
  for (int i = 0; i < 10; ++i) {
    (void)subject_->take(Tracked(ledger, {}, bring));
  }
  subject_.reset();
  EXPECT_EQ(ledger.alive.load(), 0u);
  EXPECT_EQ(late.alive.load(), 0u);
}

TEST_P(Ending, EveryStopReturnsAfterTheLastJob) {
  Ledger ledger;
  Signal begun;
  std::atomic<bool> go_on{false};
  std::atomic<bool> ended{false};
  std::thread holder([&] {
    (void)subject_->take(Tracked(ledger, [&] {
      begun.give();
      while (!go_on.load()) {
        std::this_thread::yield();
      }
      ended.store(true);
    }));
  });
  ASSERT_TRUE(begun.take());
  std::vector<std::thread> stoppers;
  std::atomic<int> stopping{0};
  for (int t = 0; t < 3; ++t) {
    stoppers.emplace_back([&] {
      stopping.fetch_add(1);
      subject_->stop(StopMode::drain);
      EXPECT_TRUE(ended.load()) << "a stop() returned while a job ran";
    });
  }
  while (stopping.load() < 3) {
    std::this_thread::yield();
  }
  go_on.store(true);
  for (std::thread& stopper : stoppers) {
    stopper.join();
  }
  holder.join();
}

TEST_P(EndingInside, ADestructorWaitsForTheJobThatStoppedItsOwnExecutor) {
  Ledger ledger;
  Signal stopped;
  std::atomic<bool> ended{false};
  Subject* const subject = subject_.get();
  std::thread holder([&] {
    (void)subject->take(Tracked(ledger, [&] {
      subject->stop(StopMode::drain);
      stopped.give();
      for (int i = 0; i < 1000; ++i) {
        std::this_thread::yield();
      }
      ended.store(true);
    }));
  });
  ASSERT_TRUE(stopped.take());
  subject_.reset();
  EXPECT_TRUE(ended.load());
  holder.join();
}

// --- delayed jobs: executors only ---

TEST_P(EndingOfDelays, ADelayedJobEndsWithItsExecutorAndNoneIsTakenAfterwards) {
  for (const StopMode mode : {StopMode::drain, StopMode::abandon}) {
    subject_ = GetParam().make();
    Ledger ledger;
    Executor& executor = *subject_->executor();
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(executor.execute_after(1h, Tracked(ledger)));
    }
    Future<void> future = executor.submit_after(1h, Tracked(ledger));
    (void)executor.stop(mode, kNever);
    EXPECT_EQ(ledger.alive.load(), 0u) << "a delayed job outlives stop()";
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.get().error(), Errc::terminated);
    EXPECT_EQ(executor.counts().abandoned, 11u);
    EXPECT_EQ(executor.counts().executed, 0u);
    EXPECT_EQ(executor.execute_after(1h, Tracked(ledger)).error(), Errc::closed);
    EXPECT_EQ(executor.submit_after(1h, Tracked(ledger)).get().error(), Errc::closed);
    EXPECT_EQ(executor.counts().refused, 2u);
    EXPECT_EQ(ledger.alive.load(), 0u);
  }
}

TEST_P(EndingOfDelays, ADelayedJobGoesAtOnceWhenItsTokenIsSetAndItsPlaceIsFree) {
  Ledger ledger;
  Executor& executor = *subject_->executor();
  for (int round = 0; round < 3; ++round) {
    std::stop_source source;
    Future<void> future = executor.submit_after(1h, source.get_token(), Tracked(ledger));
    for (int i = 0; i < 10; ++i) {
      EXPECT_TRUE(executor.execute_after(1h, source.get_token(), Tracked(ledger)));
    }
    source.request_stop();
    EXPECT_EQ(ledger.alive.load(), 0u) << "a cancelled job keeps its captures";
    ASSERT_TRUE(future.ready());
    EXPECT_EQ(future.get().error(), Errc::cancelled);
    Future<void> late = executor.submit_after(1h, source.get_token(), Tracked(ledger));
    EXPECT_EQ(late.get().error(), Errc::cancelled);
  }
  EXPECT_EQ(ledger.ran.load(), 0u);
  (void)executor.stop(StopMode::drain, kNever);
  EXPECT_EQ(executor.counts().abandoned, 36u);
}

TEST_P(EndingOfDelays, TokensThatAreSetWhileDelayedJobsComeAndGoLoseNone) {
  for (const StopMode mode : {StopMode::drain, StopMode::abandon}) {
    subject_ = GetParam().make();
    Executor& executor = *subject_->executor();
    constexpr std::uint64_t kJobs = 200;
    Ledger ledger;
    std::vector<std::stop_source> sources(kJobs);
    std::vector<Future<void>> futures;
    std::atomic<std::uint64_t> made{0};
    std::thread canceller([&] {
      for (std::uint64_t i = 0; i < kJobs; ++i) {
        while (made.load() < i) {
          std::this_thread::yield();
        }
        sources[i].request_stop();
      }
    });
    for (std::uint64_t i = 0; i < kJobs; ++i) {
      futures.push_back(executor.submit_after(Duration(1 + i % 3 * 100'000), sources[i].get_token(), Tracked(ledger)));
      made.fetch_add(1);
    }
    std::thread stopper([&] { (void)executor.stop(mode, kNever); });
    (void)executor.stop(mode, kNever);
    stopper.join();
    canceller.join();
    std::uint64_t taken = 0;
    for (Future<void>& future : futures) {
      ASSERT_TRUE(future.ready());
      const auto result = future.get();
      taken += result || result.error() != Errc::closed ? 1 : 0;
    }
    EXPECT_EQ(executor.counts().executed + executor.counts().abandoned, taken);
    EXPECT_EQ(ledger.alive.load(), 0u);
  }
}

std::string name_of_ending(const testing::TestParamInfo<EndingRow>& each) { return each.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Ending, testing::ValuesIn(rows(Takes::jobs)), name_of_ending);
INSTANTIATE_TEST_SUITE_P(All, EndingInside, testing::ValuesIn(rows(Takes::jobs_that_stop)), name_of_ending);
INSTANTIATE_TEST_SUITE_P(All, EndingOfDelays, testing::ValuesIn(rows(Takes::delayed_jobs)), name_of_ending);

// --- of pools and strands only: a full queue ---

TEST(EndingOfAFullQueue, AStopThatDrainsRunsTheDelayedJobsThatWaitForRoom) {
  ThreadPoolOptions options;
  options.queue_capacity = 2;
  const auto pool = std::move(ThreadPool::make_fixed(1, options)).value();
  test::Blocker blocker;
  ASSERT_TRUE(blocker.block(*pool));
  Ledger ledger;
  std::uint64_t taken = 1;
  while (pool->execute(Tracked(ledger))) {
    ++taken;
  }
  const std::uint64_t refused = pool->counts().refused;
  constexpr std::uint64_t kDelayed = 10;
  for (std::uint64_t i = 0; i < kDelayed; ++i) {
    EXPECT_TRUE(pool->execute_after(1ns, Tracked(ledger)));
  }
  EXPECT_EQ(pool->stop(StopMode::drain, Instant::min()).error(), Errc::timed_out);  // drops them: the deadline is over
  blocker.release();
  EXPECT_TRUE(pool->stop(StopMode::drain, kNever));
  EXPECT_EQ(pool->counts().executed + pool->counts().abandoned, taken + kDelayed);
  EXPECT_EQ(pool->counts().refused, refused) << "a delayed job that waits for room is not refused";
  EXPECT_EQ(ledger.alive.load(), 0u);
}

TEST(EndingOfAFullQueue, DelayedJobsThatAreDueRunWhenThereIsTime) {
  for (const bool of_a_strand : {false, true}) {
    ThreadPoolOptions options;
    options.queue_capacity = 2;
    const auto pool = std::move(ThreadPool::make_fixed(1, options)).value();
    Strand strand(*pool, 2);
    Executor& executor = of_a_strand ? static_cast<Executor&>(strand) : *pool;
    Ledger ledger;
    test::Blocker blocker;
    ASSERT_TRUE(blocker.block(executor));
    while (executor.execute(Tracked(ledger))) {
    }
    constexpr std::uint64_t kDelayed = 10;
    const std::uint64_t before = ledger.alive.load();
    for (std::uint64_t i = 0; i < kDelayed; ++i) {
      EXPECT_TRUE(executor.execute_after(1ns, Tracked(ledger)));
    }
    std::thread stopper([&] { EXPECT_TRUE(executor.stop(StopMode::drain, kNever)); });
    blocker.release();
    stopper.join();
    EXPECT_EQ(ledger.ran.load(), before + kDelayed);
    EXPECT_EQ(executor.counts().abandoned, 0u);
  }
}

TEST(EndingOfAStrand, ItsDelayedJobsGoWithItAndLeaveNoPlaceTaken) {
  const auto pool = std::move(ThreadPool::make_fixed(1)).value();
  Ledger ledger;
  Future<void> future;
  {
    Strand strand(*pool);
    future = strand.submit_after(1h, Tracked(ledger));
  }
  ASSERT_TRUE(future.ready());
  EXPECT_EQ(future.get().error(), Errc::terminated);
  EXPECT_EQ(ledger.alive.load(), 0u);
  EXPECT_EQ(pool->counts().abandoned, 1u) << "the pool let its own part of the job go";
}

}  // namespace
}  // namespace weft::rt
