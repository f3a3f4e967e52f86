// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/core.h"
#include "weft/rt/core/core_job.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/fork.h"

namespace weft::rt {

class Runtime;

namespace detail {

class ShardedState;

inline constexpr Error kNoInstance(Errc::closed, "the sharded object is stopped");

// ShardedPlace: the place of one core's instance.
// Affinity: its core, or after the core's end the thread that stops the object.
struct ShardedPlace final : CoreResident {
  struct Job final : CoreJob {
    explicit Job(ShardedPlace& of) noexcept;
    ShardedPlace& place;
  };

  ShardedPlace(ShardedState& of, unsigned index, std::uint64_t own) noexcept
      : CoreResident(own), state(of), core(index) {}

  ShardedState& state;
  const unsigned core;
  void* object = nullptr;
  std::size_t uses = 0;  // tasks that run on the object
  bool ending = false;   // the object takes no more calls, and ends after these tasks
  Job job{*this};
};

// ShardedState: the part of a Sharded that does not depend on its type.
// Owner: the Sharded; while a start or a stop is under way, its jobs too. Affinity: any thread.
class ShardedState : public std::enable_shared_from_this<ShardedState> {
 public:
  using Build = Result<void*>(void* make, Core& core);  // may throw
  using Destroy = void(void* object) noexcept;

  ShardedState(Runtime& runtime, Destroy* destroy);  // throws std::bad_alloc
  ShardedState(const ShardedState&) = delete;
  ShardedState& operator=(const ShardedState&) = delete;
  ~ShardedState();

  // Builds each instance on its core, and waits. Rethrows an exception of `build`. A failure leaves no instance.
  Result<void> start(Build* build, void* make);
  void begin_stop() noexcept;  // idempotent
  Result<void> stop(Instant deadline);
  [[nodiscard]] bool inherited() const noexcept { return birth_.elsewhere(); }  // in a forked child

  [[nodiscard]] Runtime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
  [[nodiscard]] unsigned cores() const noexcept { return cores_; }
  // The calling core's instance; null on another thread, and when it has ended.
  [[nodiscard]] void* here() const noexcept;
  // On a core: the place of its instance of that object; null if it takes no calls.
  [[nodiscard]] static ShardedPlace* find(std::uint64_t number) noexcept;

 private:
  friend struct ShardedPlace;
  enum class Phase : std::uint8_t { starting, running, stopping, stopped };

  void step(ShardedPlace& place) noexcept;
  void build_here(ShardedPlace& place) noexcept;
  void end_here(ShardedPlace& place) noexcept;
  void give(unsigned core) noexcept;
  void settle(Phase phase) noexcept;
  void end_without_cores() noexcept;

  Runtime& runtime_;
  Destroy* const destroy_;
  const std::uint64_t number_;
  const unsigned cores_;
  const std::shared_ptr<const std::atomic<bool>> runtime_gone_;
  const sys::Birth birth_;
  std::unique_ptr<std::unique_ptr<ShardedPlace>[]> places_;

  // Used by one job at a time: each gives the next.
  std::shared_ptr<ShardedState> keep_;
  Build* build_ = nullptr;  // null: the jobs end the instances
  void* make_ = nullptr;
  Result<void> built_;
  std::exception_ptr thrown_;

  sync::StdMutex mutex_;
  sync::Condition changed_;
  Phase phase_ WEFT_GUARDED_BY(mutex_) = Phase::starting;
};

// ShardedUse: a task that runs on the calling core's instance, which does not end before it.
class ShardedUse {
 public:
  explicit ShardedUse(std::uint64_t number) noexcept : place_(ShardedState::find(number)) {
    if (place_ != nullptr) {
      ++place_->uses;
    }
  }
  ShardedUse(const ShardedUse&) = delete;
  ShardedUse& operator=(const ShardedUse&) = delete;
  ~ShardedUse() {
    if (place_ != nullptr) {
      release();
    }
  }
  [[nodiscard]] void* object() const noexcept { return place_ == nullptr ? nullptr : place_->object; }

 private:
  void release() noexcept;
  ShardedPlace* place_;
};

}  // namespace detail
}  // namespace weft::rt
