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
// Owner: whoever constructs it; it outlives both sides' use. Cells left inside are simply forgotten: their owner drains
// them first if they hold references.
// Affinity: one producer, one consumer; each may move between threads that hand over with acquire and release.
// Cost: a push or pop is a copy of the cell and, amortised, one release store; the far index is read only when the near
// copy says full or empty. The queue is a chain of small rings: while the consumer keeps up, one ring of kRing cells is
// all that is touched (a small ring stays in both caches); a new ring, four times as large up to kRing, is linked when
// it is full. The first ring is small, so that a connection that carries little costs little. The bound is the caller's
// business (high-water marks).
// Beside: what the caller keeps for a side shares that side's lines, as it is used together with them: three types,
// of the producer, of the consumer, and of what the consumer now and then tells the producer.
// Invariants:
//   (1) head <= published <= staged; all three only grow.
//   (2) A cell is visible to the consumer only after publish(), and all cells of one publish() together.
//   (3) A ring's `end` is set, before any later cell is published, to the index of the first cell that lies in `next`.
struct NothingBeside {
  struct Producer {};
  struct Consumer {};
  struct Returned {};
};

template <typename T, std::size_t kFirstRing = 4, std::size_t kRing = 256, typename Beside = NothingBeside>
class SpscQueue {
  static_assert(std::is_trivially_copyable_v<T>);
  static_assert((kRing & (kRing - 1)) == 0 && (kFirstRing & (kFirstRing - 1)) == 0);

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

  // Producer. The slot for the next cell, or null when memory ran out. Staged once stage() is called.
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

  // Producer. Makes everything staged visible.
  void publish() noexcept {
    // Release pairs with the acquire in front(): cells, `end` and `next` are written before.
    published_.store(producer_.staged, std::memory_order_release);
  }

  // Consumer. The oldest visible cell, or null. Valid until pop().
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
    // Relaxed: by invariant (3) a value that matters was written before the publish() that we acquired.
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

  // Consumer. True when front() would find nothing; reads the producer's index.
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
    std::uint64_t start = 0;  // index of the first cell that lies here; the producer's
    Plain<std::uint64_t> mask = 0;
    T* cells() noexcept { return reinterpret_cast<T*>(this + 1); }
  };

  struct Producer {
    Ring* ring = nullptr;
    std::uint64_t staged = 0;
    std::uint64_t head = 0;  // the consumer's index as last seen
    [[no_unique_address]] typename Beside::Producer beside;
    [[nodiscard]] std::uint64_t oldest() const noexcept { return head > ring->start ? head : ring->start; }
  };
  struct Consumer {
    Ring* ring = nullptr;
    std::uint64_t head = 0;
    std::uint64_t published = 0;   // the producer's index as last seen
    std::uint64_t given_back = 0;  // the value of head_
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
    // Acquire pairs with the release in give_back(): the consumer is done with the cells before head.
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
    // A small ring is not worth keeping. Release pairs with the acquire in make_room(); nothing to acquire, as
    // only this side ever puts a ring there.
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
