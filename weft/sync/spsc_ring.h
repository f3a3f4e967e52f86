// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/sync/atomic.h"
#include "weft/sys/cpu.h"

namespace weft::sync {

// SpscRing: a bounded queue of values from one producer to one consumer. (SpscQueue is the unbounded one, for
// cells that are published in transactions.)
// Owner: a move-only handle. It is moved and destroyed while neither side uses it, and destroys the remaining values. A
// moved-from handle may only be assigned or destroyed.
// Affinity: one producer, one consumer; each may move between threads that hand over with acquire and
// release.
// Cost: no allocation after make(). A push or pop is one move of T and one release store; a batch is one store in all.
// A side reads the other side's index only if its own copy shows a full or empty ring.
// T: no operation of T that a push, pop or destruction uses may throw. Any alignment.
// Invariants:
// 1. head <= published <= tail <= head + capacity; all only grow.
// 2. The cells in [head, tail) hold objects, all others are raw storage.
// 3. A pop makes room at once: capacity is exact, though the number of cells is a power of two.
template <typename T>
class SpscRing {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

 public:
  // Errors: invalid_argument (a capacity of zero, or more than memory can address); resource_exhausted (no memory).
  [[nodiscard]] static Result<SpscRing> make(std::size_t capacity) noexcept {
    if (capacity == 0 || capacity > kCapacityMax) {
      return Error(Errc::invalid_argument, "the capacity of a ring");
    }
    const std::size_t cells = std::bit_ceil(capacity);
    void* memory = ::operator new(kCellsOffset + cells * sizeof(T), std::align_val_t{kAlignment}, std::nothrow);
    if (memory == nullptr) {
      return Error(Errc::resource_exhausted, "memory for a ring");
    }
    return SpscRing(::new (memory) Shared(), capacity, cells - 1);
  }

  SpscRing(SpscRing&& other) noexcept
      : shared_(std::exchange(other.shared_, nullptr)), capacity_(other.capacity_), mask_(other.mask_) {}
  SpscRing& operator=(SpscRing&& other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(capacity_, other.capacity_);
    std::swap(mask_, other.mask_);
    return *this;
  }
  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;
  ~SpscRing() {
    if (shared_ != nullptr) {
      while (front() != nullptr) {
        pop();
      }
      shared_->~Shared();
      ::operator delete(shared_, std::align_val_t{kAlignment});
    }
  }

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // --- producer ---

  // Returns false if the ring is full; then `value` is unchanged.
  template <typename U>
  [[nodiscard]] bool try_push(U&& value) noexcept {
    static_assert(std::is_nothrow_constructible_v<T, U&&>);
    const std::uint64_t tail = shared_->producer.tail;
    if (!has_room(tail)) {
      return false;
    }
    T* target = cell(tail);
    prefetch(target);
    std::construct_at(target, std::forward<U>(value));
    publish(tail + 1);
    return true;
  }
  // Moves the first values, as many as fit. Returns the number. They become visible together.
  [[nodiscard]] std::size_t try_push_batch(std::span<T> values) noexcept {
    const std::size_t count = std::min(values.size(), room(values.size()));
    const std::uint64_t tail = shared_->producer.tail;
    for_each_run(tail, count, [&](T* cells, std::size_t run, std::size_t done) {
      if constexpr (std::is_trivially_copyable_v<T>) {
        std::memcpy(static_cast<void*>(cells), values.data() + done, run * sizeof(T));
      } else {
        std::uninitialized_move_n(values.data() + done, run, cells);
      }
    });
    publish(tail + count);
    return count;
  }
  // The same, but copies the values.
  [[nodiscard]] std::size_t try_push_batch(std::span<const T> values) noexcept {
    static_assert(std::is_nothrow_copy_constructible_v<T>);
    const std::size_t count = std::min(values.size(), room(values.size()));
    const std::uint64_t tail = shared_->producer.tail;
    for_each_run(tail, count, [&](T* cells, std::size_t run, std::size_t done) {
      std::uninitialized_copy_n(values.data() + done, run, cells);
    });
    publish(tail + count);
    return count;
  }

  // In place: returns at most `most` adjacent free cells, fewer at the ring's end, none if full. They are raw storage:
  // construct objects in the first ones, then commit as many. A claim without a commit has no effect.
  [[nodiscard]] std::span<T> claim(std::size_t most) noexcept {
    const std::uint64_t tail = shared_->producer.tail;
    prefetch(cell(tail));
    return {cell(tail), std::min({most, room(most), cells_to_the_end(tail)})};
  }
  void commit(std::size_t count) noexcept { publish(shared_->producer.tail + count); }

  // The same for a stream of single values: returns a cell of raw storage, or null if full. Prefetches the cell that is
  // kCellsAhead later.
  [[nodiscard]] T* claim_one() noexcept {
    const std::uint64_t tail = shared_->producer.tail;
    if (!has_room(tail)) {
      return nullptr;
    }
    prefetch(cell(tail + kCellsAhead));
    return cell(tail);
  }
  // Appends the claimed cell as the next value. The consumer does not find it before show_appended(), or a later push
  // or commit.
  void append_one() noexcept { shared_->producer.tail = shared_->producer.tail + 1; }
  void show_appended() noexcept { publish(shared_->producer.tail); }

  [[nodiscard]] bool has_room() noexcept { return has_room(shared_->producer.tail); }

  // --- consumer ---

  // Returns false if the ring is empty.
  [[nodiscard]] bool try_pop(T& value) noexcept {
    static_assert(std::is_nothrow_move_assignable_v<T>);
    const std::uint64_t head = shared_->consumer.head;
    if (!has_value(head)) {
      return false;
    }
    T* oldest = cell(head);
    value = std::move(*oldest);
    std::destroy_at(oldest);
    release_to(head + 1);
    return true;
  }
  // Moves as many values as fit into `values`. Returns the number.
  [[nodiscard]] std::size_t try_pop_batch(std::span<T> values) noexcept {
    static_assert(std::is_nothrow_move_assignable_v<T>);
    const std::size_t count = std::min(values.size(), readable(values.size()));
    const std::uint64_t head = shared_->consumer.head;
    for_each_run(head, count, [&](T* cells, std::size_t run, std::size_t done) {
      if constexpr (std::is_trivially_copyable_v<T>) {
        std::memcpy(static_cast<void*>(values.data() + done), cells, run * sizeof(T));
      } else {
        std::move(cells, cells + run, values.data() + done);
        std::destroy_n(cells, run);
      }
    });
    release_to(head + count);
    return count;
  }

  // In place: returns the oldest value, or null. Valid until pop(), which requires that there is a value.
  [[nodiscard]] T* front() noexcept {
    const std::uint64_t head = shared_->consumer.head;
    return has_value(head) ? cell(head) : nullptr;
  }
  void pop() noexcept {
    const std::uint64_t head = shared_->consumer.head;
    std::destroy_at(cell(head));
    release_to(head + 1);
  }
  // In place: returns at most `most` of the oldest values that are adjacent. Valid until consume(), which takes the
  // first ones.
  [[nodiscard]] std::span<T> peek(std::size_t most) noexcept {
    const std::uint64_t head = shared_->consumer.head;
    return {cell(head), std::min({most, readable(most), cells_to_the_end(head)})};
  }
  void consume(std::size_t count) noexcept {
    const std::uint64_t head = shared_->consumer.head;
    for_each_run(head, count, [](T* cells, std::size_t run, std::size_t) { std::destroy_n(cells, run); });
    release_to(head + count);
  }

  // The number of values to pop. Reads the producer's index again only if fewer than `wanted` are known.
  [[nodiscard]] std::size_t readable(std::size_t wanted) noexcept {
    Consumer& mine = shared_->consumer;
    if (mine.published - mine.head < wanted) {
      look();
    }
    return mine.published - mine.head;
  }
  [[nodiscard]] bool empty() noexcept { return !has_value(shared_->consumer.head); }
  // The number of values popped since make().
  [[nodiscard]] std::uint64_t popped() const noexcept { return shared_->consumer.head; }

 private:
  struct Producer {
    Plain<std::uint64_t> tail = 0;
    Plain<std::uint64_t> head = 0;  // the consumer's index as last read
  };
  struct Consumer {
    Plain<std::uint64_t> head = 0;
    Plain<std::uint64_t> published = 0;  // the producer's index as last read
  };
  struct Shared {
    alignas(kLineSize) Producer producer;
    alignas(kLineSize) Atomic<std::uint64_t> published{0};
    alignas(kLineSize) Consumer consumer;
    alignas(kLineSize) Atomic<std::uint64_t> head{0};
  };
  static constexpr std::uint64_t kCellsAhead = 8;
  static constexpr std::size_t kAlignment = std::max(alignof(Shared), alignof(T));
  static constexpr std::size_t kCellsOffset = (sizeof(Shared) + alignof(T) - 1) / alignof(T) * alignof(T);
  static constexpr std::size_t kCapacityMax =
      std::bit_floor((std::numeric_limits<std::ptrdiff_t>::max() - kCellsOffset) / sizeof(T));

  SpscRing(Shared* shared, std::size_t capacity, std::uint64_t mask) noexcept
      : shared_(shared), capacity_(capacity), mask_(mask) {}

  [[nodiscard]] T* cell(std::uint64_t index) const noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(shared_) + kCellsOffset) + (index & mask_);
  }
  [[nodiscard]] std::size_t cells_to_the_end(std::uint64_t index) const noexcept { return mask_ + 1 - (index & mask_); }

  [[nodiscard]] bool has_room(std::uint64_t tail) noexcept {
    Producer& mine = shared_->producer;
    if (tail - mine.head < capacity_) [[likely]] {
      return true;
    }
    mine.head = shared_->head.load(std::memory_order_acquire);  // pairs with the release in release_to()
    return tail - mine.head < capacity_;
  }
  [[nodiscard]] std::size_t room(std::size_t wanted) noexcept {
    Producer& mine = shared_->producer;
    if (capacity_ - (mine.tail - mine.head) < wanted) {
      mine.head = shared_->head.load(std::memory_order_acquire);  // pairs with the release in release_to()
    }
    return capacity_ - (mine.tail - mine.head);
  }
  [[nodiscard]] bool has_value(std::uint64_t head) noexcept {
    if (shared_->consumer.published == head) {
      look();
    }
    return shared_->consumer.published != head;
  }
  void look() noexcept {
    shared_->consumer.published = shared_->published.load(std::memory_order_acquire);  // release in publish()
  }

  // Prefetches the target for writing. The consumer has read these lines, so that without the prefetch each
  // store would wait for one of them in turn. Single pushes of 64 bytes become 2 to 8 times as fast; batches
  // gain little.
  static void prefetch(T* target) noexcept {
    constexpr std::size_t kLine = 64;
    for (std::size_t at = 0; at < std::min(sizeof(T), 4 * kLine); at += kLine) {
      sys::prefetch_for_write(reinterpret_cast<const unsigned char*>(target) + at);
    }
  }

  // Calls visit(cells, their number, the number before) for the one or two runs of cells from `index` on.
  template <typename Visit>
  void for_each_run(std::uint64_t index, std::size_t count, Visit visit) noexcept {
    const std::size_t first = std::min(count, cells_to_the_end(index));
    if (first != 0) {
      visit(cell(index), first, 0);
    }
    if (count != first) {
      visit(cell(0), count - first, first);
    }
  }

  void publish(std::uint64_t tail) noexcept {
    shared_->producer.tail = tail;
    shared_->published.store(tail, std::memory_order_release);  // pairs with the acquire in look()
  }
  void release_to(std::uint64_t head) noexcept {
    shared_->consumer.head = head;
    shared_->head.store(head, std::memory_order_release);  // pairs with the acquires in has_room() and room()
  }

  Shared* shared_;
  std::size_t capacity_;
  std::uint64_t mask_;
};

}  // namespace weft::sync
