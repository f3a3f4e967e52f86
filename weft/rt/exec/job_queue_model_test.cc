// SPDX-License-Identifier: MIT
#include "tests/support/model_sites.h"
#include "weft/rt/exec/job_queue.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

// A value whose accesses the model checks for races. 0: no value.
class Value {
 public:
  Value() : Value(0) {}
  explicit Value(int number) : number_(number) { model::note_write(this); }
  Value(Value&& other) noexcept : Value(other.take()) {}
  Value& operator=(Value&& other) noexcept {
    const int number = other.take();
    model::note_write(this);
    number_ = number;
    return *this;
  }
  int take() {
    model::note_write(this);
    return std::exchange(number_, 0);
  }

 private:
  int number_;
};

using Queue = JobQueue<Value>;

struct Line {
  Line() { model::require(queue.make(2), "no memory"); }

  Queue::Push push(int number) {
    Value value(number);
    const auto pushed = queue.try_push(value);
    model::require((value.take() == 0) == (pushed == Queue::Push::done), "moved from, but not pushed");
    return pushed;
  }
  // 0: nothing.
  int pop() {
    Value value;
    if (!queue.try_pop(value)) {
      return 0;
    }
    const int number = value.take();
    model::require(number != 0, "a value that was not there is taken");
    return number;
  }
  int drain() {
    int sum = 0;
    while (const int number = pop()) {
      sum += number;
    }
    return sum;
  }

  Queue queue;
};

void one_to_one_around_the_ring() {
  Line line;
  int sent = 0;
  int seen = 0;
  int popped = 0;
  model::run_threads(
      [&] {
        for (int number = 1; number <= 3; ++number) {
          sent += line.push(number) == Queue::Push::done ? number : 0;
        }
      },
      [&] {
        for (int i = 0; i < 3; ++i) {
          const int number = line.pop();
          model::require(number == 0 || number > seen, "out of order");
          seen = number == 0 ? seen : number;
          popped += number;
        }
      });
  model::require(popped + line.drain() == sent, "a value is lost or doubled");
}

void two_push_and_one_pops() {
  Line line;
  int popped = 0;
  int pushed[2] = {};
  model::run_threads([&] { pushed[0] = line.push(1) == Queue::Push::done ? 1 : 0; },
                     [&] { pushed[1] = line.push(2) == Queue::Push::done ? 2 : 0; },
                     [&] { popped += line.pop(), popped += line.pop(); });
  model::require(pushed[0] + pushed[1] == 3, "a queue with room is full");
  model::require(popped + line.drain() == 3, "a value is lost or doubled");
}

void two_pop_what_one_pushes_again_and_again() {
  Line line;
  (void)line.push(1);
  (void)line.push(2);
  int popped[2] = {};
  bool third = false;
  model::run_threads([&] { popped[0] = line.pop(); }, [&] { popped[1] = line.pop(); },
                     [&] { third = line.push(4) == Queue::Push::done; });
  model::require(popped[0] != 0 && popped[1] != 0, "values that are there are not found");
  model::require(popped[0] + popped[1] + line.drain() == 3 + (third ? 4 : 0), "a value is lost or doubled");
}

void what_is_pushed_before_the_close_is_drained() {
  Line line;
  bool pushed[2] = {};
  int popped = 0;
  model::run_threads([&] { pushed[0] = line.push(1) == Queue::Push::done; },
                     [&] {
                       pushed[1] = line.push(2) == Queue::Push::done;
                       line.queue.close();
                       model::require(line.push(4) == Queue::Push::closed, "pushed behind the close");
                     },
                     [&] {
                       popped += line.pop();
                       if (line.queue.drained()) {
                         model::require(line.pop() == 0, "drained, and something is there");
                       }
                     });
  model::require(popped + line.drain() == (pushed[0] ? 1 : 0) + (pushed[1] ? 2 : 0), "a value is lost or doubled");
  model::require(line.queue.drained(), "empty and closed, but not drained");
}

// A sleeper calls ready() after a full fence. It must see a push from before another thread's fence, after a pop that
// the sleeper may not have seen yet.
void a_look_behind_fences_sees_what_was_pushed() {
  Line line;
  sync::Atomic<int> announced{0};
  (void)line.push(1);
  bool sees_sleeper = false;
  bool sees_value = false;
  model::run_threads(
      [&] {
        model::require(line.push(2) == Queue::Push::done, "a queue with room is full");
        model::fence(std::memory_order_seq_cst, model::Where::current());
        sees_sleeper = announced.load(std::memory_order_relaxed) == 1;
      },
      [&] { model::require(line.pop() == 1, "what is there is not found"); },
      [&] {
        announced.store(1, std::memory_order_relaxed);
        model::fence(std::memory_order_seq_cst, model::Where::current());
        sees_value = line.queue.ready();
      });
  model::require(sees_sleeper || sees_value, "neither sees the other");
  model::require(line.drain() == 2, "a value is lost or doubled");
}

constexpr model::Scenario kScenarios[] = {
    {"one_to_one_around_the_ring", one_to_one_around_the_ring, {.preemptions = 3}},
    {"two_push_and_one_pops", two_push_and_one_pops, {.preemptions = 2}},
    {"two_pop_what_one_pushes_again_and_again", two_pop_what_one_pushes_again_and_again, {.preemptions = 2}},
    {"what_is_pushed_before_the_close_is_drained", what_is_pushed_before_the_close_is_drained, {.preemptions = 2}},
    {"a_look_behind_fences_sees_what_was_pushed", a_look_behind_fences_sees_what_was_pushed, {.preemptions = 2}},
};

TEST(JobQueueModel, LosesAndDoublesNothing) {
  for (const model::Scenario& scenario : kScenarios) {
    const model::Outcome outcome = model::explore(scenario.run, scenario.options);
    EXPECT_TRUE(outcome.complete) << scenario.name << ": " << outcome.failure;
  }
}

TEST(JobQueueModel, NeedsEveryMemoryOrderItHas) {
  const model::Audit audit = model::weaken_every_order("rt/exec/job_queue.h", kScenarios, {});
  EXPECT_EQ(audit.sites, 15u);
  for (const std::string& complaint : audit.complaints) {
    ADD_FAILURE() << complaint;
  }
}

}  // namespace
}  // namespace weft::rt
