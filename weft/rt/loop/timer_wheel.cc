// SPDX-License-Identifier: MIT
#include "weft/rt/loop/timer_wheel.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace weft::rt {
namespace {

constexpr std::uint64_t kEndOfTime = ~std::uint64_t{0};  // the last tick

// Nanoseconds from `start` to `end`, which may be further apart than a Duration reaches; 0 when `end` is not later.
std::uint64_t nanoseconds_between(Instant start, Instant end) noexcept {
  const auto from = static_cast<std::uint64_t>(start.time_since_epoch().count());
  const auto to = static_cast<std::uint64_t>(end.time_since_epoch().count());
  return end <= start ? 0 : to - from;
}

}  // namespace

TimerWheel::TimerWheel(Instant origin, Duration tick)
    : origin_(origin),
      tick_bits_(
          static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(std::max(tick, Duration(1)).count()))) - 1),
      now_(origin),
      timers_(kTimersMax) {}

TimerId TimerWheel::schedule(Instant deadline, TimerCallback callback) {
  Timers::Slot* timer = callback.function == nullptr ? nullptr : timers_.claim();
  if (timer == nullptr) {
    return {};
  }
  timer->value()->callback = callback;
  if (!push_new(deadline, timer)) {
    timers_.release(timer);
    return {};
  }
  return {timer->id().value};
}

inline bool TimerWheel::push_new(Instant deadline, Timers::Slot* timer) {
  quiet_until_ = 0;
  next_.reset();
  const std::uint64_t tick = deadline_tick(deadline);
  return push(tick <= elapsed_ || deadline <= now_ ? fresh_ : list_of(tick), {tick, timer});
}

bool TimerWheel::cancel(TimerId id) {
  Timers::Slot* timer = timers_.find({id.value});
  if (timer == nullptr) {
    return false;
  }
  next_.reset();
  remove(timer->value()->entry);
  timers_.release(timer);
  return true;
}

bool TimerWheel::reschedule(TimerId id, Instant deadline) {
  Timers::Slot* timer = timers_.find({id.value});
  if (timer == nullptr) {
    return false;
  }
  Cell* const before = timer->value()->entry;
  if (!push_new(deadline, timer)) {
    return false;
  }
  remove(before);
  return true;
}

Instant TimerWheel::next_deadline() const {
  if (timers_.size() == 0) {
    return kNever;
  }
  if (next_) {
    return *next_;
  }
  if (draining_ != kNone || has_overdue()) {
    return tick_time(elapsed_);
  }
  const Slot slot = next_slot();
  const auto [front, back] = lists_[slot.list];
  // The earliest timer of a short list saves the wake-ups that would only move it down a level.
  std::uint64_t earliest = slot.start;
  if (&head_of(front) == &head_of(back)) {
    earliest = kEndOfTime;
    for (const Cell* cell = front; cell <= back; ++cell) {
      earliest = std::min(earliest, cell->entry.tick);
    }
  }
  next_ = tick_time(earliest);
  return *next_;
}

std::size_t TimerWheel::advance(Instant now, std::size_t limit) {
  if (advance_ != nullptr || silent_) {
    return 0;
  }
  const std::uint64_t target = std::max(elapsed_, nanoseconds_between(origin_, now) >> tick_bits_);
  if (target < quiet_until_) {
    elapsed_ = target;
    now_ = now;
    return 0;
  }
  const Advance call(*this);
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  std::size_t moves = limit > kMost / kMovesPerFire ? kMost : limit * kMovesPerFire;
  std::size_t fired = 0;
  if (has_overdue()) {
    fired = fire_list(other_overdue(fresh_), limit, call.gone);  // timers that an earlier call left
    if (!call.gone && fired < limit) {
      fresh_ = other_overdue(fresh_);
      fired += fire_list(other_overdue(fresh_), limit - fired, call.gone);
    }
  }
  while (!call.gone && fired < limit && (draining_ == kNone || drain(moves))) {
    const Slot slot = words_ != 0 ? next_slot() : Slot{kNone, kEndOfTime};
    if (slot.list == kNone || slot.start > target) {
      elapsed_ = target;
      now_ = now;
      quiet_until_ = has_overdue() ? 0 : slot.start;
      break;
    }
    elapsed_ = slot.start;
    if (slot.list >= kSlots) {
      draining_ = slot.list;
      continue;
    }
    fired += fire_list(slot.list, limit - fired, call.gone);
  }
  return fired;
}

// Rounded up, so that the tick is reached at the deadline or after it.
std::uint64_t TimerWheel::deadline_tick(Instant deadline) const {
  const std::uint64_t distance = nanoseconds_between(origin_, deadline);
  const std::uint64_t tick = distance >> tick_bits_;
  return tick + (tick << tick_bits_ != distance ? 1 : 0);
}

Instant TimerWheel::tick_time(std::uint64_t tick) const {
  const std::uint64_t room = nanoseconds_between(origin_, kNever);
  if (tick > room >> tick_bits_) {
    return kNever;
  }
  const std::uint64_t nanoseconds =
      static_cast<std::uint64_t>(origin_.time_since_epoch().count()) + (tick << tick_bits_);
  return Instant(Duration(static_cast<Duration::rep>(nanoseconds)));
}

unsigned TimerWheel::list_of(std::uint64_t tick) const {
  const std::uint64_t difference = (tick ^ elapsed_) | 1;  // elapsed_ itself is at level 0
  const auto level = static_cast<unsigned>(std::bit_width(difference) - 1) / kGroupBits;
  return level * kSlots + static_cast<unsigned>(tick >> (level * kGroupBits)) % kSlots;
}

// By invariant 3 the lowest level with a timer is the next to be due, and in it the lowest slot.
TimerWheel::Slot TimerWheel::next_slot() const {
  const auto word = static_cast<unsigned>(std::countr_zero(words_));
  const unsigned list = word * 64 + static_cast<unsigned>(std::countr_zero(occupied_[word]));
  const unsigned shift = list / kSlots * kGroupBits;
  const std::uint64_t higher_groups = elapsed_ & (kEndOfTime << shift << (kGroupBits - 1) << 1);
  return {list, higher_groups | (std::uint64_t{list % kSlots} << shift)};
}

TimerWheel::BlockHead& TimerWheel::head_of(const Cell* cell) {
  static_assert(decltype(cells_)::kAlignment % (kBlock * sizeof(Cell)) == 0);
  const std::uintptr_t place = reinterpret_cast<std::uintptr_t>(cell) / sizeof(Cell) % kBlock;
  return const_cast<Cell*>(cell - place)->head;
}

inline bool TimerWheel::push(unsigned list, Entry entry) {
  Cell*& back = lists_[list].back;
  Cell* cell = back + 1;
  if (back == nullptr || &head_of(cell) != &head_of(back)) {
    cell = append_block(list);
    if (cell == nullptr) {
      return false;
    }
  }
  back = cell;
  cell->entry = entry;
  entry.timer->value()->entry = cell;
  return true;
}

TimerWheel::Cell* TimerWheel::append_block(unsigned list) {
  if (free_blocks_ == kNil) {
    if (!cells_.grow(kBlock)) {
      return nullptr;
    }
    free_blocks_ = cells_.size() - kBlock;
    cells_[free_blocks_].head = {free_blocks_, kNil, kNil, kNone};
  }
  Cell* const first = &cells_[free_blocks_];
  free_blocks_ = first->head.next;
  first->head.list = list;
  List& into = lists_[list];
  if (into.back != nullptr) {
    BlockHead& last = head_of(into.back);
    last.next = first->head.self;
    first->head.previous = last.self;
    return first + 1;
  }
  into.front = first + 1;
  if (list < kOverdue) {
    words_ |= 1u << (list / 64);
    occupied_[list / 64] |= std::uint64_t{1} << (list % 64);
  }
  return first + 1;
}

// Moves the last entry to the place of the removed one.
inline void TimerWheel::remove(Cell* entry) {
  const unsigned list = head_of(entry).list;
  if (Cell* back = lists_[list].back; entry != back) {
    *entry = *back;
    entry->entry.timer->value()->entry = entry;
  }
  pop_back(list);
}

inline void TimerWheel::pop_front(unsigned list) {
  List& from = lists_[list];
  if (from.front == from.back) {
    set_empty(list);
    return;
  }
  BlockHead& head = head_of(from.front++);
  if (&head_of(from.front) != &head) {
    from.front = &cells_[head.next] + 1;
    release_block(head);
  }
}

inline void TimerWheel::pop_back(unsigned list) {
  List& from = lists_[list];
  if (from.front == from.back) {
    set_empty(list);
    return;
  }
  BlockHead& head = head_of(from.back--);
  if (&from.back->head == &head) {
    from.back = &cells_[head.previous] + (kBlock - 1);
    release_block(head);
  }
}

void TimerWheel::set_empty(unsigned list) {
  release_block(head_of(lists_[list].back));
  lists_[list] = {};
  if (list < kOverdue) {
    std::uint64_t& occupied = occupied_[list / 64];
    occupied &= ~(std::uint64_t{1} << (list % 64));
    words_ &= ~(std::uint32_t{occupied == 0} << (list / 64));
  }
}

void TimerWheel::release_block(BlockHead& head) {
  head.next = free_blocks_;
  free_blocks_ = head.self;
}

// Entries lie in the order of firing, but their timers lie where they were scheduled. So the walk prefetches the timers
// of the entries ahead, and the next block.
class TimerWheel::Block {
 public:
  // The block of the entry `first`, up to `back` if the list ends in it.
  Block(const TimerWheel& wheel, Cell* first, Cell* back) : head_(&head_of(first)), next_(nullptr) {
    if (&head_of(back) == head_) {
      last_ = back;
    } else {
      last_ = reinterpret_cast<Cell*>(head_) + (kBlock - 1);
      next_ = &wheel.cells_[head_->next];
      constexpr std::size_t kLine = 64 / sizeof(Cell);
      for (std::size_t cell = 0; cell < kBlock; cell += kLine) {
        __builtin_prefetch(next_ + cell);
      }
    }
  }

  [[nodiscard]] bool has(const Cell* entry) const { return &head_of(entry) == head_; }
  [[nodiscard]] Cell* last() const { return last_; }
  void prefetch_after(const Cell* entry) const {
    constexpr std::ptrdiff_t kAhead = 8;
    if (last_ - entry >= kAhead) {
      __builtin_prefetch(entry[kAhead].entry.timer, 1);
    } else if (next_ != nullptr) {
      __builtin_prefetch(next_[kAhead - (last_ - entry)].entry.timer, 1);
    }
  }

 private:
  BlockHead* head_;
  Cell* last_;
  const Cell* next_;  // where the next block begins; null: there is none
};

std::size_t TimerWheel::fire_list(unsigned list, std::size_t limit, const bool& gone) {
  const List& from = lists_[list];
  std::size_t fired = 0;
  while (fired < limit && from.front != nullptr) {
    const Block block(*this, from.front, from.back);
    do {  // a callback may change the list without the block; that is harmless, as the block only prefetches
      block.prefetch_after(from.front);
      Timers::Slot* timer = from.front->entry.timer;
      const TimerCallback callback = timer->value()->callback;
      pop_front(list);
      timers_.release(timer);
      callback.function(callback.context);
      if (gone) [[unlikely]] {
        return fired + 1;
      }
    } while (++fired < limit && from.front != nullptr && block.has(from.front));
  }
  return fired;
}

bool TimerWheel::drain(std::size_t& moves) {
  List& from = lists_[draining_];
  while (from.front != nullptr) {
    const Block block(*this, from.front, from.back);
    for (Cell* cell = from.front; cell <= block.last(); ++cell, --moves) {
      block.prefetch_after(cell);
      if (moves == 0 || !push(list_of(cell->entry.tick), cell->entry)) {
        from.front = cell;
        return false;
      }
    }
    from.front = block.last();
    pop_front(draining_);
  }
  draining_ = kNone;
  return true;
}

}  // namespace weft::rt
