// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/list.h"
#include "weft/base/time.h"
#include "weft/rt/loop/activity.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/sync/counter.h"
#include "weft/sync/lock.h"

namespace weft::rt {

class Loop;
class TaskRunner;

// The result of an await whose task was cancelled.
inline constexpr Error kCancelled(Errc::cancelled, "the task was cancelled");

// CancelIgnored: the exception of an await whose task awaited kCancelledAwaitsMax times in a row after it was
// cancelled, and got kCancelled each time: a loop that does not check the results of its awaits. So such a task ends.
inline constexpr std::uint32_t kCancelledAwaitsMax = 10'000;
class CancelIgnored final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "weft: the task was cancelled, and went on awaiting: it does not check what its awaits return";
  }
};

namespace detail {

// Ready: one item that a TaskRunner runs next. In one list at a time.
class Ready : public ListHook {
 public:
  using Run = void (*)(Ready& self) noexcept;

  explicit Ready(Run function) noexcept : run_(function) {}
  void run() noexcept { run_(*this); }

 private:
  Run run_;
};

// Limits the number of coroutines that resume each other on one stack. Without tail calls (GCC without -O2, sanitizers)
// each of them takes a stack frame.
inline constexpr unsigned kTransfersMax = 64;
// How many calls of resume() are inside each other: tasks that start tasks. Those that come deeper start in the next
// turn.
inline constexpr unsigned kNestedMax = 16;

struct Trampoline {
  std::coroutine_handle<> next;  // resume() resumes it once the stack is short again
  unsigned left = 0;             // transfers until then; 0: this thread is not inside resume()
  unsigned depth = 0;            // calls of resume() that this thread is inside
};
inline constinit thread_local Trampoline trampoline{};

// await_suspend() returns this to resume `to`: symmetric transfer that does not rely on the compiler.
inline std::coroutine_handle<> transfer(std::coroutine_handle<> to) noexcept {
  Trampoline& state = trampoline;
  if (state.left > 1) [[likely]] {
    --state.left;
    return to;
  }
  if (state.left == 0) {
    return to;
  }
  state.next = to;
  return std::noop_coroutine();
}

// Whether a task that is to start waits for the next turn, so that the stack does not grow.
inline bool nested_too_deep() noexcept { return trampoline.depth >= kNestedMax; }

// Runs the coroutine until it waits, and each coroutine that it transfers to. May be nested.
inline void resume(std::coroutine_handle<> coroutine) noexcept {
  Trampoline& state = trampoline;
  const unsigned outer = std::exchange(state.left, kTransfersMax);
  ++state.depth;
  coroutine.resume();
  while (state.next) {
    state.left = kTransfersMax;
    std::exchange(state.next, nullptr).resume();
  }
  --state.depth;
  state.left = outer;
}

}  // namespace detail

class CancelScope;

namespace detail {
// The promise of a coroutine that lives in a CancelScope: of a Task.
template <typename Promise>
concept TaskPromise = requires(Promise& promise) {
  { promise.scope() } -> std::same_as<CancelScope&>;
};
}  // namespace detail

// Wait: one coroutine that waits for one event. An awaiter has or is a Wait; it is part of the coroutine's frame.
// Owner: the awaiter.
// Affinity: the runner's thread.
// Cost: 56 bytes, no allocation.
// Invariants:
//   1. After begin() the runner resumes the coroutine once: in its next turn after finish(), never inside finish().
//   2. finish() of a wait that is over does nothing.
//   3. The scope calls the cancel function at most once, and before finish(). The function detaches the wait from its
//      event and calls finish(), or makes sure that finish() comes soon.
//   4. Of the awaits of a cancelled coroutine that follow each other, the first ends at once, and each later one in the
//      next turn. So a coroutine that does not check its results cannot keep the runner's thread.
class Wait : public detail::Ready {
 public:
  using Cancel = void (*)(Wait& self) noexcept;

  explicit Wait(Cancel cancel) noexcept : Ready(run_wait), cancel_(cancel) {}

  // Returns false if the scope is cancelled already, and no wait for the event has begun. The await's result is
  // kCancelled, and await_suspend() returns deferred(). Throws CancelIgnored.
  [[nodiscard]] bool begin(CancelScope& scope, std::coroutine_handle<> coroutine);
  // After begin() returned false: whether the runner resumes the coroutine, in its next turn.
  [[nodiscard]] bool deferred() const noexcept { return row_ != 0; }
  // The same for an event that cannot be given up: the wait begins in a cancelled scope, too, which then does not call
  // the cancel function.
  void begin_always(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept;
  void finish() noexcept;
  [[nodiscard]] bool waiting() const noexcept { return waiting_; }
  // Whether the scope of the coroutine is cancelled, after begin(); false before.
  [[nodiscard]] bool cancelled() const noexcept;
  [[nodiscard]] TaskRunner& runner() const noexcept;  // requires begin()

 private:
  friend class CancelScope;
  static void run_wait(Ready& self) noexcept;
  void defer(CancelScope& scope, std::coroutine_handle<> coroutine);
  void run_deferred() noexcept;

  Cancel cancel_;
  CancelScope* scope_ = nullptr;
  std::coroutine_handle<> coroutine_;
  std::uint32_t row_ = 0;  // awaits in a row that were cancelled, with this one; 0: this one is not deferred
  bool waiting_ = false;
};

// CancelScope: coroutines that are cancelled together, in a tree. A coroutine is in the scope of its awaiter.
// Owner: an object that outlives every coroutine in the scope.
// Affinity: the runner's thread.
// Cost: no allocation; cancel() is O(all below).
// Invariants:
//   1. A coroutine in a cancelled scope waits only for events that cannot be given up, also if it begins later.
//   2. cancel() resumes no coroutine: those that waited resume in the runner's next turn. A cancel() inside a wait's
//      cancel function is done before the outermost cancel() returns: the stack does not grow with scopes that wait for
//      each other.
class CancelScope : private ListHook {
 public:
  CancelScope() noexcept = default;  // of no runner until open()
  explicit CancelScope(TaskRunner& runner) noexcept : runner_(&runner) {}
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;
  ~CancelScope() { close(); }

  void open(CancelScope& parent) noexcept;
  void close() noexcept;  // idempotent; requires that no coroutine is in it
  void cancel() noexcept;
  // Names the coroutines of this scope, and of those that are opened in it from now on, for Activity.
  void describe(const ActivityName* name, std::uint64_t subject) noexcept { doing_ = {name, subject}; }
  [[nodiscard]] bool cancelled() const noexcept { return cancelled_; }
  [[nodiscard]] TaskRunner& runner() const noexcept { return *runner_; }

 private:
  friend class List<CancelScope>;
  friend class Wait;
  void cancel_own() noexcept;
  void cancel_tree() noexcept;

  TaskRunner* runner_ = nullptr;
  CancelScope* parent_ = nullptr;
  CancelScope* next_cancelled_ = nullptr;  // in the runner's list
  List<Wait> waits_;
  List<CancelScope> children_;
  Activity::Doing doing_{};
  bool cancelled_ = false;
};

// TaskRunner: resumes and counts the coroutines of one thread. The runner has no thread and no clock: a Loop turns it;
// a test turns one by hand, with a time of its own.
// Owner: the Loop.
// Affinity: the loop's thread; post() any thread.
// Cost: no allocation; post() is a lock, and a system call if the loop sleeps.
// Invariants:
//   1. Coroutines resume in the order in which their waits finished.
//   2. One turn runs at most kTurnMax items, and none that became ready in it.
//   3. The loop does not end while there are tasks.
class TaskRunner {
 public:
  static constexpr std::size_t kTurnMax = 256;

  // The timers, `now` and the loop must outlive the runner. Without a loop no item comes from other threads.
  TaskRunner(TimerWheel& timers, const Instant& now, Loop* loop)
      : timers_(timers), now_(now), loop_(loop), root_(*this) {}
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;
  ~TaskRunner() = default;

  [[nodiscard]] TimerWheel& timers() const noexcept { return timers_; }
  [[nodiscard]] Instant now() const noexcept { return now_; }  // when this turn began
  [[nodiscard]] Loop* loop() const noexcept { return loop_; }
  [[nodiscard]] CancelScope& root() noexcept { return root_; }
  [[nodiscard]] const std::shared_ptr<Activity>& activity() const noexcept { return activity_; }

  void turn() noexcept;
  [[nodiscard]] bool has_ready() const noexcept { return !ready_.empty(); }
  void add(detail::Ready& item) noexcept { ready_.push_back(item); }
  // From any thread: the item runs in the loop's thread, soon. Requires a loop, a task here that lives until then, and
  // an item that is in no list.
  void post(detail::Ready& item) noexcept;
  [[nodiscard]] bool has_posted() const noexcept { return has_posted_.load(std::memory_order_relaxed); }
  // The items of post() until now. Any thread.
  [[nodiscard]] std::uint64_t posted() const noexcept {
    const sync::LockGuard lock(posted_mutex_);
    return posted_count_;
  }
  // Of these, the ones that run in this turn or are ready.
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

  // Cancels every task: those that are here, and those that come.
  void cancel_all() noexcept { root_.cancel(); }
  [[nodiscard]] bool idle() const noexcept { return tasks_ == 0 && ready_.empty(); }
  [[nodiscard]] std::size_t tasks() const noexcept { return tasks_; }  // that no coroutine of this thread awaits
  void count_task(int change) noexcept { tasks_ += static_cast<std::size_t>(change); }
  // Awaits that a cancelled coroutine began after its last one had ended with kCancelled. Any thread.
  [[nodiscard]] std::uint64_t cancels_ignored() const noexcept { return cancels_ignored_.value(); }

 private:
  friend class CancelScope;
  friend class Wait;
  TimerWheel& timers_;
  const Instant& now_;
  Loop* loop_;
  List<detail::Ready> ready_;
  std::size_t tasks_ = 0;
  CancelScope root_;
  const std::shared_ptr<Activity> activity_ = std::make_shared<Activity>();
  bool cancelling_ = false;                 // inside a cancel()
  CancelScope* first_cancelled_ = nullptr;  // scopes that the outermost cancel() still has to cancel
  std::uint32_t cancelled_row_ = 0;         // awaits in a row that were cancelled, of the coroutine that runs
  sync::Counter cancels_ignored_;
  mutable sync::StdMutex posted_mutex_;
  List<detail::Ready> posted_ WEFT_GUARDED_BY(posted_mutex_);
  std::uint64_t posted_count_ WEFT_GUARDED_BY(posted_mutex_) = 0;
  std::uint64_t taken_ = 0;
  std::atomic<bool> has_posted_{false};
};

inline void Wait::run_wait(Ready& self) noexcept {
  auto& wait = static_cast<Wait&>(self);
  if (wait.row_ != 0) [[unlikely]] {
    return wait.run_deferred();
  }
  wait.scope_->runner().activity_->set(wait.scope_->doing_);
  detail::resume(wait.coroutine_);
}

inline bool Wait::begin(CancelScope& scope, std::coroutine_handle<> coroutine) {
  scope_ = &scope;
  if (scope.cancelled()) [[unlikely]] {
    defer(scope, coroutine);
    return false;
  }
  begin_always(scope, coroutine);
  return true;
}

inline void Wait::begin_always(CancelScope& scope, std::coroutine_handle<> coroutine) noexcept {
  scope_ = &scope;
  coroutine_ = coroutine;
  waiting_ = true;
  if (!scope.cancelled()) {
    scope.waits_.push_back(*this);
  }
}

inline void Wait::finish() noexcept {
  if (waiting_) {
    waiting_ = false;
    unhook();
    scope_->runner().add(*this);
  }
}

inline bool Wait::cancelled() const noexcept { return scope_ != nullptr && scope_->cancelled(); }
inline TaskRunner& Wait::runner() const noexcept { return scope_->runner(); }

}  // namespace weft::rt
