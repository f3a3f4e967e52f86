// SPDX-License-Identifier: MIT
#include "weft/rt/timer_wheel.h"

#include <bit>

#include "weft/base/assert.h"

namespace weft::rt {
namespace {

constexpr std::uint64_t kEndOfTime = ~std::uint64_t{0};  // the last tick; nothing that is due later can be told apart

// Nanoseconds from `start` to `end`, which may be further apart than a Duration reaches; 0 when `end` is not later.
std::uint64_t nanoseconds_between(Instant start, Instant end) noexcept {
  const auto from = static_cast<std::uint64_t>(start.time_since_epoch().count());
  const auto to = static_cast<std::uint64_t>(end.time_since_epoch().count());
  return end <= start ? 0 : to - from;
}

}  // namespace

TimerWheel::TimerWheel(Instant origin, Duration tick)
    : origin_(origin), tick_ns_(static_cast<std::uint64_t>(tick.count())) {
  WEFT_ASSERT(tick > Duration::zero());
  heads_.fill(kNil);
}

TimerId TimerWheel::schedule(Instant deadline, TimerCallback callback) {
  const std::uint32_t index = take_node();
  Node& node = nodes_[index];
  node.tick = deadline_tick(deadline);
  node.callback = callback;
  ++size_;
  if (node.tick <= elapsed_) {
    link(index, kOverdue);
  } else {
    place(index);
  }
  return {(std::uint64_t{node.generation} << 32) | index};
}

bool TimerWheel::cancel(TimerId id) {
  const auto index = static_cast<std::uint32_t>(id.value);
  const auto generation = static_cast<std::uint32_t>(id.value >> 32);
  if (index >= nodes_.size() || nodes_[index].generation != generation || nodes_[index].list == kNil) {
    return false;
  }
  unlink(index);
  release_node(index);
  return true;
}

Instant TimerWheel::next_deadline() const {
  constexpr int kScanned = 16;
  if (size_ == 0) {
    return kNever;
  }
  if (heads_[kFiring] != kNil || heads_[kOverdue] != kNil) {
    return tick_time(elapsed_);
  }
  const Slot slot = next_slot();
  // The earliest timer of a short list saves the wake-ups that would only move it down a level.
  std::uint64_t earliest = kEndOfTime;
  std::uint32_t index = heads_[slot.list];
  for (int seen = 0; seen < kScanned; ++seen) {
    earliest = nodes_[index].tick < earliest ? nodes_[index].tick : earliest;
    index = nodes_[index].next;
    if (index == heads_[slot.list]) {
      return tick_time(earliest);
    }
  }
  return tick_time(slot.start);
}

std::size_t TimerWheel::advance(Instant now, std::size_t limit) {
  if (advancing_) {
    return 0;
  }
  advancing_ = true;
  const std::uint64_t target = nanoseconds_between(origin_, now) / tick_ns_;
  splice_overdue();
  std::size_t fired = 0;
  while (fired < limit) {
    const std::uint32_t index = heads_[kFiring];
    if (index != kNil) {
      const TimerCallback callback = nodes_[index].callback;
      unlink(index);
      release_node(index);
      ++fired;
      callback.function(callback.context);
      continue;
    }
    if (levels_ == 0 || next_slot().start > target) {
      elapsed_ = target > elapsed_ ? target : elapsed_;
      break;
    }
    const Slot slot = next_slot();
    elapsed_ = slot.start;
    empty_slot(slot.list);
  }
  advancing_ = false;
  return fired;
}

// Rounded up, so that the tick is reached at the deadline or after it.
std::uint64_t TimerWheel::deadline_tick(Instant deadline) const {
  const std::uint64_t distance = nanoseconds_between(origin_, deadline);
  return distance / tick_ns_ + (distance % tick_ns_ != 0 ? 1 : 0);
}

Instant TimerWheel::tick_time(std::uint64_t tick) const {
  const std::uint64_t room = nanoseconds_between(origin_, kNever);
  if (tick > room / tick_ns_) {
    return kNever;
  }
  const std::uint64_t nanoseconds = static_cast<std::uint64_t>(origin_.time_since_epoch().count()) + tick * tick_ns_;
  return Instant(Duration(static_cast<Duration::rep>(nanoseconds)));
}

// By invariant 3 the lowest level with a timer is the next to be due, and in it the lowest slot.
TimerWheel::Slot TimerWheel::next_slot() const {
  const auto level = static_cast<unsigned>(std::countr_zero(levels_));
  const auto slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
  const unsigned shift = level * kGroupBits;
  const unsigned above = shift + kGroupBits;
  const std::uint64_t higher_groups = above >= 64 ? 0 : (elapsed_ >> above) << above;
  return {level * kSlots + slot, higher_groups | (std::uint64_t{slot} << shift)};
}

std::uint32_t TimerWheel::take_node() {
  if (free_ == kNil) {
    nodes_.emplace_back();
    return static_cast<std::uint32_t>(nodes_.size() - 1);
  }
  const std::uint32_t index = free_;
  free_ = nodes_[index].next;
  return index;
}

void TimerWheel::release_node(std::uint32_t index) {
  Node& node = nodes_[index];
  node.callback = {};
  node.generation += node.generation == kNil ? 2 : 1;  // never 0, so that no id is 0
  node.next = free_;
  free_ = index;
  --size_;
}

void TimerWheel::link(std::uint32_t index, unsigned list) {
  Node& node = nodes_[index];
  const std::uint32_t head = heads_[list];
  node.list = list;
  if (head == kNil) {
    node.next = node.previous = index;
    heads_[list] = index;
    if (list < kFiring) {
      levels_ |= 1u << (list / kSlots);
      occupied_[list / kSlots] |= std::uint64_t{1} << (list % kSlots);
    }
    return;
  }
  node.next = head;
  node.previous = nodes_[head].previous;
  nodes_[node.previous].next = index;
  nodes_[head].previous = index;
}

void TimerWheel::unlink(std::uint32_t index) {
  Node& node = nodes_[index];
  const std::uint32_t list = node.list;
  node.list = kNil;
  if (node.next != index) {
    nodes_[node.next].previous = node.previous;
    nodes_[node.previous].next = node.next;
    if (heads_[list] == index) {
      heads_[list] = node.next;
    }
    return;
  }
  heads_[list] = kNil;
  if (list < kFiring) {
    const unsigned level = list / kSlots;
    occupied_[level] &= ~(std::uint64_t{1} << (list % kSlots));
    levels_ &= occupied_[level] == 0 ? ~(1u << level) : ~0u;
  }
}

void TimerWheel::place(std::uint32_t index) {
  const std::uint64_t tick = nodes_[index].tick;
  if (tick <= elapsed_) {
    link(index, kFiring);
    return;
  }
  const auto level = static_cast<unsigned>(std::bit_width(tick ^ elapsed_) - 1) / kGroupBits;
  const auto slot = static_cast<unsigned>(tick >> (level * kGroupBits)) % kSlots;
  link(index, level * kSlots + slot);
}

void TimerWheel::empty_slot(unsigned list) {
  while (heads_[list] != kNil) {
    const std::uint32_t index = heads_[list];
    unlink(index);
    place(index);
  }
}

void TimerWheel::splice_overdue() {
  while (heads_[kOverdue] != kNil) {
    const std::uint32_t index = heads_[kOverdue];
    unlink(index);
    link(index, kFiring);
  }
}

}  // namespace weft::rt
