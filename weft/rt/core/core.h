// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/rt/core/aftermath.h"
#include "weft/rt/core/backlog.h"
#include "weft/rt/core/core_job.h"
#include "weft/rt/core/doorbell.h"
#include "weft/rt/core/lane.h"
#include "weft/rt/exec/executor.h"
#include "weft/rt/loop/job.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/loop/turn_job.h"
#include "weft/sync/counter_block.h"
#include "weft/sync/duration_counts.h"
#include "weft/sync/lock.h"
#include "weft/sync/mutex.h"

namespace weft::rt {

class Runtime;
namespace detail {
class CallState;
}

// clang-format off
// The counters of a core's thread.
#define WEFT_CORE_COUNTERS(ROW)                                                                                 \
  ROW(posted, counter, "messages_posted_total", "", "", "messages",                                             \
      "Messages that the core sent, to any core.", "rt/core/core.cc")                                           \
  ROW(refused, counter, "messages_refused_total", "", "", "messages",                                           \
      "Messages that the core could not send because the lane was full.", "rt/core/core.cc")                    \
  ROW(after_stop, counter, "messages_after_stop_total", "", "", "messages",                                     \
      "Messages that the core could not send because the runtime was stopped.", "rt/core/core.cc")              \
  ROW(executed, counter, "messages_executed_total", "", "", "messages",                                         \
      "Messages that ran on the core, also those that threw.", "rt/core/core.cc")                               \
  ROW(threw, counter, "messages_threw_total", "", "", "messages",                                               \
      "Messages that ended in an exception, and jobs, watchers and timers of the core's loop.",                 \
      "rt/core/core.cc")                                                                                        \
  ROW(wakes, counter, "wakes_total", "", "", "wake-ups",                                                        \
      "How often the core had to wake another one.", "rt/core/core.cc")                                         \
  ROW(residents_missed, counter, "residents_missed_total", "", "", "messages",                                  \
      "Messages for an object of the core that was gone: for a session of a server that had stopped there.",    \
      "rt/core/core.h")

// The counters of threads that are not cores of the runtime, under the mutex of their lane to the core.
#define WEFT_FOREIGN_LANE_COUNTERS(ROW)                                                                         \
  ROW(foreign_posted, counter, "foreign_messages_posted_total", "", "", "messages",                             \
      "Messages of other threads to the core.", "rt/core/core.h")                                               \
  ROW(foreign_refused, counter, "foreign_messages_refused_total", "", "", "messages",                           \
      "Messages of other threads that found no room.", "rt/core/core.cc")                                       \
  ROW(foreign_after_stop, counter, "foreign_messages_after_stop_total", "", "", "messages",                     \
      "Messages of other threads that came after the runtime was stopped.", "rt/core/core.cc")

// The counters of a core's loop and of its coroutines.
#define WEFT_CORE_TASK_COUNTERS(ROW)                                                                            \
  ROW(cancels_ignored, counter, "cancels_ignored_total", "", "", "awaits",                                      \
      "Awaits of a cancelled coroutine that followed an await that had reported it.", "rt/loop/task_runner.cc")\
  ROW(parks, counter, "parks_total", "", "", "parks",                                                           \
      "How often the core's thread slept.", "rt/loop/loop.cc")                                                  \
  ROW(polled, counter, "polled_microseconds_total", "", "", "microseconds",                                     \
      "Time in polls before a park, which use the processor. `cpu_percent` bounds its share.",                  \
      "rt/loop/loop.cc")                                                                                        \
  ROW(stalls, counter, "stalls_total", "", "", "turns",                                                         \
      "Turns that a server saw last for stall_after or longer.", "rt/loop/activity.cc")
// clang-format on

template <typename Number>
struct CoreNumbers {
  WEFT_COUNTER_BLOCK(WEFT_CORE_COUNTERS)
};
template <typename Number>
struct ForeignLaneNumbers {
  WEFT_COUNTER_BLOCK(WEFT_FOREIGN_LANE_COUNTERS)
};

template <typename Number>
struct CoreTaskNumbers {
  WEFT_COUNTER_BLOCK(WEFT_CORE_TASK_COUNTERS)
};

// CoreCounts: a core's counters since it was made.
struct CoreCounts : CoreNumbers<std::uint64_t>, ForeignLaneNumbers<std::uint64_t>, CoreTaskNumbers<std::uint64_t> {
  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    CoreNumbers::visit(visitor, blocks...);
    ForeignLaneNumbers::visit(visitor, blocks...);
    CoreTaskNumbers::visit(visitor, blocks...);
  }
};
extern const CounterTable kCoreTable;

// The present turn of a core, with the running call as labels.
struct CoreTurn {
  static constexpr Duration kShown = std::chrono::milliseconds(100);  // a shorter one is shown as 0
  std::uint64_t milliseconds = 0;

  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    visitor(blocks.milliseconds...);
  }
};
extern const CounterTable kCoreTurnTable;
extern const sync::DurationRow kCoreLagRow;

// CoreResident: an object of another room that lives on a core. A message with the object's number finds it there
// without a reference, or finds nothing after the object's end. The numbers below 2^16 are those of servers and client
// hosts, the others those of Sharded.
// Owner: anyone. Affinity: the core's thread, or any thread when that has ended.
struct CoreResident : ListHook {
  explicit CoreResident(std::uint64_t own) noexcept : number(own) {}
  const std::uint64_t number;
};

class Core;

// The error of a call to an object of `owner` (null: of a thread that is not a core) in another thread, this one:
// invalid_state, "client of core 0 used on core 1". `what` is static storage.
[[nodiscard]] Error used_elsewhere(std::string_view what, const Core* owner) noexcept;

// Core: one thread of a runtime: a loop, its timers and its mailboxes. A lane from each core of the runtime, itself
// included, and lanes for all other threads; a doorbell with a bit for each lane that has messages.
// Owner: the Runtime.
// Affinity: index(), runtime(), counts(), give() any thread; everything else the core's own thread.
// Cost: see Runtime. A turn runs at most kMessagesPerTurn messages, and of one lane at most kMessagesPerVisit.
// Invariants:
//   1. The messages of one sender run in the order of posting, whichever call posted them.
//   2. The receiver's doorbell has rung for a message by the end of the sender's turn; a receiver that sleeps is
//      woken at once. A receiver that is awake sees the first message that a job posts to it at once. It sees the
//      others after kBatch of them, after flush(), or when that job ends.
//   3. While a message waits for room in a lane, every later message for that lane waits after it or is refused.
//   4. A CoreJob runs once, after the messages that its giver posted to the core before: on the core's thread, or after
//      the end of all that the thread does on the thread that gives it or another job. Never two at a time.
class Core final : private TurnHook {
 public:
  static constexpr std::size_t kMessagesPerTurn = 1024;
  static constexpr std::size_t kMessagesPerVisit = 256;

  ~Core();
  // The core whose thread this is; null on a foreign thread.
  static Core* current() noexcept { return current_; }

  [[nodiscard]] unsigned index() const noexcept { return index_; }
  [[nodiscard]] Runtime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] Loop& loop() noexcept { return *loop_; }
  // Runs the job once, at the end of this turn. Does nothing when the job is listed already.
  void at_turn_end(TurnJob& job) noexcept {
    if (!job.hooked()) {
      turn_jobs_.push_back(job);
    }
  }
  // Runs the job once when the core's loop has ended, after the core's coroutines; its timers fire no more. Unhook the
  // job to take it back.
  void at_end(TurnJob& job) noexcept { end_jobs_.push_back(job); }
  // Runs the job once, soon, see invariant 4. Never refused, never waits. The core outlives the call.
  void give(CoreJob& job) noexcept { give(job, false); }
  // The same, and after all messages to the core that any thread posted and showed (flush()) before, and after all jobs
  // that any thread posted to the core's loop before.
  void give_behind_all(CoreJob& job) noexcept { give(job, true); }
  [[nodiscard]] List<CoreResident>& residents() noexcept { return residents_; }
  void note_resident_missed() noexcept { count(counters_.residents_missed); }  // a message found that it has ended
  [[nodiscard]] CoreCounts counts() const noexcept;

  // Shows the receivers all messages posted until now, and rings their bells; for a job that runs for long.
  void flush() noexcept { ring_all(); }
  // Errors: those of Runtime::post(); invalid_state (the caller is not on this core).
  template <typename F>
  Result<void> post(unsigned target, F&& function) {
    if (target >= cores_) [[unlikely]] {
      return Error(Errc::invalid_argument, "there is no such core");
    }
    if (current_ != this) [[unlikely]] {
      return used_elsewhere("a post", this);
    }
    return post_to(target, std::forward<F>(function));
  }

  // --- for awaiters ---
  // Returns false if there is no room, or if other messages wait for it.
  [[nodiscard]] bool try_send(unsigned target, Waiting& waiting) noexcept;
  // Queues the message after those. Its Report function is called, unless forget() takes the message back.
  void wait_to_send(unsigned target, Waiting& waiting) noexcept;
  void forget(Waiting& waiting) noexcept;
  [[nodiscard]] bool ended() const noexcept { return ended_; }                // also in a CoreJob, on any thread
  [[nodiscard]] List<detail::CallState>& calls() noexcept { return calls_; }  // that this core made

 private:
  friend class Runtime;
  // A line of its own, so that the receiver fetches and frees each message alone.
  struct alignas(64) Message {
    Job job;
  };
  static_assert(sizeof(Message) == 64);
  using Ring = sync::SpscRing<Message>;
  using Sender = LaneSender<Core, Message>;
  friend Sender;
  // The sending side of a lane that other threads share.
  struct ForeignLane {
    alignas(sync::kLineSize) sync::Mutex mutex;
    bool closed WEFT_GUARDED_BY(mutex) = false;  // the mutex also guards the writes to the counters
    ForeignLaneNumbers<std::atomic<std::uint64_t>> counters;
  };
  // This core's sending side to one core.
  struct Outgoing {
    Sender lane;
    bool posted = false;  // a message was posted in this turn: listed in posted_.to
    bool hiding = false;  // listed in posted_.hiding
    Backlog backlog;      // messages that wait for room
  };

  Core(Runtime& runtime, unsigned index, std::unique_ptr<Loop> loop) noexcept;
  static Result<std::unique_ptr<Core>> make(Runtime& runtime, unsigned index, unsigned cores, unsigned foreign_lanes,
                                            std::size_t lane_capacity, sys::PollerKind poller);
  // Until stop(), in the core's thread.
  void run(std::span<const std::unique_ptr<Core>> cores, sync::WaitMode mode, const LatencyOptions& latency);
  void stop() { loop_->stop(); }  // any thread
  void drop_messages() noexcept;  // once no core runs

  // TurnHook
  Instant handle_turn(Instant now) override;
  [[nodiscard]] bool has_work() const noexcept override;
  [[nodiscard]] bool may_sleep() noexcept override { return doorbell_.try_sleep(); }

  // --- receiving ---
  void run_messages();
  bool visit(unsigned bit, std::size_t& budget);  // whether a lane of that bit still has messages
  std::size_t run_lane(unsigned lane, Ring& ring, std::size_t most);
  void run_turn_jobs() noexcept;
  void give(CoreJob& job, bool behind_all) noexcept;
  void take_given() noexcept;
  [[nodiscard]] std::uint64_t end_of(unsigned lane) noexcept;
  [[nodiscard]] std::uint64_t done_of(unsigned lane) noexcept;
  [[nodiscard]] bool is_due(CoreJob& job) noexcept;
  void run_due_jobs() noexcept;
  void run_given() noexcept;
  void end() noexcept;

  // --- sending ---
  template <typename F>
  Result<void> post_to(unsigned target, F&& function);
  [[nodiscard]] Error refuse() noexcept;
  void commit(Outgoing& out) noexcept;
  void begin_job() noexcept {
    ++posted_.job_number;
    posted_.in_job = true;
  }
  void end_job() noexcept;
  void show_hidden() noexcept;
  void ring_all() noexcept;
  void serve_backlogs() noexcept;
  void serve(Outgoing& out) noexcept;
  [[nodiscard]] bool wait_for_room(Outgoing& out) noexcept;

  // --- any thread ---
  bool ring(std::uint64_t bits) noexcept;  // whether this core had to be woken
  [[nodiscard]] const Doorbell& doorbell() const noexcept { return doorbell_; }
  template <typename F>
  [[nodiscard]] Result<void> post_foreign(unsigned slot, F&& function);
  [[nodiscard]] Message* claim_foreign(unsigned slot, ForeignLane& foreign) noexcept WEFT_REQUIRES(foreign.mutex);
  void close_foreign() noexcept;

  static constexpr unsigned kLaneBits = 60;
  static constexpr std::uint64_t kRoom = std::uint64_t{1} << kLaneBits;         // a lane has room: serve the backlogs
  static constexpr std::uint64_t kTurn = std::uint64_t{1} << (kLaneBits + 1);   // requests a turn only
  static constexpr std::uint64_t kGiven = std::uint64_t{1} << (kLaneBits + 2);  // there are given jobs
  static_assert(kLaneBits + 2 < Doorbell::kBits);
  static constexpr std::uint64_t kLanes = kRoom - 1;
  static constexpr std::uint64_t bit_of(unsigned lane) noexcept { return std::uint64_t{1} << (lane % kLaneBits); }

  // Increments a counter that one thread writes. Release pairs with the acquires in Runtime::quiescent().
  static void count(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }

  static constinit inline thread_local Core* current_ = nullptr;

  Runtime& runtime_;
  const unsigned index_;
  unsigned cores_ = 0;
  std::size_t lane_capacity_ = 0;
  std::unique_ptr<Loop> loop_;

  // Receiving. Lanes 0 .. cores_ - 1 come from those cores, the rest from foreign threads.
  Doorbell doorbell_;
  std::unique_ptr<Lane<Message>[]> lanes_;
  std::unique_ptr<ForeignLane[]> foreign_;
  unsigned lane_count_ = 0;
  std::uint64_t ready_ = 0;  // bits of lanes that this thread found to have messages without the bell
  unsigned next_bit_ = 0;    // where the next turn begins
  Ring* hot_ = nullptr;      // the lane that had messages last; checked also without the bell
  std::uint64_t hot_bit_ = 0;
  List<TurnJob> turn_jobs_;
  List<TurnJob> end_jobs_;
  List<CoreJob> jobs_;  // given, and taken by this thread; in the order of giving
  List<CoreResident> residents_;

  // Sending.
  std::unique_ptr<Outgoing[]> outgoing_;
  struct Posted {
    std::vector<Outgoing*> to;      // in this turn; reserved
    std::vector<Outgoing*> hiding;  // end_job() shows their messages; reserved
    std::uint64_t job_number = 0;   // of the present job; see LaneSender::commit()
    bool in_job = false;
  };
  Posted posted_;
  List<detail::CallState> calls_;
  bool ended_ = false;

  // This thread writes these, any thread reads them.
  CoreNumbers<std::atomic<std::uint64_t>> counters_;
  std::atomic<std::uint64_t> dropped_{0};  // messages that waited for room and were taken back
  Aftermath aftermath_;

  // The thread that runs given jobs: the core's; after its end, any giver that finds no other.
  enum class JobRunner : std::uint8_t { core, none, giver };
  struct Given {
    sync::StdMutex mutex;
    List<CoreJob> jobs WEFT_GUARDED_BY(mutex);
    JobRunner runner WEFT_GUARDED_BY(mutex) = JobRunner::core;
  };
  Given given_;
};

// kMadeInPlace: whether post() makes the message in the lane's cell. That saves a copy: a large load of bytes that
// small stores have just written waits until those stores have left the store buffer. False if making the message may
// run other code than a move.
template <typename F>
constexpr bool kMadeInPlace = std::is_nothrow_constructible_v<Job, F> &&
                              (!std::is_lvalue_reference_v<F> || std::is_trivially_copyable_v<std::remove_cvref_t<F>>);

template <typename F>
Result<void> Core::post_to(unsigned target, F&& function) {
  if constexpr (!kMadeInPlace<F>) {
    return post_to(target, Job(std::forward<F>(function)));
  } else {
    Outgoing& out = outgoing_[target];
    Message* const cell = ended_ || !out.backlog.empty() ? nullptr : out.lane.claim();
    if (cell == nullptr) [[unlikely]] {
      return refuse();
    }
    ::new (static_cast<void*>(cell)) Message{Job(std::forward<F>(function))};
    if (!cell->job) [[unlikely]] {
      return Error(Errc::resource_exhausted, "no memory for the message");
    }
    count(counters_.posted);
    commit(out);
    return {};
  }
}

template <typename F>
Result<void> Core::post_foreign(unsigned slot, F&& function) {
  if constexpr (!kMadeInPlace<F>) {
    return post_foreign(slot, Job(std::forward<F>(function)));
  } else {
    ForeignLane& foreign = foreign_[slot];
    const sync::LockGuard lock(foreign.mutex);
    Message* const cell = claim_foreign(slot, foreign);
    if (cell == nullptr) [[unlikely]] {
      return foreign.closed ? Error(Errc::closed, "the runtime was stopped")
                            : Error(Errc::resource_exhausted, "the lane to that core is full");
    }
    ::new (static_cast<void*>(cell)) Message{Job(std::forward<F>(function))};
    if (!cell->job) [[unlikely]] {
      return Error(Errc::resource_exhausted, "no memory for the message");
    }
    count(foreign.counters.foreign_posted);
    lanes_[cores_ + slot].outgoing()->commit(1);
    ring(bit_of(cores_ + slot));  // under the lock, which stop() takes: the message may destroy the runtime
    return {};
  }
}

inline void Core::commit(Outgoing& out) noexcept {
  if (out.lane.target() == this) {
    out.lane.commit_to_self();
    ready_ |= bit_of(index_);
    return;
  }
  if (!out.posted) {
    out.posted = true;
    posted_.to.push_back(&out);
  }
  if (out.lane.commit(posted_.in_job ? posted_.job_number : 0)) {
    count(counters_.wakes);
  }
  if (out.lane.hides() && !out.hiding) {
    out.hiding = true;
    posted_.hiding.push_back(&out);
  }
}

inline void Core::end_job() noexcept {
  posted_.in_job = false;
  if (!posted_.hiding.empty()) {
    show_hidden();
  }
}

}  // namespace weft::rt
