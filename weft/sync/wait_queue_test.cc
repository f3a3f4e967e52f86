// SPDX-License-Identifier: MIT
#include "weft/sync/wait_queue.h"

#include <array>
#include <atomic>
#include <chrono>
#include <coroutine>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

constexpr Instant kPast{};

template <typename T>
std::unique_ptr<WaitQueue<T>> queue_of(std::size_t producers, std::size_t capacity) {
  return WaitQueue<T>::make(producers, capacity).value();
}

TEST(WaitQueue, RefusesWhatMpscQueueRefuses) {
  EXPECT_EQ(WaitQueue<int>::make(0, 1).error(), Errc::invalid_argument);
  EXPECT_EQ(WaitQueue<int>::make(1, 0).error(), Errc::invalid_argument);
}

TEST(WaitQueue, TellsFullEmptyAndTooLateApart) {
  auto queue = queue_of<int>(1, 1);
  auto producer = queue->producer().value();
  EXPECT_EQ(queue->try_pop().error(), Errc::would_block);
  EXPECT_EQ(queue->pop_until(kPast).error(), Errc::timed_out);
  EXPECT_TRUE(producer.push_until(1, kPast)) << "the first attempt is made whatever the time is";
  EXPECT_EQ(producer.try_push(2).error(), Errc::would_block);
  EXPECT_EQ(producer.push_until(2, sys::now() + std::chrono::microseconds(50)).error(), Errc::timed_out);
  EXPECT_EQ(queue->pop_until(kPast).value(), 1);
  std::array<int, 4> values{};
  EXPECT_EQ(queue->pop_batch_until(values, kPast).error(), Errc::timed_out);
}

TEST(WaitQueue, DrainsAndThenSaysClosed) {
  auto queue = queue_of<std::unique_ptr<int>>(1, 4);
  auto producer = queue->producer().value();
  EXPECT_TRUE(producer.try_push(std::make_unique<int>(1)));
  EXPECT_TRUE(producer.try_push(std::make_unique<int>(2)));
  queue->close();
  queue->close();
  auto refused = std::make_unique<int>(3);
  EXPECT_EQ(producer.try_push(std::move(refused)).error(), Errc::closed);
  EXPECT_EQ(producer.push_until(std::move(refused), kNever).error(), Errc::closed);
  EXPECT_EQ(producer.try_push_batch(std::span(&refused, 1)), 0u);
  EXPECT_NE(refused, nullptr) << "a refused value stays with its owner";
  EXPECT_EQ(*queue->pop_until(kNever).value(), 1);
  EXPECT_EQ(*queue->try_pop().value(), 2);
  EXPECT_EQ(queue->try_pop().error(), Errc::closed);
  EXPECT_EQ(queue->pop_until(kNever).error(), Errc::closed);
  std::array<std::unique_ptr<int>, 2> values;
  EXPECT_EQ(queue->pop_batch_until(values, kNever).error(), Errc::closed);
}

TEST(WaitQueue, BlockedEndsPassEverythingOn) {
  constexpr int kProducers = 3;
  constexpr int kByEach = 300;
  for (const std::size_t capacity : {1u, 16u}) {
    auto queue = queue_of<std::pair<int, int>>(kProducers, capacity);
    std::vector<std::thread> threads;
    std::atomic<int> left{kProducers};
    for (int id = 0; id < kProducers; ++id) {
      threads.emplace_back([&, id] {
        auto producer = queue->producer().value();
        for (int i = 0; i < kByEach; ++i) {
          ASSERT_TRUE(producer.push_until(std::pair(id, i), kNever));
        }
        if (left.fetch_sub(1) == 1) {
          queue->close();
        }
      });
    }
    std::array<int, kProducers> seen{};
    std::array<std::pair<int, int>, 8> values;
    for (;;) {
      const auto count = queue->pop_batch_until(values, kNever);
      if (!count) {
        EXPECT_EQ(count.error(), Errc::closed);
        break;
      }
      for (std::size_t i = 0; i < count.value(); ++i) {
        ASSERT_EQ(values[i].second, seen[values[i].first]++);
      }
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(seen, (std::array<int, kProducers>{kByEach, kByEach, kByEach}));
  }
}

TEST(WaitQueue, CloseEndsEveryWait) {
  auto queue = queue_of<int>(2, 1);
  auto empty = queue_of<int>(1, 1);
  std::vector<std::thread> threads;
  std::vector<WaitQueue<int>::Producer> producers;
  for (int i = 0; i < 2; ++i) {
    producers.push_back(queue->producer().value());
    EXPECT_TRUE(producers.back().try_push(1));
  }
  for (auto& producer : producers) {
    threads.emplace_back([&producer] { EXPECT_EQ(producer.push_until(2, kNever).error(), Errc::closed); });
  }
  threads.emplace_back([&] { EXPECT_EQ(empty->pop_until(kNever).error(), Errc::closed); });
  queue->close();
  empty->close();
  for (std::thread& thread : threads) {
    thread.join();
  }
}

// --- the number of wake-ups ---

// Sleeps at once. A sleep with a limit takes no real time: it advances the test's clock to the limit.
struct CountingWait : GateWait {
  static inline std::atomic<int> announcements{0};
  static inline std::atomic<int> wakes{0};
  static inline Instant clock;

  static Instant now() noexcept { return clock; }
  template <typename Look>
  static void spin(Budget& /*budget*/, Look /*look*/) noexcept {}
  static sys::FutexResult futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                                     Duration timeout) noexcept {
    if (timeout < Duration::zero()) {
      return GateWait::futex_wait(word, expected, timeout);
    }
    clock += timeout;
    return sys::FutexResult::timed_out;
  }

  static void heavy_fence() noexcept {
    announcements.fetch_add(1);
    GateWait::heavy_fence();
  }
  static void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
    wakes.fetch_add(1);
    GateWait::futex_wake(word);
  }
};

TEST(WaitQueue, NobodyIsWokenWhoDoesNotSleep) {
  CountingWait::announcements = CountingWait::wakes = 0;
  auto queue = WaitQueue<int, CountingWait>::make(2, 8).value();
  auto producer = queue->producer().value();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(producer.push_until(i, kNever));
    EXPECT_EQ(queue->pop_until(kNever).value(), i);
  }
  queue->close();
  EXPECT_EQ(CountingWait::announcements, 0);
  EXPECT_EQ(CountingWait::wakes, 0);
}

TEST(WaitQueue, AnAnnouncedSleepCostsOneWakeUp) {
  CountingWait::announcements = CountingWait::wakes = 0;
  constexpr int kValues = 500;
  auto queue = WaitQueue<int, CountingWait>::make(1, 4).value();
  std::thread thread([&] {
    auto producer = queue->producer().value();
    for (int i = 0; i < kValues; ++i) {
      ASSERT_TRUE(producer.push_until(i, kNever));
    }
  });
  for (int i = 0; i < kValues; ++i) {
    ASSERT_EQ(queue->pop_until(kNever).value(), i);
  }
  thread.join();
  EXPECT_LE(CountingWait::wakes, CountingWait::announcements);

  // A consumer that waited in vain has announced itself once; of many pushes one wakes.
  CountingWait::announcements = CountingWait::wakes = 0;
  EXPECT_EQ(queue->pop_until(CountingWait::clock + std::chrono::microseconds(200)).error(), Errc::timed_out);
  EXPECT_EQ(CountingWait::announcements, 1);
  auto producer = queue->producer().value();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(producer.try_push(i));
  }
  EXPECT_EQ(CountingWait::wakes, 1);
}

// --- coroutines ---

struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

// One thread's executor: other threads post, the owner runs.
class Strand {
 public:
  [[nodiscard]] auto poster() {
    return [this](Resumption resumption) {
      const std::lock_guard lock(mutex_);
      ready_.push_back(resumption);
    };
  }
  // Returns the number of resumptions run.
  std::size_t run_ready() {
    std::deque<Resumption> taken;
    {
      const std::lock_guard lock(mutex_);
      taken.swap(ready_);
    }
    for (const Resumption& resumption : taken) {
      resumption();
    }
    return taken.size();
  }
  template <typename Done>
  void run_until(Done done) {
    while (!done()) {
      if (run_ready() == 0) {
        sys::yield();
      }
    }
  }

 private:
  std::mutex mutex_;
  std::deque<Resumption> ready_;
};

using Queue = WaitQueue<int>;

Detached push_then_pop(Queue& queue, Queue::Producer& producer, Strand& strand, int& popped) {
  EXPECT_TRUE(co_await producer.push(5, strand.poster()));
  popped = (co_await queue.pop(strand.poster())).value();
}

TEST(WaitQueue, ACoroutineGoesOnAtOnceWhenThereIsSomething) {
  auto queue = queue_of<int>(1, 2);
  auto producer = queue->producer().value();
  Strand strand;
  int popped = 0;
  push_then_pop(*queue, producer, strand, popped);
  EXPECT_EQ(popped, 5);
  EXPECT_EQ(strand.run_ready(), 0u);
}

Detached push_and_note(Queue::Producer& producer, Strand& strand, std::vector<int>& done, int value) {
  EXPECT_TRUE(co_await producer.push(value, strand.poster()));
  done.push_back(value);
}

// In the published design the second coroutine that waits for room replaces the first. The first never
// resumes, and its value is lost.
TEST(WaitQueue, EveryCoroutineThatWaitsForRoomGoesOn) {
  constexpr int kWaiters = 5;
  auto queue = queue_of<int>(1, 1);
  auto producer = queue->producer().value();
  Strand strand;
  EXPECT_TRUE(producer.try_push(100));
  std::vector<int> done;
  for (int i = 0; i < kWaiters; ++i) {
    push_and_note(producer, strand, done, i);
  }
  EXPECT_TRUE(done.empty());
  EXPECT_EQ(queue->try_pop().value(), 100);
  for (int i = 0; i < kWaiters; ++i) {
    strand.run_ready();
    ASSERT_EQ(queue->try_pop().value(), i) << "in the order in which they came";
  }
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4}));
}

Detached push_and_tell(Queue::Producer& producer, Strand& strand, bool& done) {
  EXPECT_TRUE(co_await producer.push(3, strand.poster()));
  done = true;
}

// A waiter whose place another push took in between does not lose its value, and does not report a push.
TEST(WaitQueue, ACoroutineWhoseRoomWasTakenWaitsOn) {
  auto queue = queue_of<int>(1, 1);
  auto producer = queue->producer().value();
  Strand strand;
  EXPECT_TRUE(producer.try_push(1));
  bool done = false;
  push_and_tell(producer, strand, done);
  EXPECT_EQ(queue->try_pop().value(), 1);
  EXPECT_TRUE(producer.try_push(2));
  EXPECT_EQ(strand.run_ready(), 1u);
  EXPECT_FALSE(done);
  EXPECT_EQ(queue->try_pop().value(), 2);
  EXPECT_EQ(strand.run_ready(), 1u);
  EXPECT_TRUE(done);
  EXPECT_EQ(queue->try_pop().value(), 3);
}

template <typename P>
Detached push_and_keep_outcome(P& producer, Strand& strand, std::vector<Errc>& outcomes) {
  const Result<void> result = co_await producer.push(std::make_unique<int>(1), strand.poster());
  outcomes.push_back(result.error().code());
}

Detached pop_and_keep_outcome(Queue& queue, Strand& strand, Errc& outcome) {
  const Result<int> result = co_await queue.pop(strand.poster());
  outcome = result.error().code();
}

TEST(WaitQueue, CloseResumesEveryCoroutine) {
  auto queue = queue_of<std::unique_ptr<int>>(1, 1);
  auto producer = queue->producer().value();
  Strand strand;
  EXPECT_TRUE(producer.try_push(nullptr));
  std::vector<Errc> outcomes;
  push_and_keep_outcome(producer, strand, outcomes);
  push_and_keep_outcome(producer, strand, outcomes);
  queue->close();
  EXPECT_EQ(strand.run_ready(), 2u);
  EXPECT_EQ(outcomes, (std::vector<Errc>{Errc::closed, Errc::closed}));

  auto empty = queue_of<int>(1, 1);
  Errc outcome = Errc::ok;
  pop_and_keep_outcome(*empty, strand, outcome);
  empty->close();
  EXPECT_EQ(strand.run_ready(), 1u);
  EXPECT_EQ(outcome, Errc::closed);
}

constexpr int kEach = 500;  // by each coroutine

Detached produce_many(Queue::Producer& producer, Strand& strand, int& finished) {
  for (int i = 0; i < kEach; ++i) {
    EXPECT_TRUE(co_await producer.push(i, strand.poster()));
  }
  ++finished;
}

Detached consume_all(Queue& queue, Strand& strand, int& popped, int& finished) {
  for (;;) {
    const Result<int> value = co_await queue.pop(strand.poster());
    if (!value) {
      EXPECT_EQ(value.error(), Errc::closed);
      break;
    }
    ++popped;
  }
  ++finished;
}

TEST(WaitQueue, CoroutinesOnTwoThreadsPassEverythingOn) {
  constexpr int kCoroutines = 3;
  auto queue = queue_of<int>(1, 16);
  std::thread thread([&queue = *queue] {
    Strand strand;
    auto producer = queue.producer().value();
    int finished = 0;
    for (int i = 0; i < kCoroutines; ++i) {
      produce_many(producer, strand, finished);
    }
    strand.run_until([&] { return finished == kCoroutines; });
    queue.close();
    strand.run_until([&] { return strand.run_ready() == 0; });
  });
  Strand strand;
  int popped = 0;
  int finished = 0;
  consume_all(*queue, strand, popped, finished);
  consume_all(*queue, strand, popped, finished);
  strand.run_until([&] { return finished == 2; });
  thread.join();
  EXPECT_EQ(popped, kCoroutines * kEach);
}

}  // namespace
}  // namespace weft::sync
