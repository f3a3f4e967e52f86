// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "weft/sync/atomic.h"

namespace weft::rt {

// JobQueue: a bounded queue from any threads to any threads, first in first out. A ring of cells; each cell counts
// whose turn it is (the design is D. Vyukov's). The close is a bit beside the tail: exactly the values pushed before
// it stay.
// Owner: its maker; destruction destroys the values left inside.
// Affinity: any thread, but for make() and destruction.
// Cost: one compare-exchange and one line of cells to push, the same to pop; no allocation after make().
// Invariants:
//   1. The turn of position p's cell is p while the cell is free for the push of p. It is p + 1 while the cell holds
//      that value, and p + capacity once the value was taken.
//   2. head <= tail <= head + capacity. After close() the tail does not move.
//   3. A push or pop that is interrupted half way blocks only those after it in this queue: they return full or empty.
//      The interrupted thread notifies when its own operation is done.
template <typename T>
class JobQueue {
 public:
  enum class Push : std::uint8_t { done, full, closed };

  JobQueue() noexcept = default;
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;
  ~JobQueue() {
    for (std::size_t i = 0; i < cell_count(); ++i) {
      cells_[i].~Cell();
    }
    ::operator delete(cells_, std::align_val_t{alignof(Cell)});
  }

  static constexpr std::size_t kCapacityMin = 2;  // with one cell, "holds a value" and "free again" would be one count

  // Once, before anything else; `capacity` is rounded up to a power of two. Returns false if there is no memory.
  [[nodiscard]] bool make(std::size_t capacity) noexcept {
    capacity = std::bit_ceil(capacity < kCapacityMin ? kCapacityMin : capacity);
    if (capacity > SIZE_MAX / 2 / sizeof(Cell)) {
      return false;
    }
    void* memory = ::operator new(capacity * sizeof(Cell), std::align_val_t{alignof(Cell)}, std::nothrow);
    if (memory == nullptr) {
      return false;
    }
    cells_ = static_cast<Cell*>(memory);
    for (std::size_t i = 0; i < capacity; ++i) {
      ::new (&cells_[i]) Cell(i);
    }
    mask_ = capacity - 1;
    return true;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return cell_count(); }

  // `value` is moved from only when it is done.
  [[nodiscard]] Push try_push(T& value) noexcept {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      if ((tail & kClosed) != 0) {
        return Push::closed;
      }
      const std::uint64_t position = tail / kStep;
      Cell& cell = cells_[position & mask_];
      // Acquire pairs with the release in try_pop(): the value of the lap before was moved out.
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        // Relaxed, like all accesses to head_ and tail_: the cell's turn, not the position, orders the value.
        if (tail_.compare_exchange_weak(tail, tail + kStep, std::memory_order_relaxed, std::memory_order_relaxed)) {
          __builtin_prefetch(&cells_[(position + kAhead) & mask_], 1);
          cell.value = std::move(value);
          cell.turn.store(position + 1, std::memory_order_release);  // pairs with the acquire in try_pop()
          return Push::done;
        }
      } else if (turn < position) {
        return Push::full;
      } else {
        tail = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  // Returns false if it is empty, or the next push is not done yet.
  [[nodiscard]] bool try_pop(T& value) noexcept {
    std::uint64_t position = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);  // pairs with the release in try_push()
      if (turn == position + 1) {
        if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed, std::memory_order_relaxed)) {
          __builtin_prefetch(&cells_[(position + kAhead) & mask_], 1);
          value = std::move(cell.value);
          cell.turn.store(position + mask_ + 1, std::memory_order_release);  // pairs with the acquire in try_push()
          return true;
        }
      } else if (turn <= position) {
        return false;
      } else {
        position = head_.load(std::memory_order_relaxed);
      }
    }
  }

  // Whether try_pop() would find a value. After a full fence, ready() sees every push that another thread completed
  // before its own full fence.
  [[nodiscard]] bool ready() const noexcept {
    for (;;) {
      const std::uint64_t position = head_.load(std::memory_order_relaxed);
      // Acquire pairs with the release in try_pop(): if this head is stale, the next round loads a newer one.
      const std::uint64_t turn = cells_[position & mask_].turn.load(std::memory_order_acquire);
      if (turn <= position + 1) {
        return turn == position + 1;
      }
    }
  }

  void close() noexcept { tail_.fetch_or(kClosed, std::memory_order_relaxed); }  // idempotent
  // Closed, and every value was taken. Once true, always true.
  [[nodiscard]] bool drained() const noexcept {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    return (tail & kClosed) != 0 && head_.load(std::memory_order_relaxed) == tail / kStep;
  }
  // Values inside, roughly.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed) / kStep;
    return tail > head ? tail - head : 0;
  }

 private:
  static constexpr std::uint64_t kClosed = 1;
  static constexpr std::uint64_t kStep = 2;   // of the tail, whose lowest bit is kClosed
  static constexpr std::uint64_t kAhead = 2;  // how far ahead of the present cell push and pop prefetch

  struct alignas(64) Cell {
    explicit Cell(std::uint64_t first_turn) : turn(first_turn) {}
    sync::Atomic<std::uint64_t> turn;
    T value{};
  };

  [[nodiscard]] std::size_t cell_count() const noexcept { return cells_ == nullptr ? 0 : mask_ + 1; }

  Cell* cells_ = nullptr;
  std::uint64_t mask_ = 0;
  alignas(sync::kLineSize) sync::Atomic<std::uint64_t> tail_{0};
  alignas(sync::kLineSize) sync::Atomic<std::uint64_t> head_{0};
};

}  // namespace weft::rt
