// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

enum class HealthState : std::uint8_t {
  unknown,  // no run has ended yet
  healthy,
  degraded,  // the program works, but worse
  failed,
};
[[nodiscard]] std::string_view text_of(HealthState state) noexcept;  // "healthy"

// HealthResult: the result of one run of a check. `reason` is for people; may be empty.
struct HealthResult {
  HealthState state = HealthState::healthy;
  std::string reason{};
};

struct HealthCheck {
  std::string name;  // each once; not empty
  // Runs on the thread of this check and may block. An exception fails the check.
  std::function<HealthResult()> run;
  std::vector<std::string> depends_on{};         // names of checks: if one of them fails, this check fails, too
  Duration interval = std::chrono::seconds(10);  // from the end of a run to the next one
  Duration timeout = std::chrono::seconds(1);    // a run that lasts longer fails the check until it returns
  // If true, a failure makes /healthz of the admin port fail: an orchestrator restarts the program. Otherwise only
  // /readyz fails.
  bool vital = false;
};

// HealthStatus: a check at one moment, with the checks that it depends on.
struct HealthStatus {
  std::string name;
  HealthState state = HealthState::unknown;
  std::string reason;
  bool vital = false;
  Duration took{};  // the last run that ended
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;  // runs that failed, or that lasted longer than the time-out
};

// HealthChecks: runs the checks of a program, each in turn with its interval, and keeps their results.
// Owner: the program; the admin port shares it. Affinity: any thread.
// Cost: a thread for each check; a lock in a run and in statuses(). Nothing between runs.
// Invariants:
//   1. A run that does not return fails its own check, and delays no other check and no caller of statuses().
//   2. A check runs on one thread only, once at a time.
class HealthChecks {
 public:
  static constexpr std::size_t kChecksMax = 64;
  static constexpr std::size_t kReasonMax = 1024;  // bytes; the rest of a longer reason is cut

  // The first run of each check begins at once. Errors: invalid_argument (no name or function, a name twice, an unknown
  // dependency, a circle of dependencies, an interval or a time-out of zero or less, more than kChecksMax checks);
  // resource_exhausted (no thread or memory).
  [[nodiscard]] static Result<std::shared_ptr<HealthChecks>> start(std::vector<HealthCheck> checks);
  HealthChecks(const HealthChecks&) = delete;
  HealthChecks& operator=(const HealthChecks&) = delete;
  ~HealthChecks();  // waits for runs that have begun, except for the one that calls it

  [[nodiscard]] std::vector<HealthStatus> statuses() const;  // in the order of start(); throws std::bad_alloc
  // A run begins now, unless one has begun. Errors: invalid_argument (no check has the name).
  Result<void> run_now(std::string_view name);
  // Lines "check db: failed: no route" for checks that have failed or not run yet. `vital_only`: only vital ones, and
  // only those that failed: a program that starts is alive.
  [[nodiscard]] std::string complaints(bool vital_only) const;
  // Lines for degraded checks.
  [[nodiscard]] std::string remarks() const;
  // For Admin::add() and MetricSources::add(). The object may end before the page.
  [[nodiscard]] CounterSource counter_source() const;

 private:
  class Part;
  struct Core;

  explicit HealthChecks(std::shared_ptr<Core> core) noexcept;
  std::shared_ptr<Core> core_;
};

// clang-format off
#define WEFT_HEALTH_COUNTERS(ROW) \
  ROW(state, gauge, "state", "", "", "states", "The state: 0 not run yet, 1 healthy, 2 degraded, 3 failed.", \
      "serve/health/health_checks.cc") \
  ROW(runs, counter, "runs_total", "", "", "runs", "Runs that ended.", "serve/health/health_checks.cc") \
  ROW(failures, counter, "failures_total", "", "", "runs", "Runs that failed, or lasted longer than the time-out.", \
      "serve/health/health_checks.cc") \
  ROW(took_us, gauge, "last_run_us", "", "", "microseconds", "The time of the last run that ended.", \
      "serve/health/health_checks.cc")
// clang-format on

// HealthCounts: the numbers of one check.
struct HealthCounts {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_HEALTH_COUNTERS)
};
extern const CounterTable kHealthTable;

}  // namespace weft::serve
