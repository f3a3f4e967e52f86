// SPDX-License-Identifier: MIT
#include <array>
#include <optional>
#include <utility>

#include "tests/support/model_sites.h"
#include "tests/support/model_wait.h"
#include "weft/rt/exec/drop_count.h"
#include "weft/rt/exec/strand_queue.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using ModelWait = model::Wait;

// Ledger: the ends of the jobs.
struct Ledger {
  static constexpr int kJobs = 3;
  sync::Plain<int> runs_now = 0;  // only one job writes it at a time
  int taken[kJobs] = {};
  sync::Plain<int> ran[kJobs] = {0, 0, 0};
  sync::Plain<int> dropped[kJobs] = {0, 0, 0};
};

class ModelJob {
 public:
  ModelJob(Ledger& ledger, int number) : ledger_(&ledger), number_(number) {}
  ModelJob(ModelJob&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), number_(other.number_), ran_(other.ran_) {}
  ModelJob& operator=(ModelJob&& other) noexcept {
    reset();
    ledger_ = std::exchange(other.ledger_, nullptr);
    number_ = other.number_;
    ran_ = other.ran_;
    return *this;
  }
  ~ModelJob() { reset(); }
  void operator()() {
    model::require(ledger_->runs_now == 0, "two jobs run at a time");
    ledger_->runs_now = 1;
    ledger_->ran[number_] = ledger_->ran[number_] + 1;
    ran_ = true;
    ledger_->runs_now = 0;
  }
  void reset() {
    if (Ledger* const ledger = std::exchange(ledger_, nullptr); ledger != nullptr && !ran_) {
      ledger->dropped[number_] = ledger->dropped[number_] + 1;
    }
  }
  void forget() { ledger_ = nullptr; }

 private:
  Ledger* ledger_;
  int number_;
  bool ran_ = false;
};

// An executor with one worker and room for one job.
class OneWorker {
 public:
  template <typename Grant>
  Result<void> execute(Grant grant) {
    mutex_.lock();
    const bool takes = !closed_ && !grant_;
    if (takes) {
      grant_.emplace(std::move(grant));
    }
    const bool closed = closed_;
    mutex_.unlock();
    if (!takes) {
      return Error(closed ? Errc::closed : Errc::resource_exhausted);
    }
    event_.signal();
    return {};
  }
  void work() {
    for (;;) {
      mutex_.lock();
      std::optional<Job> grant = std::exchange(grant_, std::nullopt);
      const bool closed = closed_;
      mutex_.unlock();
      if (grant) {
        (*grant)();
      } else if (closed) {
        return;
      } else {
        event_.wait();
      }
    }
  }
  void stop(bool drops) {
    mutex_.lock();
    closed_ = true;
    std::optional<Job> dropped;
    if (drops) {
      dropped = std::exchange(grant_, std::nullopt);
    }
    mutex_.unlock();
    event_.signal();
  }
  [[nodiscard]] const OneWorker& stop_token() const { return *this; }
  [[nodiscard]] bool stop_requested() const { return true; }  // asked after a refusal: it is full, or was stopped

 private:
  model::Mutex mutex_;
  model::Event event_;
  std::optional<Job> grant_;
  bool closed_ = false;
};

struct ModelStrand {
  using Mutex = model::Mutex;
  using Parker = sync::BasicParker<ModelWait>;
  using Job = ModelJob;
  using Underlying = OneWorker;
  class RunScope {
   public:
    explicit RunScope(const void* strand) : place_(&inside_[model::this_thread()]) { *place_ = strand; }
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;
    ~RunScope() { *place_ = nullptr; }
    static bool inside(const void* strand) { return inside_[model::this_thread()] == strand; }
    static void forget_all() { inside_ = {}; }  // an execution that the checker abandoned has not unwound

   private:
    static inline std::array<const void*, 8> inside_{};
    const void** place_;
  };
  class Drops {
   public:
    class Scope {
     public:
      explicit Scope(Drops& drops) : drops_(drops) { drops_.count.begin(); }
      Scope(const Scope&) = delete;
      Scope& operator=(const Scope&) = delete;
      ~Scope() { drops_.count.end(); }

     private:
      Drops& drops_;
    };
    BasicDropCount<ModelWait> count;
  };
  static constexpr std::size_t kGrantMax = 1;  // so that a grant asks for the next
  static void yield() { model::require(false, "only one thread pushes here"); }
  static bool run(ModelJob& job, const ExceptionHandler& /*handler*/) {
    job();
    job.reset();
    return true;
  }
  static const void*& came_back() {
    static std::array<const void*, 8> strands{};
    return strands[static_cast<std::size_t>(model::this_thread())];
  }
};
using Queue = BasicStrandQueue<ModelStrand>;

struct Place {
  Place() { ModelStrand::RunScope::forget_all(); }

  void push(int number) {
    ModelJob job(ledger, number);
    ledger.taken[number] = strand->push(job) ? 1 : 0;
    if (ledger.taken[number] == 0) {
      job.forget();
    }
  }
  void wait() {
    const auto for_ever = [] { return Duration(-1); };
    model::require(strand->wait_until_quiet(for_ever, [] { return false; }), "the wait ended early");
    model::require(strand->drops.count.wait_until_none(for_ever), "the wait ended early");
  }
  // After the stop: the taken jobs have ended, and no job runs any longer.
  void stopped() {
    ledger.runs_now = 1;
    ledger.runs_now = 0;
    for (int i = 0; i < Ledger::kJobs; ++i) {
      ended_at_stop[i] = ledger.ran[i] + ledger.dropped[i];
    }
  }
  void check() {
    std::uint64_t executed = 0;
    std::uint64_t abandoned = 0;
    for (int i = 0; i < Ledger::kJobs; ++i) {
      model::require(ledger.ran[i] + ledger.dropped[i] == ledger.taken[i], "a job is lost, or ends twice");
      executed += static_cast<std::uint64_t>(ledger.ran[i]);
      abandoned += static_cast<std::uint64_t>(ledger.dropped[i]);
    }
    model::require(strand->counts.executed == executed && strand->counts.abandoned == abandoned, "wrong counts");
    for (int i = 0; i < Ledger::kJobs; ++i) {
      model::require(ended_at_stop[i] == ledger.ran[i] + ledger.dropped[i], "a job ended after the stop");
    }
  }

  OneWorker worker;
  std::shared_ptr<Queue> strand = std::make_shared<Queue>(worker, 8, ExceptionHandler());
  Ledger ledger;
  int ended_at_stop[Ledger::kJobs] = {};
};

void a_stop_that_drains_beside_pushes_and_the_run() {
  Place place;
  model::run_threads([&] { place.worker.work(); }, [&] { place.push(0), place.push(1); },
                     [&] {
                       place.strand->close();
                       place.wait();
                       place.stopped();
                       place.worker.stop(false);
                     });
  model::require(place.strand->counts.abandoned == 0, "a stop that drains drops a job");
  place.check();
}

void a_stop_that_abandons_beside_pushes_and_the_run() {
  Place place;
  model::run_threads([&] { place.worker.work(); }, [&] { place.push(0), place.push(1); },
                     [&] {
                       place.strand->abandon();
                       place.wait();
                       place.stopped();
                       place.worker.stop(false);
                     });
  place.check();
}

// The underlying executor may drop the grant before its execute() returns.
void a_stop_beside_an_underlying_executor_that_drops_the_grant() {
  Place place;
  model::run_threads([&] { place.push(0); }, [&] { place.worker.stop(true); },
                     [&] {
                       place.strand->close();
                       place.wait();
                       place.stopped();
                     });
  place.check();
}

// The grant waits for a worker that has no time.
void two_stops_without_a_worker() {
  Place place;
  place.push(0);
  model::run_threads(
      [&] {
        place.strand->close();
        place.wait();
        place.stopped();
      },
      [&] { place.strand->abandon(); });
  place.worker.stop(true);
  place.check();
}

void two_stops() {
  Place place;
  place.push(0);
  place.push(1);
  model::run_threads([&] { place.worker.work(); },
                     [&] {
                       place.strand->close();
                       place.wait();
                       place.stopped();
                       place.worker.stop(false);
                     },
                     [&] {
                       place.strand->abandon();
                       place.wait();
                     });
  place.check();
}

constexpr model::Scenario kScenarios[] = {
    {"a_stop_that_drains_beside_pushes_and_the_run", a_stop_that_drains_beside_pushes_and_the_run, {.preemptions = 2}},
    {"a_stop_that_abandons_beside_pushes_and_the_run",
     a_stop_that_abandons_beside_pushes_and_the_run,
     {.preemptions = 2}},
    {"a_stop_beside_an_underlying_executor_that_drops_the_grant",
     a_stop_beside_an_underlying_executor_that_drops_the_grant,
     {.preemptions = 3}},
    {"two_stops", two_stops, {.preemptions = 2}},
    {"two_stops_without_a_worker", two_stops_without_a_worker, {}},
};

// The queue orders by its mutex: there is no order to weaken.
TEST(StrandQueueModel, AStopEndsEveryJobAndWaitsForThem) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

}  // namespace
}  // namespace weft::rt
