// SPDX-License-Identifier: MIT
#include <array>
#include <coroutine>
#include <cstddef>

#include "tests/support/model_sites.h"
#include "tests/support/model_wait.h"
#include "weft/sync/wait_queue.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

struct ModelWait : model::Wait {
  using Event = BasicAwaitList<model::Mutex>;
  struct Budget {};

  static Instant now() { return Instant(); }
  template <typename Look>
  static void spin(Budget& /*budget*/, Look /*look*/) {}
};
using Queue = WaitQueue<int, ModelWait>;

// Coroutine frames in static memory: an execution that the checker abandons does not unwind.
struct Detached {
  struct promise_type {
    static inline std::array<std::array<std::byte, 1024>, 2> frames;
    static inline std::size_t used = 0;
    static void* operator new(std::size_t size) {
      model::require(size <= frames[0].size() && used < frames.size(), "a larger frame than was thought");
      return frames[used++].data();
    }
    static void operator delete(void* /*frame*/) {}
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept {}
  };
};

// One thread's executor.
struct Strand {
  model::Mutex mutex;
  model::Event event;
  std::array<std::byte, 8 * sizeof(Resumption)> ready;
  std::size_t posted = 0;
  std::size_t run = 0;

  [[nodiscard]] auto poster() {
    return [this](Resumption resumption) {
      mutex.lock();
      model::require(posted < 8, "more resumptions than were thought");
      ::new (&ready[posted++ * sizeof resumption]) Resumption(resumption);
      mutex.unlock();
      event.signal();
    };
  }
  template <typename Done>
  void run_until(Done done) {
    while (!done()) {
      mutex.lock();
      const bool any = run < posted;
      const auto* next = reinterpret_cast<const Resumption*>(&ready[any ? run++ * sizeof(Resumption) : 0]);
      mutex.unlock();
      any ? (*next)() : event.wait();
    }
  }
};

struct Place {
  explicit Place(std::size_t capacity) : queue(Queue::make(1, capacity).value()), producer(queue->producer().value()) {
    Detached::promise_type::used = 0;
  }
  std::unique_ptr<Queue> queue;
  Queue::Producer producer;

  void push(int value) { model::require(bool(producer.push_until(value, kNever)), "a push failed"); }
  void pop(int expected) { model::require(queue->pop_until(kNever).value_or(-1) == expected, "another value"); }
  void pop_closed() { model::require(queue->pop_until(kNever).error() == Errc::closed, "not closed"); }
};

void the_consumer_sleeps() {
  Place place(2);
  model::run_threads([&] { place.push(1); }, [&] { place.pop(1); });
}

void both_sleep() {
  Place place(1);
  model::run_threads([&] { place.push(1), place.push(2); }, [&] { place.pop(1), place.pop(2); });
}

void batches_make_room() {
  Place place(1);
  model::run_threads([&] { place.push(1), place.push(2); },
                     [&] {
                       for (int popped = 0; popped < 2;) {
                         int values[2];
                         const auto count = place.queue->pop_batch_until(values, kNever);
                         model::require(bool(count), "closed by nobody");
                         popped += static_cast<int>(count.value());
                       }
                     });
}

void what_was_pushed_before_close_is_popped() {
  Place place(2);
  model::run_threads([&] { place.push(1), place.queue->close(); }, [&] { place.pop(1), place.pop_closed(); });
}

void what_was_pushed_before_close_is_in_a_batch() {
  Place place(2);
  model::run_threads([&] { place.push(1), place.queue->close(); },
                     [&] {
                       int values[2];
                       model::require(place.queue->pop_batch_until(values, kNever).value_or(0) == 1, "it is lost");
                     });
}

void close_ends_a_push() {
  Place place(1);
  place.push(1);
  model::run_threads(
      [&] { model::require(place.producer.push_until(2, kNever).error() == Errc::closed, "pushed into nothing"); },
      [&] { place.queue->close(); });
}

Detached pop_one(Queue& queue, Strand& strand, int& popped) {
  popped = (co_await queue.pop(strand.poster())).value_or(-1);
}
Detached push_one(Queue::Producer& producer, Strand& strand, int& pushed, int value) {
  const Result<void> result = co_await producer.push(value, strand.poster());
  pushed += result ? 1 : 10;
}

void a_coroutine_waits_for_a_value() {
  Place place(1);
  Strand strand;
  int popped = 0;
  model::run_threads([&] { place.push(7); },
                     [&] {
                       pop_one(*place.queue, strand, popped);
                       strand.run_until([&] { return popped != 0; });
                     });
  model::require(popped == 7, "another value");
}

void a_coroutine_waits_and_it_is_closed() {
  Place place(1);
  Strand strand;
  int popped = 0;
  model::run_threads([&] { place.queue->close(); },
                     [&] {
                       pop_one(*place.queue, strand, popped);
                       strand.run_until([&] { return popped != 0; });
                     });
  model::require(popped == -1, "a value out of nothing");
}

void two_coroutines_wait_for_room() {
  Place place(1);
  place.push(1);
  Strand strand;
  int pushed = 0;
  model::run_threads(
      [&] {
        place.pop(1);
        int sum = 0;  // 3 may be popped before 2: the first coroutine was called but has not resumed yet
        for (int i = 0; i < 2; ++i) {
          sum += place.queue->pop_until(kNever).value_or(-1);
        }
        model::require(sum == 5, "another value");
      },
      [&] {
        push_one(place.producer, strand, pushed, 2);
        push_one(place.producer, strand, pushed, 3);
        strand.run_until([&] { return pushed == 2; });
      });
}

constexpr model::Scenario kScenarios[] = {
    {"the_consumer_sleeps", the_consumer_sleeps},
    {"both_sleep", both_sleep, {.preemptions = 2}},
    {"batches_make_room", batches_make_room, {.preemptions = 2}},
    {"what_was_pushed_before_close_is_popped", what_was_pushed_before_close_is_popped, {.preemptions = 2}},
    {"what_was_pushed_before_close_is_in_a_batch", what_was_pushed_before_close_is_in_a_batch, {.preemptions = 2}},
    {"close_ends_a_push", close_ends_a_push, {.preemptions = 2}},
    {"a_coroutine_waits_for_a_value", a_coroutine_waits_for_a_value, {.preemptions = 2}},
    {"a_coroutine_waits_and_it_is_closed", a_coroutine_waits_and_it_is_closed, {.preemptions = 2}},
    {"two_coroutines_wait_for_room", two_coroutines_wait_for_room, {.preemptions = 2}},
};

TEST(WaitQueueModel, LosesNoValueAndNoWakeUp) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(WaitQueueModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("sync/wait_queue.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 4u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::sync
