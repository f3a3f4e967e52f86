// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "weft/base/slot_pool.h"
#include "weft/base/stable_array.h"
#include "weft/base/time.h"

namespace weft::rt {

// TimerCallback: the function of a timer. Not owned: `context` must live until the timer fired or was cancelled.
struct TimerCallback {
  void (*function)(void* context) = nullptr;
  void* context = nullptr;
};

// TimerId: names one scheduled timer. The id of a timer that fired or was cancelled never names another.
struct TimerId {
  std::uint64_t value = 0;  // 0 is not a timer

  explicit operator bool() const noexcept { return value != 0; }
  friend bool operator==(TimerId, TimerId) = default;
};

// TimerWheel: many deadlines, in constant time each. The wheel has no clock: advance() passes the time. Deadlines are
// absolute, so that late calls do not add up.
// Owner: a core.
// Affinity: one thread.
// Cost: schedule, cancel and reschedule O(1); advance O(fired + moved). A timer moves down at most 7 levels; empty
// stretches of time cost nothing. 48 bytes a timer, from memory that only grows: no allocation once the peak was
// reached, and growing copies nothing.
// Invariants:
//   1. A timer never fires before its deadline. It fires in the first advance() whose `now` is at least one tick after
//      the deadline, as far as that call's bounds permit.
//   2. Each timer fires once: first those that were scheduled for the past, then in the order of ticks. The order
//      within a tick is not defined.
//   3. A timer at level L differs from elapsed_ first (from the top) in 8-bit group L. So a slot is never before
//      elapsed_, and lower levels are due before higher ones. Timers of the tick elapsed_ are at level 0; those of
//      draining_ move there.
//   4. occupied_ and words_ have a bit for each non-empty list of the wheel and no other.
class TimerWheel {
 public:
  static constexpr Duration kDefaultTick = Duration(1 << 16);  // 65.5 us
  static constexpr std::uint32_t kTimersMax = std::uint32_t{1} << 26;
  static constexpr std::size_t kMovesPerFire = 16;

  // The tick is rounded down to a power of two nanoseconds; at least 1 ns.
  explicit TimerWheel(Instant origin, Duration tick = kDefaultTick);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;
  ~TimerWheel() { silence(); }
  [[nodiscard]] Duration tick() const noexcept { return Duration(Duration::rep{1} << tick_bits_); }

  // A timer whose deadline is not after the `now` of the last advance() fires in the next one, also if a callback
  // schedules it. kNever is allowed. Returns no timer if there are kTimersMax, if there is no memory, or if there is no
  // function.
  [[nodiscard]] TimerId schedule(Instant deadline, TimerCallback callback);
  bool cancel(TimerId id);  // returns false if the timer fired, was cancelled or never existed
  // Gives the timer another deadline; it keeps its id. Returns false, and changes nothing, like cancel(), or if there
  // is no memory.
  bool reschedule(TimerId id, Instant deadline);
  [[nodiscard]] std::size_t size() const noexcept { return timers_.size(); }

  // The time at which the owner calls advance() next: never more than a tick after the earliest deadline, perhaps
  // before it. kNever if there is no timer. O(1): reads at most one block of timers.
  [[nodiscard]] Instant next_deadline() const;

  // Fires the timers due at `now`, at most `limit`, and returns their number. Moves at most kMovesPerFire * limit
  // timers between levels. Timers beyond these bounds stay due, in their order, and next_deadline() is then not after
  // `now`. An exception of a callback passes through: its timer has fired, and the next call fires the others.
  // Callbacks may schedule and cancel any timer, and destroy the wheel: no other timer fires then. A timer that they
  // schedule between the time being processed and `now` fires in this call. A `now` before an earlier one does not turn
  // time back. A call from inside a callback has no effect.
  std::size_t advance(Instant now, std::size_t limit);
  // No timer fires any more, not even in an advance() that is under way.
  void silence() noexcept {
    silent_ = true;
    if (Advance* const call = std::exchange(advance_, nullptr); call != nullptr) {
      call->gone = true;
    }
  }

 private:
  static constexpr unsigned kGroupBits = 8;
  static constexpr unsigned kSlots = 1u << kGroupBits;
  static constexpr unsigned kLevels = 64 / kGroupBits;
  static constexpr unsigned kOverdue = kLevels * kSlots;  // two lists of timers scheduled for the past: see fresh_
  static constexpr unsigned kLists = kOverdue + 2;
  static constexpr unsigned kNone = kLists;
  static constexpr std::uint32_t kBlock = 16;  // cells; the first one is the block's head
  static constexpr std::uint32_t kNil = ~std::uint32_t{0};

  // A list is a chain of blocks of entries side by side: a walk through it is a walk through memory.
  union Cell;
  class Block;  // of entries, for a walk with prefetch
  struct Timer {
    TimerCallback callback;
    Cell* entry;
  };
  using Timers = SlotPool<Timer>;
  struct Entry {
    std::uint64_t tick;
    Timers::Slot* timer;
  };
  struct BlockHead {
    std::uint32_t self;  // numbers of first cells
    std::uint32_t next;
    std::uint32_t previous;
    std::uint32_t list;
  };
  union alignas(16) Cell {
    Entry entry;
    BlockHead head;
  };
  struct List {
    Cell* front = nullptr;  // the first and the last entry
    Cell* back = nullptr;
  };
  struct Slot {
    unsigned list;
    std::uint64_t start;  // tick
  };
  // Advance: a call of advance(), which a callback may leave by an exception, or without a wheel.
  struct Advance {
    explicit Advance(TimerWheel& of) noexcept : wheel(of) {
      wheel.advance_ = this;
      wheel.next_.reset();
    }
    Advance(const Advance&) = delete;
    Advance& operator=(const Advance&) = delete;
    ~Advance() {
      if (!gone) {
        wheel.next_.reset();  // a callback may have called next_deadline()
        wheel.advance_ = nullptr;
      }
    }
    TimerWheel& wheel;
    bool gone = false;  // the wheel was cleared or has ended
  };

  static unsigned other_overdue(unsigned list) { return list ^ kOverdue ^ (kOverdue + 1); }
  static BlockHead& head_of(const Cell* cell);
  [[nodiscard]] std::uint64_t deadline_tick(Instant deadline) const;
  [[nodiscard]] Instant tick_time(std::uint64_t tick) const;
  [[nodiscard]] unsigned list_of(std::uint64_t tick) const;  // requires tick >= elapsed_
  bool push_new(Instant deadline, Timers::Slot* timer);      // as push()
  [[nodiscard]] bool has_overdue() const {
    return lists_[kOverdue].front != nullptr || lists_[kOverdue + 1].front != nullptr;
  }
  [[nodiscard]] Slot next_slot() const;   // requires words_ != 0
  bool push(unsigned list, Entry entry);  // returns false if there is no memory
  Cell* append_block(unsigned list);      // its first entry; null if there is no memory
  void remove(Cell* entry);
  void pop_front(unsigned list);
  void pop_back(unsigned list);
  void set_empty(unsigned list);
  void release_block(BlockHead& head);
  std::size_t fire_list(unsigned list, std::size_t limit, const bool& gone);  // returns their number
  bool drain(
      std::size_t& moves);  // requires draining_; returns false if entries are left, because of `moves` or memory

  Instant origin_;
  unsigned tick_bits_;
  std::uint64_t elapsed_ = 0;   // ticks processed
  unsigned draining_ = kNone;   // a slot above level 0 that starts at elapsed_ and is being emptied
  unsigned fresh_ = kOverdue;   // the overdue list that takes timers scheduled for the past; advance() fires the other
  Advance* advance_ = nullptr;  // the call that is under way
  bool silent_ = false;
  Instant now_;                          // of the last advance() that left nothing due
  std::uint64_t quiet_until_ = 0;        // no timer is due before this tick; 0: not known
  mutable std::optional<Instant> next_;  // the result of next_deadline(), until a change
  std::uint32_t free_blocks_ = kNil;
  std::uint32_t words_ = 0;                              // bit per word of occupied_ that is not 0
  std::array<std::uint64_t, kOverdue / 64> occupied_{};  // bit per slot with a timer
  std::array<List, kLists> lists_{};
  StableArray<Cell> cells_;
  Timers timers_;
};

}  // namespace weft::rt
