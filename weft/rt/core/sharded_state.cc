// SPDX-License-Identifier: MIT
#include "weft/rt/core/sharded_state.h"

#include "weft/rt/core/runtime.h"
#include "weft/rt/exec/job_run.h"
#include "weft/sync/condition.h"

namespace weft::rt::detail {

namespace {

constexpr Error kWaitsForItself(Errc::invalid_state, "a core cannot wait for the others");
constexpr Error kNoCores(Errc::closed, "the runtime was stopped");
constexpr Error kTasksLeft(Errc::timed_out, "tasks still run on an instance, or a core is busy");

// Numbers of servers' starts have 16 bits, see CoreResident.
std::uint64_t next_number() noexcept {
  static std::atomic<std::uint64_t> next{std::uint64_t{1} << 16};
  return next.fetch_add(1, std::memory_order_relaxed);  // relaxed: the value alone
}

}  // namespace

ShardedPlace::Job::Job(ShardedPlace& of) noexcept
    : CoreJob([](CoreJob& job) noexcept {
        ShardedPlace& own = static_cast<Job&>(job).place;
        own.state.step(own);
      }),
      place(of) {}

ShardedState::ShardedState(Runtime& runtime, Destroy* destroy)
    : runtime_(runtime),
      destroy_(destroy),
      number_(next_number()),
      cores_(runtime.size()),
      runtime_gone_(runtime.gone()),
      places_(std::make_unique<std::unique_ptr<ShardedPlace>[]>(cores_)) {
  for (unsigned core = 0; core < cores_; ++core) {
    places_[core] = std::make_unique<ShardedPlace>(*this, core, number_);
  }
}

ShardedState::~ShardedState() = default;

void ShardedState::give(unsigned core) noexcept { runtime_.core(core).give(places_[core]->job); }

Result<void> ShardedState::start(Build* build, void* make) {
  if (Core::current() != nullptr) {
    return kWaitsForItself;
  }
  keep_ = shared_from_this();
  build_ = build;
  make_ = make;
  give(0);
  {
    sync::UniqueLock lock(mutex_);
    while (phase_ == Phase::starting) {
      changed_.wait(lock);
    }
  }
  if (thrown_) {
    // The job may still hold this state: the exception belongs to the caller alone from here on.
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
  return built_;
}

void ShardedState::step(ShardedPlace& place) noexcept {
  if (build_ != nullptr) {
    return build_here(place);
  }
  place.ending = true;
  if (place.uses == 0) {
    end_here(place);
  }
}

void ShardedState::build_here(ShardedPlace& place) noexcept {
  Core& core = runtime_.core(place.core);
  built_ = kNoCores;
  if (!core.ended()) {
    try {
      const Result<void*> object = build_(make_, core);
      built_ = object ? Result<void>() : Result<void>(object.error());
      place.object = object.value_or(nullptr);
    } catch (...) {
      built_ = Error(Errc::job_threw, "a constructor threw");
      thrown_ = std::current_exception();
    }
  }
  if (built_) {
    core.residents().push_back(place);
    if (place.core + 1 < cores_) {
      return give(place.core + 1);
    }
    build_ = nullptr;
    return settle(Phase::running);
  }
  build_ = nullptr;  // from now on the jobs end the instances that there are
  if (place.core == 0) {
    return settle(Phase::stopped);
  }
  give(place.core - 1);
}

void ShardedState::end_here(ShardedPlace& place) noexcept {
  place.unhook();
  destroy_(std::exchange(place.object, nullptr));
  if (place.core == 0) {
    return settle(Phase::stopped);
  }
  give(place.core - 1);
}

// The end of a chain of jobs. The caller of stop() may drop its reference as soon as it sees the phase.
void ShardedState::settle(Phase phase) noexcept {
  const std::shared_ptr<ShardedState> keep = std::move(keep_);
  const sync::LockGuard lock(mutex_);
  phase_ = phase;
  changed_.notify_all();
}

void ShardedState::begin_stop() noexcept {
  {
    const sync::LockGuard lock(mutex_);
    if (phase_ != Phase::running) {
      return;
    }
    phase_ = Phase::stopping;
  }
  if (runtime_gone_->load(std::memory_order_relaxed)) {  // its destructor came before this call
    return end_without_cores();
  }
  keep_ = shared_from_this();
  give(cores_ - 1);
}

void ShardedState::end_without_cores() noexcept {
  for (unsigned core = cores_; core-- != 0;) {
    destroy_(std::exchange(places_[core]->object, nullptr));
  }
  settle(Phase::stopped);
}

Result<void> ShardedState::stop(Instant deadline) {
  if (Core::current() != nullptr) {
    return kWaitsForItself;
  }
  if (inherited()) {
    return kInherited;
  }
  begin_stop();
  sync::UniqueLock lock(mutex_);
  while (phase_ != Phase::stopped) {
    if (!sync::sleep_until(changed_, lock, deadline)) {
      return kTasksLeft;
    }
  }
  return {};
}

void* ShardedState::here() const noexcept {
  const Core* const core = Core::current();
  return core != nullptr && &core->runtime() == &runtime_ ? places_[core->index()]->object : nullptr;
}

ShardedPlace* ShardedState::find(std::uint64_t number) noexcept {
  Core& core = *Core::current();
  const List<CoreResident>& residents = core.residents();
  for (CoreResident* resident = residents.first(); resident != nullptr; resident = residents.next(*resident)) {
    if (resident->number == number) {
      auto* const place = static_cast<ShardedPlace*>(resident);
      return place->ending ? nullptr : place;
    }
  }
  core.note_resident_missed();
  return nullptr;
}

// The last task of an instance that is to end. The job ends it: the task's frame is still in use here.
void ShardedUse::release() noexcept {
  if (--place_->uses == 0 && place_->ending) {
    Core::current()->give(place_->job);
  }
}

}  // namespace weft::rt::detail
