// SPDX-License-Identifier: MIT
#include "weft/serve/health/health_checks.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include "weft/sync/condition.h"
#include "weft/sys/clock.h"
#include "weft/sys/signals.h"
#include "weft/sys/thread.h"

namespace weft::serve {

namespace {

constexpr CounterRow kHealthRows[] = {WEFT_HEALTH_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kHealthRows) == sync::count_of_rows<HealthCounts>());

std::string milliseconds(Duration duration) { return std::to_string(duration / std::chrono::milliseconds(1)) + " ms"; }

HealthResult run_check(const std::function<HealthResult()>& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    return {HealthState::failed, error.what()};
  } catch (...) {
    return {HealthState::failed, "the check threw"};
  }
}

// A reason stays one line of the page.
void bound(std::string& reason) {
  if (reason.size() > HealthChecks::kReasonMax) {
    reason.resize(HealthChecks::kReasonMax);
  }
  std::replace_if(reason.begin(), reason.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
}

}  // namespace

constinit const CounterTable kHealthTable = {
    "health_check", "A check of `serve::HealthChecks`: `admin->add(\"\", *checks)`, or `AdminOptions::health`.",
    kHealthRows};

std::string_view text_of(HealthState state) noexcept {
  constexpr std::string_view kTexts[] = {"not run yet", "healthy", "degraded", "failed"};
  return kTexts[static_cast<std::size_t>(state)];
}

// Part: one check and its thread.
class HealthChecks::Part {
 public:
  explicit Part(HealthCheck check) : check_(std::move(check)) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { end(); }

  // Waits for a run that has begun. Idempotent; one thread at a time.
  void end() noexcept {
    begin_end();
    thread_.join();
  }

  // The thread keeps the part: its check may destroy the HealthChecks.
  [[nodiscard]] static Result<void> start(const std::shared_ptr<Part>& part) {
    auto kept = std::make_unique<std::shared_ptr<Part>>(part);
    const auto run = [](void* argument) {
      const std::unique_ptr<std::shared_ptr<Part>> self(static_cast<std::shared_ptr<Part>*>(argument));
      (*self)->loop();
    };
    part->thread_ = WEFT_TRY(sys::Thread::start(run, kept.get()));
    (void)kept.release();
    return {};
  }
  // The thread ends after its run.
  void begin_end() noexcept {
    const sync::LockGuard lock(mutex_);
    ending_ = true;
    changed_.notify_one();
  }
  void run_now() noexcept {
    const sync::LockGuard lock(mutex_);
    wanted_ = true;
    changed_.notify_one();
  }
  // Without the checks that this one depends on.
  [[nodiscard]] HealthStatus status(Instant now) const {
    const sync::LockGuard lock(mutex_);
    HealthStatus status{check_.name, last_.state, last_.reason, check_.vital, took_, runs_, failures_};
    if (began_ && now - *began_ > check_.timeout) {
      status.state = HealthState::failed;
      status.reason = "has not returned for " + milliseconds(now - *began_);
      ++status.failures;
    }
    return status;
  }
  [[nodiscard]] const HealthCheck& check() const noexcept { return check_; }

 private:
  void loop() noexcept;
  void note(HealthResult&& result, Duration took) noexcept WEFT_REQUIRES(mutex_);

  const HealthCheck check_;
  mutable sync::StdMutex mutex_;
  sync::Condition changed_;
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  bool wanted_ WEFT_GUARDED_BY(mutex_) = false;           // run_now()
  std::optional<Instant> began_ WEFT_GUARDED_BY(mutex_);  // of the run that lasts
  HealthResult last_ WEFT_GUARDED_BY(mutex_){HealthState::unknown, {}};
  Duration took_ WEFT_GUARDED_BY(mutex_){};
  std::uint64_t runs_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t failures_ WEFT_GUARDED_BY(mutex_) = 0;
  sys::Thread thread_;
};

void HealthChecks::Part::loop() noexcept {
  sys::set_up_thread("health", {});
  sync::UniqueLock lock(mutex_);
  while (!ending_) {
    wanted_ = false;
    began_ = sys::now();
    lock.unlock();
    HealthResult result;
    try {
      result = run_check(check_.run);
      bound(result.reason);
    } catch (const std::bad_alloc&) {
      result.state = HealthState::failed;
    }
    const Instant ended = sys::now();
    lock.lock();
    note(std::move(result), ended - *std::exchange(began_, std::nullopt));
    const Instant next = deadline_after(ended, check_.interval);
    while (!ending_ && !wanted_ && sync::sleep_until(changed_, lock, next)) {
    }
  }
}

// A run that returned after its time-out has failed, whatever it returned.
void HealthChecks::Part::note(HealthResult&& result, Duration took) noexcept {
  last_ = std::move(result);
  took_ = took;
  ++runs_;
  if (took > check_.timeout) {
    last_.state = HealthState::failed;
    try {
      last_.reason = "took " + milliseconds(took) + ", at most " + milliseconds(check_.timeout) + " are permitted";
    } catch (const std::bad_alloc&) {
      last_.reason.clear();
    }
  }
  if (last_.state == HealthState::unknown) {
    last_.state = HealthState::healthy;  // a run has ended
  }
  failures_ += last_.state == HealthState::failed ? 1 : 0;
}

struct HealthChecks::Core {
  std::vector<std::shared_ptr<Part>> parts;  // in the order of start(). Immutable, as the next
  std::vector<std::size_t> order;            // indexes: a check after those that it depends on

  [[nodiscard]] std::size_t find(std::string_view name) const noexcept {
    const auto at =
        std::find_if(parts.begin(), parts.end(), [=](const auto& part) { return part->check().name == name; });
    return static_cast<std::size_t>(at - parts.begin());
  }
  [[nodiscard]] Result<void> sort();
  [[nodiscard]] std::vector<HealthStatus> statuses() const;
};

// Kahn's algorithm.
Result<void> HealthChecks::Core::sort() {
  std::vector<std::size_t> waits(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    waits[i] = parts[i]->check().depends_on.size();
    if (waits[i] == 0) {
      order.push_back(i);
    }
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    const std::string& name = parts[order[next]]->check().name;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& names = parts[i]->check().depends_on;
      const auto times = static_cast<std::size_t>(std::count(names.begin(), names.end(), name));
      waits[i] -= times;
      if (times != 0 && waits[i] == 0) {
        order.push_back(i);
      }
    }
  }
  return order.size() == parts.size() ? Result<void>()
                                      : Error(Errc::invalid_argument, "health checks depend on each other in a circle");
}

std::vector<HealthStatus> HealthChecks::Core::statuses() const {
  const Instant now = sys::now();
  std::vector<HealthStatus> statuses(parts.size());
  for (const std::size_t i : order) {
    HealthStatus& status = statuses[i];
    status = parts[i]->status(now);
    for (const std::string& name : parts[i]->check().depends_on) {
      if (statuses[find(name)].state == HealthState::failed && status.state != HealthState::failed) {
        status.state = HealthState::failed;
        status.reason = "depends on " + name + ", which has failed";
      }
    }
  }
  return statuses;
}

HealthChecks::HealthChecks(std::shared_ptr<Core> core) noexcept : core_(std::move(core)) {}

// The threads end at the same time, so the destructor waits for the longest run and not for the sum. A page of metrics
// may keep the core, so the destructor of the core does not suffice.
HealthChecks::~HealthChecks() {
  for (const auto& part : core_->parts) {
    part->begin_end();
  }
  for (const auto& part : core_->parts) {
    part->end();
  }
}

Result<std::shared_ptr<HealthChecks>> HealthChecks::start(std::vector<HealthCheck> checks) {
  try {
    if (checks.size() > kChecksMax) {
      return Error(Errc::invalid_argument, "there are more than 64 health checks");
    }
    auto core = std::make_shared<Core>();
    for (HealthCheck& check : checks) {
      if (check.name.empty() || !check.run || check.interval <= Duration::zero() || check.timeout <= Duration::zero()) {
        return Error(Errc::invalid_argument, "a health check needs a name, a function, an interval and a time-out");
      }
      if (core->find(check.name) != core->parts.size()) {
        return Error(Errc::invalid_argument, "two health checks have the same name");
      }
      core->parts.push_back(std::make_shared<Part>(std::move(check)));
    }
    for (const auto& part : core->parts) {
      for (const std::string& name : part->check().depends_on) {
        if (core->find(name) == core->parts.size()) {
          return Error(Errc::invalid_argument, "a health check depends on one that does not exist");
        }
      }
    }
    WEFT_TRY(core->sort());
    std::shared_ptr<HealthChecks> made(new HealthChecks(core));
    const sys::SignalsBlocked blocked;
    for (const auto& part : core->parts) {
      WEFT_TRY(Part::start(part));
    }
    return made;
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for the health checks");
  }
}

std::vector<HealthStatus> HealthChecks::statuses() const { return core_->statuses(); }

Result<void> HealthChecks::run_now(std::string_view name) {
  const std::size_t at = core_->find(name);
  if (at == core_->parts.size()) {
    return Error(Errc::invalid_argument, "no health check has this name");
  }
  core_->parts[at]->run_now();
  return {};
}

namespace {
void add_line(const HealthStatus& status, std::string& lines) {
  lines += "check " + status.name + ": " + std::string(text_of(status.state));
  lines += status.reason.empty() ? "\n" : ": " + status.reason + "\n";
}
}  // namespace

std::string HealthChecks::complaints(bool vital_only) const {
  std::string lines;
  for (const HealthStatus& status : statuses()) {
    const bool failed = status.state == HealthState::failed;
    if (vital_only ? status.vital && failed : failed || status.state == HealthState::unknown) {
      add_line(status, lines);
    }
  }
  return lines;
}

std::string HealthChecks::remarks() const {
  std::string lines;
  for (const HealthStatus& status : statuses()) {
    if (status.state == HealthState::degraded) {
      add_line(status, lines);
    }
  }
  return lines;
}

CounterSource HealthChecks::counter_source() const {
  return [weak = std::weak_ptr<const Core>(core_)](std::string_view name, CounterReadings& into) {
    const auto core = weak.lock();
    if (core == nullptr) {
      return;
    }
    for (const HealthStatus& status : core->statuses()) {
      HealthCounts counts;
      counts.state = static_cast<std::uint64_t>(status.state);
      counts.runs = status.runs;
      counts.failures = status.failures;
      counts.took_us = static_cast<std::uint64_t>(status.took / std::chrono::microseconds(1));
      std::vector<CounterLabel> labels{{"check", status.name}};
      if (!name.empty()) {
        labels.push_back({"health_checks", std::string(name)});
      }
      into.push_back({&kHealthTable, std::move(labels), sync::read_counters(counts)});
    }
  };
}

}  // namespace weft::serve
