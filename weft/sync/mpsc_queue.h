// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/sync/atomic.h"
#include "weft/sync/spsc_ring.h"

namespace weft::sync {

// MpscQueue: a bounded queue of values from several producers to one consumer. Each producer takes a lane,
// which is a ring of its own, so that producers share nothing. The consumer visits the lanes in turn.
// Owner: a move-only handle, which outlives its producers. It is moved and destroyed while neither they nor the
// consumer use it, and destroys the remaining values. A moved-from handle may only be assigned or destroyed.
// Affinity: one consumer; producer() any thread; a Producer belongs to one thread at a time.
// Cost: no allocation after make(), which allocates every lane. A push is a push on a ring. A pop is a pop on
// a ring; in an empty queue it reads one index of each lane.
// Invariants:
// 1. The consumer pops the values of one producer in the order in which they were pushed. Between producers
//    there is no order.
// 2. A producer that stalls, even half-way through a push, delays nothing but its own values.
// 3. The consumer leaves a lane after the values that it found on arrival, so that a busy producer starves no
//    other.
// 4. A lane whose producer has ended keeps its values, and the next producer() may take it.
template <typename T>
class MpscQueue {
  struct Lane {
    explicit Lane(SpscRing<T>&& from) noexcept : ring(std::move(from)) {}
    SpscRing<T> ring;
    alignas(kLineSize) Atomic<bool> taken{false};
  };

 public:
  static constexpr std::size_t kProducersMax = 1024;

  // Producer: one lane's producing side. Owner: a move-only value; destruction gives the lane up.
  class Producer {
   public:
    Producer(Producer&& other) noexcept : lane_(std::exchange(other.lane_, nullptr)), index_(other.index_) {}
    Producer& operator=(Producer&& other) noexcept {
      std::swap(lane_, other.lane_);
      std::swap(index_, other.index_);
      return *this;
    }
    Producer(const Producer&) = delete;
    Producer& operator=(const Producer&) = delete;
    ~Producer() {
      if (lane_ != nullptr) {
        lane_->taken.store(false, std::memory_order_release);  // pairs with the acquire in producer()
      }
    }

    // Like SpscRing's. False or a short count: this lane is full.
    template <typename U>
    [[nodiscard]] bool try_push(U&& value) noexcept {
      return lane_->ring.try_push(std::forward<U>(value));
    }
    [[nodiscard]] std::size_t try_push_batch(std::span<T> values) noexcept {
      return lane_->ring.try_push_batch(values);
    }
    [[nodiscard]] std::size_t try_push_batch(std::span<const T> values) noexcept {
      return lane_->ring.try_push_batch(values);
    }
    [[nodiscard]] std::span<T> claim(std::size_t most) noexcept { return lane_->ring.claim(most); }
    void commit(std::size_t count) noexcept { lane_->ring.commit(count); }
    [[nodiscard]] bool has_room() noexcept { return lane_->ring.has_room(); }
    [[nodiscard]] std::size_t lane() const noexcept { return index_; }

   private:
    friend class MpscQueue;
    Producer(Lane* lane, std::size_t index) noexcept : lane_(lane), index_(index) {}

    Lane* lane_;
    std::size_t index_;
  };

  // Makes a queue of `producers` lanes with exactly `capacity` values each. Errors: invalid_argument (a zero, or more
  // producers than kProducersMax, or a larger capacity than memory can address); resource_exhausted (no memory).
  [[nodiscard]] static Result<MpscQueue> make(std::size_t producers, std::size_t capacity) noexcept {
    if (producers == 0 || producers > kProducersMax) {
      return Error(Errc::invalid_argument, "the number of producers of a queue");
    }
    void* memory = ::operator new(producers * sizeof(Lane), std::align_val_t{alignof(Lane)}, std::nothrow);
    if (memory == nullptr) {
      return Error(Errc::resource_exhausted, "memory for the lanes of a queue");
    }
    MpscQueue queue(static_cast<Lane*>(memory));
    for (; queue.count_ < producers; ++queue.count_) {
      SpscRing<T> ring = WEFT_TRY(SpscRing<T>::make(capacity));
      ::new (queue.lanes_ + queue.count_) Lane(std::move(ring));
    }
    return queue;
  }

  MpscQueue(MpscQueue&& other) noexcept
      : lanes_(std::exchange(other.lanes_, nullptr)), count_(other.count_), lane_(other.lane_), known_(other.known_) {}
  MpscQueue& operator=(MpscQueue&& other) noexcept {
    std::swap(lanes_, other.lanes_);
    std::swap(count_, other.count_);
    std::swap(lane_, other.lane_);
    std::swap(known_, other.known_);
    return *this;
  }
  MpscQueue(const MpscQueue&) = delete;
  MpscQueue& operator=(const MpscQueue&) = delete;
  ~MpscQueue() {
    if (lanes_ != nullptr) {
      std::destroy_n(lanes_, count_);
      ::operator delete(lanes_, std::align_val_t{alignof(Lane)});
    }
  }

  [[nodiscard]] std::size_t lanes() const noexcept { return count_; }

  // Any thread. Fails with resource_exhausted if every lane is taken.
  [[nodiscard]] Result<Producer> producer() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      // Acquire pairs with the release in ~Producer(): the lane's producing side is handed over.
      if (!lanes_[i].taken.exchange(true, std::memory_order_acquire)) {
        return Producer(&lanes_[i], i);
      }
    }
    return Error(Errc::resource_exhausted, "every lane of the queue is taken");
  }

  // --- consumer ---

  // In place: returns the next value, or null. Valid until pop(), which requires that there is a value.
  [[nodiscard]] T* front() noexcept { return empty() ? nullptr : lanes_[lane_].ring.front(); }
  void pop() noexcept {
    lanes_[lane_].ring.pop();
    --known_;
  }
  // Returns false if the queue is empty.
  [[nodiscard]] bool try_pop(T& value) noexcept {
    if (empty() || !lanes_[lane_].ring.try_pop(value)) {
      return false;
    }
    --known_;
    return true;
  }
  // Moves as many values as fit into `values`. Returns the number.
  [[nodiscard]] std::size_t try_pop_batch(std::span<T> values) noexcept {
    std::size_t done = 0;
    while (done < values.size()) {
      const std::size_t count = try_pop_run(values.subspan(done));
      if (count == 0) {
        break;
      }
      done += count;
    }
    return done;
  }
  // The same, from one lane only. lane() names that lane afterwards.
  [[nodiscard]] std::size_t try_pop_run(std::span<T> values) noexcept {
    if (empty()) {
      return 0;
    }
    const std::size_t count = lanes_[lane_].ring.try_pop_batch(values.first(std::min(values.size(), known_)));
    known_ -= count;
    return count;
  }
  // Calls visit(T&&) for each value, at most `most` times. Returns the number. An exception of the visitor passes
  // through: the value that the visitor got was taken, and the others stay.
  template <typename Visit>
  std::size_t drain(Visit visit, std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept(
      std::is_nothrow_invocable_v<Visit&, T&&>) {
    std::size_t done = 0;
    while (done < most && !empty()) {
      Taking taking{*this, lanes_[lane_].ring};
      for (T& value : taking.ring.peek(std::min(most - done, known_))) {
        ++taking.count;
        visit(std::move(value));
      }
      done += taking.count;
    }
    return done;
  }
  [[nodiscard]] bool empty() noexcept { return known_ == 0 && !find_lane(); }
  // The lane of the last value, numbered like Producer::lane().
  [[nodiscard]] std::size_t lane() const noexcept { return lane_; }

 private:
  // Taking: gives the cells of the values that a visitor got back to their lane.
  struct Taking {
    MpscQueue& queue;
    SpscRing<T>& ring;
    std::size_t count = 0;
    ~Taking() {
      ring.consume(count);
      queue.known_ -= count;
    }
  };

  explicit MpscQueue(Lane* lanes) noexcept : lanes_(lanes) {}

  // Moves to the next lane that has values.
  bool find_lane() noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      lane_ = lane_ + 1 < count_ ? lane_ + 1 : 0;
      known_ = lanes_[lane_].ring.readable(1);
      if (known_ != 0) {
        return true;
      }
    }
    return false;
  }

  Lane* lanes_;
  std::size_t count_ = 0;
  std::size_t lane_ = 0;   // the consumer's
  std::size_t known_ = 0;  // values that are known to be in that lane
};

}  // namespace weft::sync
