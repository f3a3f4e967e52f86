// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sync/atomic.h"
#include "weft/sync/gate.h"
#include "weft/sync/mpsc_queue.h"

namespace weft::sync {

// WaitQueue: an MpscQueue that can be closed. Threads and coroutines can wait at both ends. With one producer it is the
// waiting form of an SpscRing.
// Owner: the unique_ptr of make(). It outlives its producers and all waiters, and destroys the remaining values.
// Affinity: that of MpscQueue; close() any thread. Several coroutines may wait at one end if they run on one thread or
// strand. They resume in the order of their arrival, but a coroutine that calls at that moment may overtake them.
// Cost: a push or pop is MpscQueue's plus one load while nothing sleeps. A sleep costs the sleeper a membarrier and the
// waker a system call.
// Invariants:
// 1. A waiter does not sleep while its operation is possible. Only a thread that waits is woken.
// 2. Every value whose push returned before close() began is popped before a pop returns closed. A push that overlaps
//    close() is refused, or it is accepted and its value is popped by a later pop or destroyed with the queue.
// 3. A failed operation leaves its value in place.
// Users write WaitQueue<T>; `System` is a seam for the tests.
template <typename T, typename System = GateWait>
class WaitQueue {
  using Gate = BasicGate<System>;
  struct alignas(kLineSize) Place {
    Gate gate;
  };

 public:
  class Producer;

  // The same as MpscQueue::make().
  [[nodiscard]] static Result<std::unique_ptr<WaitQueue>> make(std::size_t producers, std::size_t capacity) noexcept {
    MpscQueue<T> queue = WEFT_TRY(MpscQueue<T>::make(producers, capacity));
    std::unique_ptr<Place[]> rooms(new (std::nothrow) Place[producers]);
    if (rooms == nullptr) {
      return Error(Errc::resource_exhausted, "memory for the gates of a queue");
    }
    std::unique_ptr<WaitQueue> made(new (std::nothrow) WaitQueue(std::move(queue), std::move(rooms)));
    if (made == nullptr) {
      return Error(Errc::resource_exhausted, "memory for a queue");
    }
    return made;
  }
  WaitQueue(const WaitQueue&) = delete;
  WaitQueue& operator=(const WaitQueue&) = delete;

  // Any thread. Fails with resource_exhausted if every lane is taken.
  [[nodiscard]] Result<Producer> producer() noexcept {
    auto lane = WEFT_TRY(queue_.producer());
    return Producer(*this, std::move(lane));
  }
  // Any thread; idempotent. Ends every wait: producers get closed; the consumer gets the remaining values, then closed.
  void close() noexcept {
    closed_.store(true, std::memory_order_release);  // pairs with the acquire in take()
    items_.gate.wake();
    for (std::size_t i = 0; i < queue_.lanes(); ++i) {
      rooms_[i].gate.wake();
    }
  }

  // --- consumer ---

  // Errors: would_block (the queue is empty); closed (it is closed, and stays empty).
  [[nodiscard]] Result<T> try_pop() noexcept {
    std::optional<T> value;
    const Errc outcome = take(value);
    return to_result(outcome, value);
  }
  // Errors: timed_out; closed.
  [[nodiscard]] Result<T> pop_until(Instant deadline) noexcept {
    std::optional<T> value;
    Errc outcome = Errc::would_block;
    const auto attempt = [&] { return (outcome = take(value)) != Errc::would_block; };
    if (!items_.gate.settle_until(deadline, attempt, [&] { return poppable(); })) {
      outcome = Errc::timed_out;
    }
    return to_result(outcome, value);
  }
  // Waits for at least one value, then moves as many as fit into `values`. Returns the number. Errors: timed_out;
  // closed.
  [[nodiscard]] Result<std::size_t> pop_batch_until(std::span<T> values, Instant deadline) noexcept {
    std::size_t count = 0;
    bool drained = false;
    const auto attempt = [&] {
      count = take_batch(values);
      if (count == 0 && closed_.load(std::memory_order_acquire)) {  // pairs with the release in close()
        count = take_batch(values);
        drained = count == 0;
      }
      return count != 0 || drained || values.empty();
    };
    if (!items_.gate.settle_until(deadline, attempt, [&] { return poppable(); })) {
      return Errc::timed_out;
    }
    if (drained) {
      return Errc::closed;
    }
    return count;
  }
  // co_await queue.pop(post) gives a Result<T>. Errors: closed. BasicGate::Wait documents `post`.
  template <typename Post>
  [[nodiscard]] auto pop(Post post) noexcept {
    return Pop<Post>(*this, std::move(post));
  }

  // Producer: one lane's producing side. Owner: a move-only value; destruction gives the lane up.
  class Producer {
   public:
    Producer(WaitQueue& queue, typename MpscQueue<T>::Producer lane) noexcept
        : queue_(&queue), lane_(std::move(lane)) {}

    // Errors: would_block (the lane is full); closed. A failed call leaves `value` unchanged.
    template <typename U>
    [[nodiscard]] Result<void> try_push(U&& value) noexcept {
      return to_result(offer(std::forward<U>(value)));
    }
    // Errors: timed_out; closed.
    template <typename U>
    [[nodiscard]] Result<void> push_until(U&& value, Instant deadline) noexcept {
      Errc outcome = Errc::would_block;
      const auto attempt = [&] { return (outcome = offer(std::forward<U>(value))) != Errc::would_block; };
      return to_result(room().settle_until(deadline, attempt, [&] { return pushable(); }) ? outcome : Errc::timed_out);
    }
    // Moves the first values, as many as fit, and wakes once. Moves none if closed.
    [[nodiscard]] std::size_t try_push_batch(std::span<T> values) noexcept {
      const std::size_t count = queue_->is_closed() ? 0 : lane_.try_push_batch(values);
      if (count != 0) {
        queue_->items_.gate.wake();
      }
      return count;
    }
    // co_await producer.push(value, post) gives a Result<void>. If it fails with closed, the value is destroyed with
    // the awaiter.
    template <typename Post>
    [[nodiscard]] auto push(T value, Post post) noexcept {
      return Push<Post>(*this, std::move(value), std::move(post));
    }

   private:
    template <typename Post>
    class Push : public Gate::template Wait<Push<Post>, Post> {
     public:
      Push(Producer& producer, T value, Post post) noexcept
          : Gate::template Wait<Push<Post>, Post>(producer.room(), std::move(post)),
            producer_(producer),
            value_(std::move(value)) {}
      [[nodiscard]] bool attempt() noexcept {
        return (outcome_ = producer_.offer(std::move(value_))) != Errc::would_block;
      }
      [[nodiscard]] bool look() noexcept { return producer_.pushable(); }
      [[nodiscard]] Result<void> await_resume() noexcept { return to_result(outcome_); }

     private:
      Producer& producer_;
      T value_;
      Errc outcome_ = Errc::would_block;
    };

    template <typename U>
    Errc offer(U&& value) noexcept {
      if (queue_->is_closed()) {
        return Errc::closed;
      }
      if (!lane_.try_push(std::forward<U>(value))) {
        return Errc::would_block;
      }
      queue_->items_.gate.wake();
      return Errc::ok;
    }
    bool pushable() noexcept { return lane_.has_room() || queue_->is_closed(); }
    Gate& room() noexcept { return queue_->rooms_[lane_.lane()].gate; }

    WaitQueue* queue_;
    typename MpscQueue<T>::Producer lane_;
  };

 private:
  template <typename Post>
  class Pop : public Gate::template Wait<Pop<Post>, Post> {
   public:
    Pop(WaitQueue& queue, Post post) noexcept
        : Gate::template Wait<Pop<Post>, Post>(queue.items_.gate, std::move(post)), queue_(queue) {}
    [[nodiscard]] bool attempt() noexcept { return (outcome_ = queue_.take(value_)) != Errc::would_block; }
    [[nodiscard]] bool look() noexcept { return queue_.poppable(); }
    [[nodiscard]] Result<T> await_resume() noexcept { return to_result(outcome_, value_); }

   private:
    WaitQueue& queue_;
    std::optional<T> value_;
    Errc outcome_ = Errc::would_block;
  };

  WaitQueue(MpscQueue<T> queue, std::unique_ptr<Place[]> rooms) noexcept
      : queue_(std::move(queue)), rooms_(std::move(rooms)) {}

  // Relaxed: a producer that is about to sleep reads the close by its gate's fence. For any other producer invariant 2
  // allows the delay.
  [[nodiscard]] bool is_closed() const noexcept { return closed_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool poppable() noexcept { return !queue_.empty() || is_closed(); }

  Errc take(std::optional<T>& value) noexcept {
    T* next = queue_.front();
    if (next == nullptr) {
      // Acquire pairs with the release in close(): the second front() finds every value that was pushed before close().
      if (!closed_.load(std::memory_order_acquire)) {
        return Errc::would_block;
      }
      next = queue_.front();
      if (next == nullptr) {
        return Errc::closed;
      }
    }
    value.emplace(std::move(*next));
    queue_.pop();
    rooms_[queue_.lane()].gate.wake();
    return Errc::ok;
  }
  std::size_t take_batch(std::span<T> values) noexcept {
    std::size_t done = 0;
    while (done < values.size()) {
      const std::size_t count = queue_.try_pop_run(values.subspan(done));
      if (count == 0) {
        break;
      }
      done += count;
      rooms_[queue_.lane()].gate.wake();
    }
    return done;
  }
  static Result<void> to_result(Errc outcome) noexcept {
    if (outcome != Errc::ok) {
      return outcome;
    }
    return {};
  }
  static Result<T> to_result(Errc outcome, std::optional<T>& value) noexcept {
    if (outcome != Errc::ok) {
      return outcome;
    }
    return *std::move(value);
  }

  MpscQueue<T> queue_;
  std::unique_ptr<Place[]> rooms_;  // by lane
  alignas(kLineSize) Atomic<bool> closed_{false};
  Place items_;
};

}  // namespace weft::sync
