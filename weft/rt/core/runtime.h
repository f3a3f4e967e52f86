// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/call.h"
#include "weft/rt/core/core.h"
#include "weft/rt/core/task_call.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/loop/job.h"
#include "weft/sync/spin.h"
#include "weft/sys/thread.h"

namespace weft::rt {

// Whether each core's thread stays on a processor of its own.
enum class Pinning : std::uint8_t {
  // When the runtime has exactly as many cores as the process may use physical ones, and no quota limits them. With
  // fewer, the system places the threads: another process may have asked for as few, and both would sit on the same
  // ones.
  automatic,
  never,
  always,  // as far as there are allowed processors; the rest is placed by the system
};

struct RuntimeOptions {
  unsigned cores = 0;  // 0: one for each physical core that the process may use, bounded by its control group's quota
  Pinning pinning = Pinning::automatic;
  std::size_t lane_capacity = 1024;  // messages from one sender to one core
  unsigned foreign_lanes = 8;        // of each core, for threads that are no cores; more threads than this share them
  sync::WaitMode wait_mode = sync::WaitMode::adaptive;  // which is eco when there are more cores than physical ones
  sys::PollerKind poller = sys::PollerKind::automatic;
  sys::ThreadOptions thread;      // its set of CPUs, if any, bounds where cores may be
  ExceptionHandler on_exception;  // of messages; called in the core's thread
};

// Runtime: threads that share nothing, one per core, and the messages between them.
// Owner: whoever made it, on a thread that is none of its cores. Destruction ends the threads as stop() with a deadline
// in the past does, but waits for tasks that run; then it destroys the messages that are left.
// Affinity: start() and destruction one foreign thread; post(), broadcast(), core(i).counts() any thread.
// Cost: a post from a core makes the message in a ring's cell, with a load; a store shows the first that a message
// posts to a core, and every 32nd, and one when that message ends; a read-modify-write rings for the first of a turn,
// and for every 32nd. From another thread it is a lock that one thread takes for free, and a read-modify-write. Posting
// does not allocate, but for the first message from a sender to a core, and closures that Job puts outside.
// Errors: resource_exhausted: the lane from this sender to that core is full, or no memory; the message was not taken,
// and is destroyed. closed: stopped. invalid_argument: there is no such core. Invariants:
//   (1) A message that was taken runs once on its core, or is destroyed by the runtime's end; never both, never
//   neither. (2) The messages of one sender to one core run in the order of posting. A sender is a core, or any other
//   thread. (3) What was taken before stop() was called, and what that led to, runs, unless the deadline passes first.
//   (4) An exception of a message ends nothing: the handler has it, and it is counted.
class Runtime {
 public:
  static constexpr unsigned kCoresMax = 512;
  static constexpr unsigned kForeignLanesMax = 256;
  static constexpr std::size_t kLaneCapacityMax = std::size_t{1} << 20;

  // invalid_argument: beyond those bounds, or no foreign lane; resource_exhausted: threads, descriptors or memory.
  static Result<std::unique_ptr<Runtime>> start(const RuntimeOptions& options = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(cores_.size()); }
  [[nodiscard]] Core& core(unsigned index) noexcept { return *cores_[index]; }
  // The counts of each core, for a page of metrics. The runtime outlives it.
  [[nodiscard]] CounterSource counter_source();
  // How the cores wait for descriptors, and why not as they were asked to. Any thread.
  [[nodiscard]] const sys::PollerChoice& poller() const noexcept { return cores_.front()->loop().poller(); }

  template <typename F>
  Result<void> post(unsigned core, F&& function) {
    if (core >= size()) [[unlikely]] {
      return Error(Errc::invalid_argument, "there is no such core");
    }
    if (Core* const self = own_core(); self != nullptr) {
      return self->post(core, std::forward<F>(function));
    }
    return cores_[core]->post_foreign(foreign_ordinal() % options_.foreign_lanes, std::forward<F>(function));
  }
  // A copy for every core, this one included. To how many it went.
  template <typename F>
  unsigned broadcast(const F& function) {
    unsigned taken = 0;
    for (unsigned i = 0; i < size(); ++i) {
      taken += post(i, function) ? 1 : 0;
    }
    return taken;
  }

  // The same, awaited by a coroutine on a core, until there is room: Result<void>. Who waits for the same core is
  // served in order, and meanwhile post() to that core is refused, so that nothing overtakes. Dropping the coroutine
  // takes the message back.
  template <typename F>
  [[nodiscard]] Posting post_wait(unsigned core, F&& function) {
    return Posting(own_core(), core, Job(std::forward<F>(function)));
  }
  // Calls the function on that core, which may be this one, and awaits what it returns: Result<R>; a Result as it is.
  // The coroutine goes on on its own core. A full lane is waited for, as by post_wait(). timed_out: not back at the
  // deadline; cancelled: the task that awaits it was; system: it threw; closed: stopped; invalid_state: the
  // caller is no core of this runtime; invalid_argument, and resource_exhausted for want of memory, as post(). A call
  // that is given up, by one of these or because its coroutine is dropped, does not begin if it has not yet; if it has,
  // its result is dropped.
  // A function that returns a Task<R> is called there, its task runs there, and what that gives is the result. Only a
  // Task may await it. The deadline, and the cancellation of who awaits, cancel that task too, and its end is waited
  // for: while it runs it may refer to what the caller owns, and to the function's captures. If it gave a Result with a
  // value all the same, that is the result. With GCC before 13, a closure that owns something must not be made inside
  // the co_await expression, which would destroy it twice: give it a name, or `auto calling = runtime.call(...);
  // co_await calling`.
  template <typename F>
  [[nodiscard]] Calling<std::decay_t<F>> call(unsigned core, F&& function, Instant deadline = kNever) {
    return Calling<std::decay_t<F>>(own_core(), core, deadline, std::forward<F>(function));
  }
  template <typename F>
    requires detail::ReturnsTask<std::decay_t<F>>
  [[nodiscard]] CallingTask<std::decay_t<F>> call(unsigned core, F&& function, Instant deadline = kNever) {
    return CallingTask<std::decay_t<F>>(own_core(), core, deadline, std::forward<F>(function));
  }

  // Refuses messages of foreign threads from now on, lets the cores work until no message is left, and ends the
  // threads. timed_out: messages were left at the deadline, and will be destroyed, or a task still runs: call it again
  // to wait for that. Tasks (coroutines) of the cores are cancelled last. invalid_state: called by one of its own
  // cores; nothing happens. Idempotent.
  Result<void> stop(Instant deadline);

 private:
  friend class Core;
  enum class Phase : std::uint8_t { starting, running, draining, ended };

  struct Seed {  // of a core's thread
    Runtime* runtime;
    unsigned index;
    sys::ThreadOptions thread;
  };

  explicit Runtime(const RuntimeOptions& options) : options_(options), wait_mode_(options.wait_mode) {}
  void choose_places();
  Result<void> start_threads();
  void run_core(const Seed& seed);
  // The calling core, if it is one of these.
  [[nodiscard]] Core* own_core() const noexcept {
    Core* const core = Core::current();
    return core != nullptr && &core->runtime() == this ? core : nullptr;
  }
  // Which of the foreign lanes the calling thread uses: always the same one, so that its messages keep their order.
  [[nodiscard]] static unsigned foreign_ordinal() noexcept;
  void note_turn() noexcept;
  [[nodiscard]] bool quiescent() const noexcept;
  template <typename Condition>
  [[nodiscard]] bool wait_until(Instant deadline, Condition condition);

  const RuntimeOptions options_;
  sync::WaitMode wait_mode_;
  std::vector<std::unique_ptr<Core>> cores_;
  std::atomic<Phase> phase_{Phase::starting};

  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned waiting_ = 0;   // guarded by mutex_: threads that made their core, or could not
  unsigned ended_ = 0;     // guarded by mutex_
  Error start_error_;      // guarded by mutex_
  std::mutex stop_mutex_;  // one stop() at a time
  std::vector<Seed> seeds_;
  std::vector<sys::Thread> threads_;
};

}  // namespace weft::rt
