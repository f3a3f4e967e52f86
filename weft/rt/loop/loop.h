// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/loop/job.h"
#include "weft/rt/loop/mailbox.h"
#include "weft/rt/loop/poll_budget.h"
#include "weft/rt/loop/task_runner.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/sync/counter.h"
#include "weft/sync/parker.h"
#include "weft/sync/spin.h"
#include "weft/sys/fork.h"
#include "weft/sys/poller.h"
#include "weft/sys/thread.h"

namespace weft::rt {

// Watcher: gets the events of a descriptor. A Loop calls it on the loop's thread only, never after unwatch().
class Watcher {
 public:
  virtual void handle_event(const sys::PollEvent& event) = 0;

 protected:
  ~Watcher() = default;
};

// TurnHook: work of another part that a Loop runs at the end of every turn.
class TurnHook {
 public:
  // Does the work that is due. Returns the time of the hook's next turn; kNever: only after an event.
  virtual Instant handle_turn(Instant now) = 0;
  // Whether work arrived from other threads since the last turn. The loop calls this while it spins, and once more
  // after it announced a sleep.
  [[nodiscard]] virtual bool has_work() const noexcept = 0;
  // The loop's last call before every sleep, naps too. After `true`, a thread that brings work ends the sleep with
  // Loop::wake().
  [[nodiscard]] virtual bool may_sleep() noexcept { return true; }

 protected:
  ~TurnHook() = default;
};

// Loop: one thread with a poller, timers and a mailbox.
// Owner: the caller of make(). Destruction stops the thread, waits for it, and drops the jobs in the mailbox. Inside a
// job, watcher, timer or hook of the loop destruction only begins the stop: from then on the loop calls no watcher,
// timer or hook. The loop waits for its coroutines and destroys itself. No call of another thread is under way then.
// Affinity: post(), try_post(), nudge(), wake(), wake_sleeper(), stop(), on_loop_thread(), threw(), parks(), polled(),
// mailed() any thread; the rest the loop's thread, or the maker's until the loop runs.
// Cost: an idle loop makes no wake-ups. post() locks a mutex; it is not for messages.
// Invariants:
//   1. A job posted before stop() runs. Jobs run in the order of posting. A job posted later runs or is dropped: after
//      the loop's end no job waits in the mailbox.
//   2. After unwatch() returns, the loop does not call the Watcher, not even for events already fetched.
//   3. stop() cancels the loop's coroutines (task.h), and the loop turns until they have ended.
//   4. An exception of a job, watcher, timer or hook ends neither the thread nor the program: the loop's handler gets
//      it, and the loop continues as if the call had returned. A hook that threw gets its next turn within kNapMax.
class Loop {
 public:
  static Result<std::unique_ptr<Loop>> make(const char* thread_name, const sys::ThreadOptions& thread_options = {},
                                            sys::PollerKind poller = sys::PollerKind::automatic);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();
  static void operator delete(Loop* loop, std::destroying_delete_t) noexcept;

  // The loop that runs in this thread; null if there is none.
  static Loop* current() noexcept;

  // Before start() or run(); called in the loop's thread. Without a handler the loop only counts exceptions.
  void set_exception_handler(ExceptionHandler handler) noexcept { on_exception_ = std::move(handler); }
  // The hook outlives the loop's thread. Errors: resource_exhausted (the system refuses another thread); invalid_state
  // (start() or run() was called before).
  [[nodiscard]] Result<void> start(TurnHook* hook) noexcept;
  // Instead of start(): runs in the calling thread until stop(). Before a sleep the loop spins for as long as `mode`
  // permits, and with WaitMode::latency for as long as `latency` does. While the loop has work, it polls the
  // descriptors once every kPollEvery, not in every turn. Fails with invalid_state like start(), without an effect.
  Result<void> run(TurnHook* hook, sync::WaitMode mode, const LatencyOptions& latency = {}) noexcept;
  // Any number of threads; idempotent. Waits until the thread that start() made ended, but not in a job of the loop.
  void stop();
  void post(Job job);  // throws std::bad_alloc. A loop that has ended destroys the job here, in the caller's thread
  // Errors: closed (the loop has ended, or the process is a forked child); resource_exhausted. A refused job stays
  // unchanged.
  [[nodiscard]] Result<void> try_post(Job& job) noexcept;
  // Makes the loop turn soon: at once if it sleeps long, otherwise at the end of its nap of at most kNapMax.
  void nudge() noexcept { mail_.nudge(); }
  void wake() noexcept { poller_->wake(); }  // ends the present sleep, otherwise the next one
  // Ends the present sleep, if any; for work that announce_sleep() checks for.
  void wake_sleeper() noexcept { mail_.wake_sleeper(); }
  [[nodiscard]] bool on_loop_thread() const noexcept {
    return thread_.id.load(std::memory_order_acquire) == std::this_thread::get_id();
  }

  // Whether posted jobs or coroutines wait for the next turn; the loop's thread.
  [[nodiscard]] bool has_mail() const noexcept;
  // The jobs and coroutines that were posted to the loop until now. A lock for each kind. Any thread, except in a
  // forked child.
  [[nodiscard]] std::uint64_t mailed() const noexcept { return mail_.posted() + tasks_.posted(); }
  // Of these, the jobs that have run and the coroutines that are ready or have run; the loop's thread.
  [[nodiscard]] std::uint64_t mail_taken() const noexcept { return jobs_ran_ + tasks_.taken(); }

  [[nodiscard]] std::uint64_t threw() const noexcept {
    return counters_.threw.value();
  }  // calls that ended in an exception
  // Sleeps of the thread, and the time that passed in spins before it. Any thread.
  [[nodiscard]] std::uint64_t parks() const noexcept { return counters_.parks.value(); }
  [[nodiscard]] Duration polled() const noexcept { return Duration(counters_.polled_ns.value()); }

  using WatchId = std::uint64_t;  // 0: no watch
  // Errors: invalid_argument (no watcher); invalid_state, also of rewatch() (the loop runs, or has run, in another
  // thread).
  [[nodiscard]] Result<WatchId> watch(int fd, sys::Interest interest, bool edge_triggered, Watcher* watcher);
  // Fails with invalid_argument if no watch has this id, or if that watch has ended.
  [[nodiscard]] Result<void> rewatch(WatchId id, sys::Interest interest, bool edge_triggered);
  void unwatch(WatchId id) noexcept;  // before the descriptor is closed
  [[nodiscard]] TimerWheel& timers() noexcept { return timers_; }
  [[nodiscard]] TaskRunner& tasks() noexcept { return tasks_; }
  // The present work of the loop's thread; any thread. The holder may outlive the loop.
  [[nodiscard]] const std::shared_ptr<Activity>& activity() const noexcept { return tasks_.activity(); }
  [[nodiscard]] Instant now() const noexcept { return now_; }                                // of this turn
  [[nodiscard]] const sys::PollerChoice& poller() const noexcept { return poller_choice_; }  // any thread

  static constexpr Duration kNapMax = std::chrono::milliseconds(1);
  static constexpr Duration kPollEvery = std::chrono::microseconds(20);

 private:
  struct Slot {
    Watcher* watcher = nullptr;
    int fd = -1;
    std::uint32_t generation = 1;
  };
  enum class Thread : std::uint8_t { none, own, callers };

  static void* operator new(std::size_t size, const std::nothrow_t& tag) noexcept;
  static void operator delete(void* memory, const std::nothrow_t& tag) noexcept;  // when the constructor throws
  Loop(sys::MadePoller poller, const char* thread_name, const sys::ThreadOptions& thread_options);
  template <typename Call>
  bool guard(Call call) noexcept;
  [[nodiscard]] Result<void> claim(TurnHook* hook) noexcept;
  void run_turns() noexcept;
  void end_thread() noexcept;
  void wait_for_end() noexcept;
  [[nodiscard]] bool runs_around_this_call() const noexcept;
  [[nodiscard]] bool elsewhere() const noexcept;
  [[nodiscard]] bool is_strange() const noexcept;
  void close_mail() noexcept;
  void release_descriptors();
  void turn() noexcept;
  bool run_jobs() noexcept;
  void run_timers() noexcept;
  [[nodiscard]] Instant run_hook() noexcept;
  [[nodiscard]] bool ended() noexcept;
  void wait(Instant wanted);
  [[nodiscard]] bool announce_sleep(Duration timeout) noexcept;
  [[nodiscard]] Duration spin_time(Duration timeout) noexcept;
  [[nodiscard]] bool spin_for_work(Duration timeout, std::size_t& event_count);
  [[nodiscard]] std::size_t poll(Duration timeout);
  void dispatch_all(std::size_t count);
  void dispatch(const sys::PollEvent& event) noexcept;
  [[nodiscard]] bool add_slot() noexcept;
  [[nodiscard]] Slot* find(WatchId id) noexcept;

  std::unique_ptr<sys::Poller> poller_;
  const sys::PollerChoice poller_choice_;
  TurnHook* hook_ = nullptr;
  sync::WaitMode wait_mode_ = sync::WaitMode::eco;
  sync::SpinBudget spin_budget_;
  PollBudget poll_budget_;
  Duration poll_every_ = Duration::zero();
  Instant polled_at_;
  Instant works_since_;  // the end of the last wait, or look for events
  TimerWheel timers_;
  Instant timers_due_ = kNever;  // the next one, when the last wait began
  Instant now_;
  TaskRunner tasks_{timers_, now_, this};
  bool orphan_ = false;    // destroyed in a call of its own
  Loop* outer_ = nullptr;  // a job of that loop runs this one
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::array<sys::PollEvent, 256> events_;

  ExceptionHandler on_exception_;
  struct Counters {
    sync::Counter threw;
    sync::Counter parks;
    sync::Counter polled_ns;
  };
  Counters counters_;
  Mailbox<Job> mail_{*poller_};
  std::vector<Job> opened_;  // the jobs that run_jobs() runs; a member to keep its memory
  std::uint64_t jobs_ran_ = 0;
  // The thread that the loop runs in, and where it is between start() and its end.
  struct ThreadState {
    const char* name;
    sys::ThreadOptions options;
    std::atomic<std::thread::id> id{};
    std::atomic<bool> begun{false};  // start() or run() was called
    std::atomic<Thread> runs_in{Thread::none};
    sys::Birth birth{};             // of the process that has the thread
    std::atomic<bool> over{false};  // the thread's last turn is over
    std::atomic<bool> left{false};  // the thread of run() does not use the loop any longer
    sync::Parker end{};             // woken then
    sys::Thread own{};              // start() made it
  };
  ThreadState thread_;
};

}  // namespace weft::rt
