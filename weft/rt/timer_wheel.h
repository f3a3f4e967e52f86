// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/time.h"

namespace weft::rt {

// What a timer calls. Not owned: `context` must live until the timer fired or was cancelled.
struct TimerCallback {
  void (*function)(void* context) = nullptr;
  void* context = nullptr;
};

// Names one scheduled timer, once: the id of a timer that fired or was cancelled never names another.
struct TimerId {
  std::uint64_t value = 0;  // 0 is no timer

  explicit operator bool() const noexcept { return value != 0; }
  friend bool operator==(TimerId, TimerId) = default;
};

// TimerWheel: many deadlines, cheaply. It has no clock: time comes in through advance().
// Owner: a core. Affinity: one thread. Cost: schedule and cancel O(1); advance O(fired + moved), a timer moves down at
// most 10 levels; empty stretches of time cost nothing. Nodes are pooled: no allocation once the peak was reached.
// Invariants: 1. a timer never fires before its deadline, and fires in the first advance() whose `now` is at least one
// tick after it, `limit` permitting. 2. each fires once. 3. a timer at level L differs from elapsed_ first (from the
// top) in 6-bit group L, so a slot is never behind elapsed_ and lower levels are due before higher ones. 4. occupied_
// and levels_ have a bit for each non-empty list of the wheel and no other.
class TimerWheel {
 public:
  static constexpr Duration kDefaultTick = std::chrono::microseconds(100);

  explicit TimerWheel(Instant origin, Duration tick = kDefaultTick);  // tick: at least 1 ns

  // A deadline in the past fires in the next advance(), also when scheduled inside a callback. kNever is allowed.
  [[nodiscard]] TimerId schedule(Instant deadline, TimerCallback callback);
  bool cancel(TimerId id);  // false: it fired, was cancelled or never was
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // When advance() should be called next: never more than a tick after the earliest deadline, perhaps before it. kNever
  // when there is no timer.
  [[nodiscard]] Instant next_deadline() const;

  // Fires what is due at `now`, at most `limit`, and returns how many; the rest stays due. Callbacks must not throw;
  // they may schedule and cancel anything, and a timer they schedule between the time being processed and `now` fires
  // in this call. A `now` before an earlier one does not turn time back. Called inside a callback it does nothing.
  std::size_t advance(Instant now, std::size_t limit);

 private:
  static constexpr unsigned kGroupBits = 6;
  static constexpr unsigned kSlots = 1u << kGroupBits;
  static constexpr unsigned kLevels = 11;                // 11 * 6 bits cover any 64-bit tick
  static constexpr unsigned kFiring = kLevels * kSlots;  // list of timers whose tick was reached
  static constexpr unsigned kOverdue = kFiring + 1;      // list of timers scheduled for the past
  static constexpr unsigned kLists = kOverdue + 1;
  static constexpr std::uint32_t kNil = ~std::uint32_t{0};

  struct Node {
    std::uint64_t tick = 0;
    TimerCallback callback;
    std::uint32_t next = kNil;  // circular within a list; the free list ends in kNil
    std::uint32_t previous = kNil;
    std::uint32_t generation = 1;  // upper half of the id; grows at every release
    std::uint32_t list = kNil;     // kNil while free
  };
  struct Slot {
    unsigned list;
    std::uint64_t start;  // tick
  };

  [[nodiscard]] std::uint64_t deadline_tick(Instant deadline) const;
  [[nodiscard]] Instant tick_time(std::uint64_t tick) const;
  [[nodiscard]] Slot next_slot() const;  // requires levels_ != 0
  std::uint32_t take_node();
  void release_node(std::uint32_t index);
  void link(std::uint32_t index, unsigned list);
  void unlink(std::uint32_t index);
  void place(std::uint32_t index);  // into the wheel, by its tick
  void empty_slot(unsigned list);   // moves its timers to where they belong now
  void splice_overdue();

  Instant origin_;
  std::uint64_t tick_ns_;
  std::uint64_t elapsed_ = 0;  // ticks processed
  std::size_t size_ = 0;
  bool advancing_ = false;
  std::uint32_t free_ = kNil;
  std::uint32_t levels_ = 0;                       // bit per level with a timer
  std::array<std::uint64_t, kLevels> occupied_{};  // bit per slot with a timer
  std::array<std::uint32_t, kLists> heads_;
  std::vector<Node> nodes_;
};

}  // namespace weft::rt
