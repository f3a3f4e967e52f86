// SPDX-License-Identifier: MIT
#include "weft/rt/core/runtime.h"

#include <algorithm>
#include <bitset>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>

#include "weft/rt/exec/job_run.h"
#include "weft/sync/condition.h"
#include "weft/sys/cpu.h"
#include "weft/sys/signals.h"
#include "weft/sys/topology.h"

namespace weft::rt {

namespace {
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a runtime");

// Each processor is one that the calling thread may use, and stands once in the list.
Result<void> check_cpus(const RuntimeOptions& options) {
  if (options.cpus.empty()) {
    return {};
  }
  if (options.cpus.size() > Runtime::kCoresMax || (options.cores != 0 && options.cores != options.cpus.size())) {
    return Error(Errc::invalid_argument, "`cores` is 0 or the number of `cpus`, and that is at most 512");
  }
  std::vector<unsigned> free = sys::allowed_cpu_ids();
  for (const unsigned cpu : options.cpus) {
    if (cpu >= sys::ThreadOptions::kCpusMax || std::erase(free, cpu) == 0) {
      return Error(Errc::invalid_argument, "a processor of `cpus` is not allowed to this thread, or is there twice");
    }
  }
  return {};
}
}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::start(const RuntimeOptions& options) {
  if (options.cores > kCoresMax || options.foreign_lanes == 0 || options.foreign_lanes > kForeignLanesMax ||
      options.lane_capacity == 0 || options.lane_capacity > kLaneCapacityMax || !options.latency.valid()) {
    return Error(Errc::invalid_argument, "the bounds of a runtime");
  }
  try {
    WEFT_TRY(check_cpus(options));
    auto runtime = std::unique_ptr<Runtime>(new (std::nothrow) Runtime(options));
    if (runtime == nullptr) {
      return kNoMemory;
    }
    runtime->choose_places();
    WEFT_TRY(runtime->start_threads());
    return runtime;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

Runtime::~Runtime() {
  if (birth_.elsewhere()) {
    for (auto& core : cores_) {
      (void)core.release();  // its poller is the parent's too
    }
    return;
  }
  gone_->store(true, std::memory_order_relaxed);  // a hint: the same thread destroys the rest then, or later
  (void)stop(Instant());
  threads_.clear();  // joins them
  // While every core is still there: a message's destructor may post, and gets an error.
  for (const auto& core : cores_) {
    if (core != nullptr) {
      core->drop_messages();
    }
  }
}

// Beside its operator delete, which GCC does not match with the global operator new.
[[gnu::noinline]] void* Runtime::operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  return ::operator new(size, tag);
}
void Runtime::operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { ::operator delete(memory); }
void Runtime::operator delete(Runtime* runtime, std::destroying_delete_t /*tag*/) noexcept {
  if (runtime->own_core() == nullptr || runtime->birth_.elsewhere()) {
    runtime->~Runtime();
    ::operator delete(static_cast<void*>(runtime));
    return;
  }
  runtime->gone_->store(true, std::memory_order_relaxed);  // as in the destructor
  // That thread waits for the end of this core's, and so for this call.
  if (auto ender = sys::Thread::start([](void* self) { delete static_cast<Runtime*>(self); }, runtime)) {
    runtime->ender_ = std::move(ender).value();
  }
}

// Chooses the number of cores and their processors: see Pinning.
void Runtime::choose_places() {
  std::vector<unsigned> allowed = sys::allowed_cpu_ids();
  const auto& wanted = options_.thread.cpus;
  std::erase_if(allowed, [&](unsigned cpu) { return cpu >= wanted.size() || (wanted.any() && !wanted[cpu]); });
  const auto places = sys::physical_cores(allowed);
  // The first call of this in the process, because sys keeps the answer: a thread that is already pinned would count
  // only its own processor.
  const bool limited = sys::quota_limited();
  const auto room = static_cast<unsigned>(places.size());
  const auto& listed = options_.cpus;
  auto count = listed.empty() ? options_.cores : static_cast<unsigned>(listed.size());
  if (count == 0) {
    count = std::clamp(limited ? std::min(room, sys::allowed_cpus()) : room, 1u, kCoresMax);
  }
  if (count > room && wait_mode_ == sync::WaitMode::adaptive) {
    wait_mode_ = sync::WaitMode::eco;  // a core that spins takes the processor from another core
  }
  const bool pinned =
      options_.pinning == Pinning::always || (options_.pinning == Pinning::automatic && count == room && !limited);
  cores_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    seeds_.push_back({this, i, options_.thread});
    if (!listed.empty()) {
      seeds_[i].thread.cpus.reset().set(listed[i]);
    } else if (pinned && i < room) {
      seeds_[i].thread.cpus.reset().set(places[i].cpu);
    }
  }
}

Result<void> Runtime::start_threads() {
  threads_.reserve(seeds_.size());
  const sys::SignalsBlocked blocked;  // signals are for the application's threads
  for (Seed& seed : seeds_) {
    auto thread = sys::Thread::start(
        [](void* argument) {
          const auto& mine = *static_cast<Seed*>(argument);
          mine.runtime->run_core(mine);
        },
        &seed);
    if (!thread) {
      const sync::LockGuard lock(mutex_);
      start_error_ = thread.error();
      break;
    }
    threads_.push_back(std::move(*thread));
  }
  sync::UniqueLock lock(mutex_);
  while (waiting_ != threads_.size()) {
    changed_.wait(lock);
  }
  phase_.store(start_error_ == Errc::ok ? Phase::running : Phase::ended, std::memory_order_release);
  changed_.notify_all();
  return start_error_ == Errc::ok ? Result<void>() : start_error_;
}

// Makes the core in its own thread, so that its memory is near the processor of that thread.
void Runtime::run_core(const Seed& seed) {
  const unsigned index = seed.index;
  char name[16];
  std::snprintf(name, sizeof name, "%.11s-%u", options_.thread_name, index);
  sys::set_up_thread(name, seed.thread);
  Result<std::unique_ptr<Core>> made = kNoMemory;
  try {
    made = Core::make(*this, index, size(), options_.foreign_lanes, options_.lane_capacity, options_.poller);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the result has it
  }
  {
    sync::UniqueLock lock(mutex_);
    if (made) {
      cores_[index] = std::move(*made);
    } else {
      start_error_ = made.error();
    }
    ++waiting_;
    changed_.notify_all();
    while (phase_.load(std::memory_order_relaxed) == Phase::starting) {
      changed_.wait(lock);
    }
    if (start_error_ != Errc::ok) {
      return;
    }
  }
  cores_[index]->run(cores_, wait_mode_, options_.latency);
  const sync::LockGuard lock(mutex_);
  ++ended_;
  changed_.notify_all();
}

unsigned Runtime::foreign_ordinal() noexcept {
  static std::atomic<unsigned> next{0};
  static thread_local const unsigned mine = next.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

void Runtime::note_turn() noexcept {
  const sync::LockGuard lock(mutex_);
  changed_.notify_all();
}

// Whether no message is in a lane or runs, nor may follow from one (Aftermath). A job that was posted to a core's loop
// counts as a message. Mattern's double count: first sum the messages executed, then those sent. The counts only grow,
// so if the sums are equal, they were equal in between.
// The sender counts before it sends, and the receiver after it ran the message, both with release: a thread that sees a
// count sees the counts before it.
bool Runtime::quiescent() const noexcept {
  std::uint64_t executed = 0;
  std::bitset<kCoresMax> with_mail;
  for (unsigned i = 0; i < size(); ++i) {
    const Core& core = *cores_[i];
    const auto mail = core.aftermath_.mail_done();
    with_mail[i] = mail.has_value();
    executed += core.dropped_.load(std::memory_order_acquire) +
                core.counters_.executed.load(std::memory_order_acquire) + core.aftermath_.ended() + mail.value_or(0);
  }
  std::uint64_t sent = 0;
  for (unsigned i = 0; i < size(); ++i) {
    const CoreCounts counts = cores_[i]->counts();
    sent += counts.posted + counts.foreign_posted + cores_[i]->aftermath_.begun() +
            (with_mail[i] ? cores_[i]->loop_->mailed() : 0);
  }
  return executed == sent;
}

template <typename Condition>
bool Runtime::wait_until(Instant deadline, Condition condition) {
  sync::UniqueLock lock(mutex_);
  for (;;) {
    if (condition()) {
      return true;
    }
    if (!sync::sleep_until(changed_, lock, deadline)) {
      return false;
    }
  }
}

Result<void> Runtime::stop(Instant deadline) {
  if (own_core() != nullptr) {
    return Error(Errc::invalid_state, "a core cannot wait for its own end");
  }
  if (birth_.elsewhere()) {
    return detail::kInherited;
  }
  const auto begin = [this] {
    sync::assume_locked(mutex_);
    return !std::exchange(stop_runs_, true);
  };
  if (!wait_until(deadline, begin)) {
    return Error(Errc::timed_out, "another stop() waits");
  }
  const auto result = stop_once(deadline);
  const sync::LockGuard lock(mutex_);
  stop_runs_ = false;
  changed_.notify_all();
  return result;
}

Result<void> Runtime::stop_once(Instant deadline) {
  bool drained = true;
  if (phase_.load(std::memory_order_relaxed) == Phase::running) {
    for (const auto& core : cores_) {
      core->close_foreign();
    }
    phase_.store(Phase::draining, std::memory_order_relaxed);
    for (const auto& core : cores_) {
      core->ring(Core::kTurn);
    }
    drained = wait_until(deadline, [this] { return quiescent(); });
    phase_.store(Phase::ended, std::memory_order_relaxed);
    for (const auto& core : cores_) {
      core->stop();
    }
  }
  const auto all_ended = [this] {
    sync::assume_locked(mutex_);
    return ended_ == threads_.size();
  };
  if (!wait_until(deadline, all_ended)) {
    return Error(Errc::timed_out, "a job still runs");
  }
  threads_.clear();
  const sync::LockGuard lock(mutex_);
  ended_ = 0;
  return drained ? Result<void>() : Error(Errc::timed_out, "messages were left");
}

namespace {
constexpr CounterRow kRuntimeRows[] = {WEFT_RUNTIME_GAUGES(WEFT_COUNTER_ROW)};
static_assert(std::size(kRuntimeRows) == sync::count_of_rows<RuntimeNumbers>());
}  // namespace
constinit const CounterTable kRuntimeTable = {"runtime",
                                              "An `rt::Runtime`: the label `poller` names the kernel's interface that "
                                              "its cores wait in, and `poller_refused` the "
                                              "reason if that is not the requested one.",
                                              kRuntimeRows};

namespace {
std::vector<CounterLabel> labels_of(unsigned core, std::string_view runtime) {
  std::vector<CounterLabel> labels = {{"core", std::to_string(core)}};
  if (!runtime.empty()) {
    labels.push_back({"runtime", std::string(runtime)});
  }
  return labels;
}

CounterReading read_runtime(const Runtime& runtime, std::string_view name) {
  const sys::PollerChoice& choice = runtime.poller();
  std::vector<CounterLabel> labels = {{"poller", sys::describe(choice.kind)}};
  if (!(choice.refusal == Errc::ok)) {
    labels.push_back({"poller_refused", choice.refusal.message()});
  }
  if (!name.empty()) {
    labels.push_back({"runtime", std::string(name)});
  }
  const RuntimeNumbers numbers{runtime.size(), runtime.messages_queued()};
  return {&kRuntimeTable, std::move(labels), sync::read_counters(numbers)};
}

CounterReading read_turn(Core& core, std::vector<CounterLabel> labels) {
  const Instant now = sys::now();
  const auto busy = core.loop().activity()->busy_since(now - CoreTurn::kShown);
  CoreTurn turn;
  std::string handler;
  if (busy) {
    turn.milliseconds = static_cast<std::uint64_t>((now - busy->since) / std::chrono::milliseconds(1));
    handler = busy->name != nullptr ? std::string(busy->name->call) : busy->text();
    handler += busy->detail ? " (frame " + std::to_string(*busy->detail) + ")" : "";
  }
  labels.push_back({"handler", std::move(handler)});
  labels.push_back({"service", busy && busy->name != nullptr ? std::string(busy->name->owner) : std::string()});
  return {&kCoreTurnTable, std::move(labels), sync::read_counters(turn)};
}
}  // namespace

std::uint64_t Runtime::messages_queued() const noexcept {
  std::uint64_t done = 0;  // read first: a message is posted before it is done
  for (const auto& core : cores_) {
    done += core->dropped_.load(std::memory_order_acquire) + core->counters_.executed.load(std::memory_order_acquire);
  }
  std::uint64_t posted = 0;
  for (const auto& core : cores_) {
    const CoreCounts counts = core->counts();
    posted += counts.posted + counts.foreign_posted;
  }
  return posted - std::min(posted, done);
}

sync::DurationSource Runtime::duration_source() {
  return [this](std::string_view name, sync::DurationReadings& into) {
    for (unsigned index = 0; index < size(); ++index) {
      into.push_back({&kCoreLagRow, labels_of(index, name), core(index).loop().activity()->lags()});
    }
  };
}

CounterSource Runtime::counter_source() {
  return [this](std::string_view name, CounterReadings& into) {
    into.push_back(read_runtime(*this, name));
    for (unsigned index = 0; index < size(); ++index) {
      std::vector<CounterLabel> labels = labels_of(index, name);
      into.push_back({&kCoreTable, labels, sync::read_counters(core(index).counts())});
      into.push_back(read_turn(core(index), std::move(labels)));
    }
  };
}

}  // namespace weft::rt
