// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>

#include "weft/base/assert.h"
#include "weft/sync/atomic.h"

namespace weft::sync {

// SpscQueue: a queue of trivially copyable cells from one producer to one consumer, with transactions.
// Owner: the object that constructs it; it outlives both sides' use. The destructor forgets the remaining cells: if
// they hold references, their owner drains them first.
// Affinity: one producer, one consumer; each may move between threads that hand over with acquire and
// release.
// Cost: a push or pop is a copy of the cell and, amortised, one release store. A side reads the other side's index only
// if its own copy shows a full or empty queue.
// The queue is a chain of small rings. While the consumer keeps up, both sides touch one ring of kRing cells
// only, which stays in both caches. When a ring is full, the producer links a new one, four times as large up
// to kRing. The first ring is small, so that a connection that carries little costs little. The caller bounds
// the queue (high-water marks).
// Beside: members that the caller keeps for a side. They share that side's cache lines, since both are used together.
// The three types are the producer's, the consumer's, and the values that the consumer returns to the producer from
// time to time.
// Invariants:
// 1. head <= published <= staged; all three only grow.
// 2. The consumer sees a cell only after publish(), and all cells of one publish() together.
// 3. A ring's `end` is set, before any later cell is published, to the index of the first cell that is in `next`.
struct NothingBeside {
  struct Producer {};
  struct Consumer {};
  struct Returned {};
};

template <typename T, std::size_t kFirstRing = 4, std::size_t kRing = 256, typename Beside = NothingBeside>
class SpscQueue {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert((kRing & (kRing - 1)) == 0 && (kFirstRing & (kFirstRing - 1)) == 0);
  struct Ring;

 public:
  SpscQueue() noexcept = default;
  SpscQueue(const SpscQueue&) = delete;
  SpscQueue& operator=(const SpscQueue&) = delete;
  ~SpscQueue() {
    Ring* ring = consumer_.ring != nullptr ? consumer_.ring : first_.load(std::memory_order_relaxed);
    while (ring != nullptr) {
      Ring* next = ring->next;
      destroy(ring);
      ring = next;
    }
    destroy(spare_.load(std::memory_order_relaxed));
  }

  // Producer. Returns the slot for the next cell, or null if there is no memory. stage() stages it.
  [[nodiscard]] T* claim() noexcept {
    Ring* ring = producer_.ring;
    if (ring == nullptr || producer_.staged - producer_.oldest() > ring->mask) [[unlikely]] {
      ring = make_room();
      if (ring == nullptr) {
        return nullptr;
      }
    }
    return &ring->cells()[producer_.staged & ring->mask];
  }
  void stage() noexcept { ++producer_.staged; }

  // Producer. rewind() takes back the cells that were staged since mark(), if publish() was not called in between.
  struct Mark {
    Ring* ring;
    std::uint64_t staged;
  };
  [[nodiscard]] Mark mark() const noexcept { return {producer_.ring, producer_.staged}; }
  void rewind(const Mark& mark) noexcept {
    producer_.staged = mark.staged;
    Ring* const ring = mark.ring != nullptr ? mark.ring : first_.load(std::memory_order_relaxed);
    if (producer_.ring == ring) {
      return;
    }
    // The consumer has reached none of the rings after this one: it leaves a ring at a cell that is published. It may
    // have read `end`, but compares that with places before `staged` only, until the next publish() gives it kOpen.
    for (Ring* linked = ring->next; linked != nullptr;) {
      Ring* const next = linked->next;
      destroy(linked);
      linked = next;
    }
    ring->next = nullptr;
    ring->end.store(kOpen, std::memory_order_relaxed);
    producer_.ring = ring;
  }

  // Producer. Makes all staged cells visible.
  void publish() noexcept {
    // Release pairs with the acquires in front() and empty(): cells, `end` and `next` are written before.
    published_.store(producer_.staged, std::memory_order_release);
  }

  // Consumer. Returns the oldest visible cell, or null. Valid until pop().
  [[nodiscard]] T* front() noexcept {
    if (consumer_.head == consumer_.published) {
      // Acquire pairs with the release in publish().
      consumer_.published = published_.load(std::memory_order_acquire);
      if (consumer_.head == consumer_.published) {
        give_back();
        return nullptr;
      }
    }
    Ring* ring = consumer_.ring;
    if (ring == nullptr) [[unlikely]] {
      ring = consumer_.ring = first_.load(std::memory_order_relaxed);  // ordered by the acquire above
    }
    // Relaxed: by invariant 3 a value that matters was written before the publish() that this side acquired.
    while (ring->end.load(std::memory_order_relaxed) == consumer_.head) [[unlikely]] {
      ring = advance_ring(ring);
    }
    return &ring->cells()[consumer_.head & ring->mask];
  }
  void pop() noexcept {
    ++consumer_.head;
    if (consumer_.head - consumer_.given_back >= kGiveBackEvery) {
      give_back();
    }
  }

  [[nodiscard]] typename Beside::Producer& beside_producer() noexcept { return producer_.beside; }
  [[nodiscard]] const typename Beside::Producer& beside_producer() const noexcept { return producer_.beside; }
  [[nodiscard]] typename Beside::Consumer& beside_consumer() noexcept { return consumer_.beside; }
  [[nodiscard]] const typename Beside::Consumer& beside_consumer() const noexcept { return consumer_.beside; }
  [[nodiscard]] typename Beside::Returned& beside_returned() noexcept { return returned_; }

  // Consumer. Whether front() would return null. Reads the producer's index.
  [[nodiscard]] bool empty() noexcept {
    return consumer_.head == consumer_.published && consumer_.head == published_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::uint64_t kGiveBackEvery = kRing < 16 ? kFirstRing : 16;
  static constexpr std::size_t kGrowth = 4;
  static constexpr std::uint64_t kOpen = ~std::uint64_t{0};

  struct alignas(kLineSize) Ring {
    Atomic<std::uint64_t> end{kOpen};
    Plain<Ring*> next = nullptr;
    std::uint64_t start = 0;  // index of the first cell that is in this ring; the producer's
    Plain<std::uint64_t> mask = 0;
    T* cells() noexcept { return reinterpret_cast<T*>(this + 1); }
  };

  struct Producer {
    Ring* ring = nullptr;
    std::uint64_t staged = 0;
    std::uint64_t head = 0;  // the consumer's index as last read
    [[no_unique_address]] typename Beside::Producer beside;
    [[nodiscard]] std::uint64_t oldest() const noexcept { return head > ring->start ? head : ring->start; }
  };
  struct Consumer {
    Ring* ring = nullptr;
    std::uint64_t head = 0;
    std::uint64_t published = 0;   // the producer's index as last read
    std::uint64_t given_back = 0;  // the value in head_
    [[no_unique_address]] typename Beside::Consumer beside;
  };

  static Ring* make_ring(std::size_t cells) noexcept {
    void* memory = ::operator new(sizeof(Ring) + cells * sizeof(T), std::align_val_t{kLineSize}, std::nothrow);
    if (memory == nullptr) {
      return nullptr;
    }
    auto* ring = ::new (memory) Ring();
    ring->mask = cells - 1;
    return ring;
  }
  static void destroy(Ring* ring) noexcept {
    if (ring != nullptr) {
      ring->~Ring();
      ::operator delete(ring, std::align_val_t{kLineSize});
    }
  }

  Ring* make_room() noexcept {
    Ring* ring = producer_.ring;
    if (ring == nullptr) {
      ring = make_ring(kFirstRing);
      if (ring == nullptr) {
        return nullptr;
      }
      producer_.ring = ring;
      first_.store(ring, std::memory_order_relaxed);  // published by the first publish()
      return ring;
    }
    // Acquire pairs with the release in give_back(): the consumer no longer reads the cells before head.
    producer_.head = head_.load(std::memory_order_acquire);
    if (producer_.staged - producer_.oldest() <= ring->mask) {
      return ring;
    }
    // Acquire pairs with the release in advance_ring(): the consumer has left that ring.
    Ring* fresh = spare_.exchange(nullptr, std::memory_order_acquire);
    if (fresh == nullptr) {
      fresh = make_ring(std::min(kRing, (ring->mask + 1) * kGrowth));
      if (fresh == nullptr) {
        return nullptr;
      }
    }
    fresh->end.store(kOpen, std::memory_order_relaxed);
    fresh->next = nullptr;
    fresh->start = producer_.staged;
    ring->next = fresh;
    ring->end.store(producer_.staged, std::memory_order_relaxed);  // published with the next publish()
    producer_.ring = fresh;
    return fresh;
  }

  Ring* advance_ring(Ring* ring) noexcept {
    Ring* next = ring->next;
    consumer_.ring = next;
    // The consumer frees a small ring at once and keeps a full-size one as the spare. Release pairs with the
    // acquire in make_room(). Acquire is not needed: only the consumer ever stores a ring there.
    if (ring->mask + 1 != kRing) {
      destroy(ring);
    } else {
      destroy(spare_.exchange(ring, std::memory_order_release));
    }
    return next;
  }

  void give_back() noexcept {
    if (consumer_.given_back != consumer_.head) {
      consumer_.given_back = consumer_.head;
      head_.store(consumer_.head, std::memory_order_release);  // pairs with the acquire in make_room()
    }
  }

  alignas(kLineSize) Producer producer_;
  alignas(kLineSize) Atomic<std::uint64_t> published_{0};
  Atomic<Ring*> first_{nullptr};
  alignas(kLineSize) Consumer consumer_;
  alignas(kLineSize) Atomic<std::uint64_t> head_{0};
  Atomic<Ring*> spare_{nullptr};
  [[no_unique_address]] typename Beside::Returned returned_;
};

}  // namespace weft::sync
