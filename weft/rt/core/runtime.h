// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/call.h"
#include "weft/rt/core/core.h"
#include "weft/rt/core/task_call.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/loop/job.h"
#include "weft/rt/task/closure_await.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sync/spin.h"
#include "weft/sys/fork.h"
#include "weft/sys/thread.h"

namespace weft::rt {

// clang-format off
#define WEFT_RUNTIME_GAUGES(ROW)                                                                            \
  ROW(cores, gauge, "cores", "", "", "cores",                                                              \
      "Cores that there are.", "rt/core/runtime.cc")                                                       \
  ROW(messages_queued, gauge, "messages_queued", "", "", "messages",                                       \
      "Messages that were posted to cores and have not run.", "rt/core/runtime.cc")
// clang-format on

// RuntimeNumbers: a runtime at one moment.
struct RuntimeNumbers {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_RUNTIME_GAUGES)
};
extern const CounterTable kRuntimeTable;

// Pinning: whether each core's thread stays on its own processor.
enum class Pinning : std::uint8_t {
  // Pins if the runtime has exactly as many cores as the process may use physical ones, and no quota limits them. Does
  // not pin fewer cores: another process with as few cores would pin its threads to the same processors.
  automatic,
  never,
  always,  // as far as there are allowed processors; the system places the rest
};

struct RuntimeOptions {
  unsigned cores = 0;  // 0: one for each physical core that the process may use, bounded by its control group's quota
  Pinning pinning = Pinning::automatic;
  // If it is not empty: core i stays on the processor cpus[i], whatever `pinning` is, and there are so many cores. Each
  // one makes its memory itself, so that this is on the NUMA node of its processor.
  std::vector<unsigned> cpus{};
  std::size_t lane_capacity = 1024;  // messages from one sender to one core
  unsigned foreign_lanes = 8;        // of each core, for threads that are not cores; more threads than this share them
  sync::WaitMode wait_mode = sync::WaitMode::adaptive;  // acts like eco if there are more cores than physical ones
  LatencyOptions latency{};  // of WaitMode::latency: the polls before a park, and their bound
  sys::PollerKind poller = sys::PollerKind::automatic;
  sys::ThreadOptions thread{};       // its set of CPUs, if any, bounds the cores' processors; not with `cpus`
  const char* thread_name = "core";  // of the cores' threads: "core-0"; static storage
  ExceptionHandler on_exception{};   // runs in the core's thread
};

// Runtime: threads that share nothing, one per core, and the messages between them. A message is a closure.
// Owner: the caller of start(). Destruction ends the threads like stop() with a deadline in the past, but waits for
// running jobs and tasks; then it destroys the remaining messages. On one of the runtime's own cores destruction does
// not wait: another thread, for which the process does not wait, does all that. If the system refuses that thread, the
// runtime stays.
// Affinity: start() and destruction one foreign thread; post(), broadcast(), core(i).counts() any thread.
// Cost: a post from a core makes the message in a ring's cell, with a load. A store shows the first message that a job
// posts to a core, and every 32nd, and one store follows when that job ends. A read-modify-write rings for the first
// message of a turn, and for every 32nd. A post from another thread is a lock, uncontended while one thread uses the
// lane, and a read-modify-write. Posting does not allocate, except for the first message from a sender to a core, and
// for closures that do not fit into a Job.
// Errors: resource_exhausted (the lane from this sender to that core is full, or no memory); closed (stopped);
// invalid_argument (there is no such core). A refused message is destroyed.
// Invariants:
//   1. A message that was taken runs once on its core, or the runtime's end destroys it; never both, never neither.
//   2. The messages of one sender to one core run in the order of posting. A sender is a core, or any other thread.
//   3. A message that was taken before stop() runs, and so do the messages that it posts, unless the deadline passes
//      first.
//   4. An exception of a message, or of a job, watcher or timer of a core's loop, does not end a thread: the handler
//      gets it, and the core counts it.
class Runtime {
 public:
  static constexpr unsigned kCoresMax = 512;
  static constexpr unsigned kForeignLanesMax = 256;
  static constexpr std::size_t kLaneCapacityMax = std::size_t{1} << 20;

  // Errors: invalid_argument (beyond those bounds, or without a foreign lane); resource_exhausted (threads, descriptors
  // or memory).
  static Result<std::unique_ptr<Runtime>> start(const RuntimeOptions& options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();
  static void operator delete(Runtime* runtime, std::destroying_delete_t) noexcept;

  [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(cores_.size()); }
  [[nodiscard]] Core& core(unsigned index) noexcept { return *cores_[index]; }
  // The counts of each core, for a page of metrics. The runtime outlives the source.
  [[nodiscard]] CounterSource counter_source();
  [[nodiscard]] sync::DurationSource duration_source();  // the lag of each core's loop
  // The messages that were posted to cores and have not run. Any thread; a moment's number.
  [[nodiscard]] std::uint64_t messages_queued() const noexcept;
  // The poller of the cores, and the reason if it is not the requested one. Any thread.
  [[nodiscard]] const sys::PollerChoice& poller() const noexcept { return cores_.front()->loop().poller(); }

  // True from the destructor on, for objects that may outlive the runtime. Any thread.
  [[nodiscard]] std::shared_ptr<const std::atomic<bool>> gone() const noexcept { return gone_; }

  template <typename F>
  Result<void> post(unsigned core, F&& function) {
    if (core >= size()) [[unlikely]] {
      return Error(Errc::invalid_argument, "there is no such core");
    }
    if (Core* const self = own_core(); self != nullptr) {
      return self->post_to(core, std::forward<F>(function));
    }
    if (birth_.elsewhere()) [[unlikely]] {
      return Error(Errc::closed, "a forked child has none of the cores");
    }
    return cores_[core]->post_foreign(foreign_ordinal() % options_.foreign_lanes, std::forward<F>(function));
  }
  // Posts a copy to every core, this one included. Returns the number of cores that took it.
  template <typename F>
  unsigned broadcast(const F& function) {
    unsigned taken = 0;
    for (unsigned i = 0; i < size(); ++i) {
      taken += post(i, function) ? 1 : 0;
    }
    return taken;
  }

  // post() for a coroutine on a core, which waits until there is room: Result<void>. The waiters for one core are
  // served in order. Meanwhile post() to that core is refused, so that no message overtakes another. Dropping the
  // coroutine takes the message back. For a closure that owns something, the rule of call() holds.
  template <typename F>
  [[nodiscard]] detail::ClosureAwaiter<Posting, F> post_wait(unsigned core, F&& function) {
    return detail::ClosureAwaiter<Posting, F>(own_core(), core, Job(std::forward<F>(function)));
  }
  // Calls the function on that core, which may be this one, and awaits its result: Result<R>; a Result stays as it is.
  // The coroutine resumes on its own core. The call waits for room in a full lane, like post_wait().
  // Errors: timed_out (no reply by the deadline); cancelled (the awaiting task was cancelled); job_threw (the function
  // threw); closed (stopped); invalid_state (the caller is not a core of this runtime); invalid_argument, and
  // resource_exhausted for
  // lack of memory, like post(). A call that is given up, by an error or because its coroutine is dropped, does not
  // begin if it has not begun yet; otherwise its result is dropped.
  // A function that returns a Task<R> is called on that core, and its task runs there; the task's result is the result.
  // Only a Task may await such a call. The deadline and the cancellation of the awaiter cancel the called task too, and
  // the call waits for its end: while the called task runs, it may refer to the caller's variables and to the
  // function's captures. If the cancelled task returns a Result with a value nevertheless, that is the result. With GCC
  // 12 a closure that owns something takes two steps, or the compiler refuses it (closure_await.h): `auto calling =
  // runtime.call(1, [text] {...}); const auto result = co_await calling;`.
  template <typename F>
  [[nodiscard]] detail::ClosureAwaiter<Calling<std::decay_t<F>>, F> call(unsigned core, F&& function,
                                                                         Instant deadline = kNever) {
    return detail::ClosureAwaiter<Calling<std::decay_t<F>>, F>(own_core(), core, deadline, std::forward<F>(function));
  }
  template <typename F>
    requires detail::ReturnsTask<std::decay_t<F>>
  [[nodiscard]] detail::ClosureAwaiter<CallingTask<std::decay_t<F>>, F> call(unsigned core, F&& function,
                                                                             Instant deadline = kNever) {
    return detail::ClosureAwaiter<CallingTask<std::decay_t<F>>, F>(own_core(), core, deadline,
                                                                   std::forward<F>(function));
  }

  // Refuses messages of foreign threads from now on, lets the cores work until no message is left, cancels the cores'
  // tasks (coroutines), and ends the threads. Idempotent. Errors: timed_out (messages were left at the deadline, and
  // the runtime will destroy them, or a job or task still runs: the caller may call again to wait for it);
  // invalid_state (the caller is one of the runtime's cores, or in a forked child; the call has no effect).
  Result<void> stop(Instant deadline);

 private:
  friend class Core;
  enum class Phase : std::uint8_t { starting, running, draining, ended };

  struct Seed {  // the argument of a core's thread
    Runtime* runtime;
    unsigned index;
    sys::ThreadOptions thread;
  };

  static void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept;
  static void operator delete(void* memory, const std::nothrow_t& tag) noexcept;  // when the constructor throws
  explicit Runtime(const RuntimeOptions& options) : options_(options), wait_mode_(options.wait_mode) {}
  void choose_places();
  Result<void> start_threads();
  void run_core(const Seed& seed);
  // Returns the calling core if it is one of these.
  [[nodiscard]] Core* own_core() const noexcept {
    Core* const core = Core::current();
    return core != nullptr && &core->runtime() == this ? core : nullptr;
  }
  // Selects the foreign lane of the calling thread: always the same one, so that its messages keep their order.
  [[nodiscard]] static unsigned foreign_ordinal() noexcept;
  [[nodiscard]] bool draining() const noexcept {
    return phase_.load(std::memory_order_relaxed) == Phase::draining;  // a core that reads it late has not settled yet
  }
  void note_turn() noexcept;  // in a drain
  [[nodiscard]] bool quiescent() const noexcept;
  template <typename Condition>
  [[nodiscard]] bool wait_until(Instant deadline, Condition condition);
  Result<void> stop_once(Instant deadline);

  const RuntimeOptions options_;
  sync::WaitMode wait_mode_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::atomic<Phase> phase_{Phase::starting};
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);

  sync::StdMutex mutex_;
  sync::Condition changed_;
  unsigned waiting_ WEFT_GUARDED_BY(mutex_) = 0;  // threads that made their core, or failed to make it
  unsigned ended_ WEFT_GUARDED_BY(mutex_) = 0;
  Error start_error_ WEFT_GUARDED_BY(mutex_);
  bool stop_runs_ WEFT_GUARDED_BY(mutex_) = false;  // one stop() at a time

  const sys::Birth birth_;  // of the process that has the threads
  std::vector<Seed> seeds_;
  std::vector<sys::Thread> threads_;
  sys::Thread ender_;  // destroys the runtime in the place of one of its cores
};

}  // namespace weft::rt
