// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/rt/backlog.h"
#include "weft/rt/doorbell.h"
#include "weft/rt/executor.h"
#include "weft/rt/lane.h"
#include "weft/rt/loop.h"
#include "weft/rt/task_function.h"
#include "weft/rt/turn_task.h"
#include "weft/sync/mutex.h"

namespace weft::rt {

class Runtime;
namespace detail {
class CallState;
}

// What a core counted since it was made.
struct CoreCounts {
  std::uint64_t posted = 0;    // messages that this core's thread sent, to whatever core, itself included
  std::uint64_t refused = 0;   // that it wanted to send, but the lane was full or closed
  std::uint64_t executed = 0;  // messages that ran here, also those that threw
  std::uint64_t threw = 0;
  std::uint64_t foreign_posted = 0;  // sent here by threads that are no cores of this runtime
  std::uint64_t foreign_refused = 0;
  std::uint64_t wakes = 0;  // cores that this one had to wake from sleep
};

// Core: one thread of a runtime: a loop, its timers and its mailboxes. A lane from each core of the runtime, itself
// included, and lanes for all other threads; a doorbell that says which of them have something.
// Owner: the Runtime. Affinity: index(), runtime(), counts() any thread; everything else the core's own thread.
// Cost: see Runtime. A turn runs at most kMessagesPerTurn messages, and of one lane at most kMessagesPerVisit.
// Invariants:
//   (1) The messages of one sender run in the order of posting, whichever call posted them.
//   (2) A message that lies in a lane is known to the receiver's doorbell at the end of the sender's turn at the
//   latest;
//       a receiver that sleeps is woken at once.
//   (3) While something waits for room in a lane, whatever is sent by that lane waits behind it or is refused.
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
  // Runs the task once, at the end of this turn; nothing happens when it is listed already.
  void at_turn_end(TurnTask& task) noexcept {
    if (!task.linked()) {
      turn_tasks_.push_back(task);
    }
  }
  [[nodiscard]] CoreCounts counts() const noexcept;

  // --- what awaitables are made of ---
  // Errors: as Runtime::post().
  [[nodiscard]] Result<void> send(unsigned target, TaskFunction& task) noexcept;
  // False: no room, or others wait for it.
  [[nodiscard]] bool try_send(unsigned target, Waiting& waiting) noexcept;
  // Behind those: it will be told, unless forget() takes it back.
  void wait_to_send(unsigned target, Waiting& waiting) noexcept;
  void forget(Waiting& waiting) noexcept;
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  [[nodiscard]] List<detail::CallState>& calls() noexcept { return calls_; }  // that this core made

 private:
  friend class Runtime;
  using Ring = sync::SpscRing<TaskFunction>;
  // The sending side of a lane that other threads share.
  struct ForeignLane {
    alignas(sync::kLineSize) sync::Mutex mutex;
    bool closed = false;  // guarded by mutex, as is writing the others
    std::atomic<std::uint64_t> posted{0};
    std::atomic<std::uint64_t> refused{0};
  };
  // This core's side of what it sends to one core.
  struct Outgoing {
    Ring* ring = nullptr;
    Core* target = nullptr;
    std::uint32_t posts = 0;  // in this turn, each of which may ring
    bool posted = false;      // in this turn: it is listed in posted_to_
    bool unrung = false;      // since the bell was rung
    Backlog backlog;          // what waits for room
  };

  Core(Runtime& runtime, unsigned index, std::unique_ptr<Loop> loop) noexcept;
  static Result<std::unique_ptr<Core>> make(Runtime& runtime, unsigned index, unsigned cores, unsigned foreign_lanes,
                                            std::size_t lane_capacity);
  void run(std::span<const std::unique_ptr<Core>> cores, sync::WaitMode mode);  // until stop(), in the core's thread
  void stop() { loop_->stop(); }                                                // any thread
  void drop_messages() noexcept;                                                // once no core runs

  // TurnHook
  Instant handle_turn(Instant now) override;
  [[nodiscard]] bool has_work() const noexcept override;
  [[nodiscard]] bool may_sleep() noexcept override { return doorbell_.try_sleep(); }

  // --- receiving ---
  void run_messages();
  bool visit(unsigned bit, std::size_t& budget);  // whether a lane of that bit still has something
  std::size_t run_lane(unsigned lane, Ring& ring, std::size_t most);
  void run_turn_tasks() noexcept;
  void end() noexcept;

  // --- sending ---
  [[nodiscard]] bool has_room(Outgoing& out) noexcept;
  void push(Outgoing& out, TaskFunction& task) noexcept;
  void ring_for(Outgoing& out) noexcept;
  void ring_all() noexcept;
  void serve_backlogs() noexcept;
  void serve(Outgoing& out) noexcept;
  [[nodiscard]] bool wait_for_room(Outgoing& out) noexcept;

  // --- any thread ---
  bool ring(std::uint64_t bits) noexcept;  // whether it had to be woken
  [[nodiscard]] Result<void> take_foreign(unsigned slot, TaskFunction& task) noexcept;
  void close_foreign() noexcept;

  static constexpr std::uint32_t kPostsPerRing = 32;
  static constexpr unsigned kLaneBits = 60;
  static constexpr std::uint64_t kRoom = std::uint64_t{1} << kLaneBits;        // somewhere: see Outgoing::backlog
  static constexpr std::uint64_t kTurn = std::uint64_t{1} << (kLaneBits + 1);  // only a turn
  static constexpr std::uint64_t kLanes = kRoom - 1;
  static constexpr std::uint64_t bit_of(unsigned lane) noexcept { return std::uint64_t{1} << (lane % kLaneBits); }

  static constinit inline thread_local Core* current_ = nullptr;

  Runtime& runtime_;
  const unsigned index_;
  unsigned cores_ = 0;
  std::size_t lane_capacity_ = 0;
  std::unique_ptr<Loop> loop_;

  // Receiving. Lanes 0 .. cores_ - 1 are those cores', the rest the foreign threads'.
  Doorbell doorbell_;
  std::unique_ptr<Lane<TaskFunction>[]> lanes_;
  std::unique_ptr<ForeignLane[]> foreign_;
  unsigned lane_count_ = 0;
  std::uint64_t ready_ = 0;  // bits of lanes that have something, as this thread knows by itself
  unsigned next_bit_ = 0;    // where the next turn begins
  Ring* hot_ = nullptr;      // the lane that last had something, worth a look without the bell
  std::uint64_t hot_bit_ = 0;
  List<TurnTask> turn_tasks_;

  // Sending.
  std::unique_ptr<Outgoing[]> outgoing_;
  std::vector<Outgoing*> posted_to_;  // in this turn; reserved
  List<detail::CallState> calls_;
  bool ended_ = false;

  // Written by this thread, read by any.
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> executed_{0};
  std::atomic<std::uint64_t> threw_{0};
  std::atomic<std::uint64_t> dropped_{0};  // that waited for room, and were taken back
  std::atomic<std::uint64_t> wakes_{0};
};

}  // namespace weft::rt
