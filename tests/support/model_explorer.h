// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fiber.h"
#include "tests/support/model.h"
#include "tests/support/model_heap.h"
#include "tests/support/model_memory.h"

namespace weft::model {

// Pending: the next operation of a thread, as far as needed to decide which operations it commutes with.
struct Pending {
  enum class Order : std::uint8_t { none, light, total };  // total: takes part in the order of seq_cst operations

  int location = -1;  // -1: none
  bool writes = false;
  Order order = Order::none;

  [[nodiscard]] bool commutes_with(const Pending& other) const noexcept;
};

// Explorer: depth-first search over all decisions of an execution. Each execution runs from the start; the explorer
// replays the decisions up to the last open one.
// Invariants:
//   1. Exactly one fiber runs; threads_[current_] is its thread. Without an execution the root runs.
//   2. path_[0, depth_) are the decisions of this execution so far; beyond are those of the one before.
class Explorer {
 public:
  explicit Explorer(Options options);
  Outcome run(const std::function<void()>& scenario);

  // The explorer whose execution runs now, or null.
  static Explorer* current() noexcept;

  // --- called by the code under test, on a fiber ---
  int choose(int count);
  void before(const Pending& pending);  // scheduling point
  void block_on(LocationId location);   // returns after wake()
  void wake(LocationId location);
  void run_bodies(const detail::Body* bodies, int count);
  [[noreturn]] void fail(const char* what);
  void check(const char* what) {
    if (what != nullptr) [[unlikely]] {
      fail(what);
    }
  }
  struct Step {
    int thread;
    const char* name;
    std::memory_order order;
    int location;
    std::uint64_t before, after;
    Where where;
  };
  void note(const Step& step) { trace_.push_back(step); }

  [[nodiscard]] int thread() const noexcept { return current_; }
  [[nodiscard]] Memory& memory() noexcept { return memory_; }
  [[nodiscard]] Heap& heap() noexcept { return heap_; }

 private:
  enum class State : std::uint8_t { absent, ready, blocked, joining, finished };
  struct Thread {
    State state = State::absent;
    LocationId blocked_on = 0;
    Pending pending;
    detail::Body body{};
    std::unique_ptr<Fiber> fiber;
  };
  struct Decision {
    bool schedules = false;
    std::uint8_t chosen = 0;
    std::uint8_t count = 0;  // number of values, for a decision that does not schedule
    std::uint8_t open = 0;   // threads that may be chosen
    std::uint8_t tried = 0;
  };
  struct FiberStart {
    Explorer* explorer;
    int thread;
  };

  static void run_fiber(void* start);
  void execute();
  [[nodiscard]] bool backtrack();
  void finish_thread();
  void schedule();
  [[nodiscard]] int pick(unsigned enabled);
  void update_sleep(unsigned candidates, int next);
  void switch_to(int thread);
  [[noreturn]] void abandon();
  [[nodiscard]] std::string render_trace() const;

  static constexpr std::size_t kStepsMax = 5000;

  const Options options_;
  Memory memory_;
  Heap heap_;
  Fiber root_;
  std::array<Thread, kThreadsMax> threads_;
  std::array<FiberStart, kThreadsMax> starts_{};
  std::vector<Decision> path_;
  std::size_t depth_ = 0;
  std::vector<Step> trace_;
  std::string failure_;
  int current_ = 0;
  int running_ = 0;  // threads besides the scenario itself
  int preemptions_ = 0;
  unsigned asleep_ = 0;  // bits of threads whose next operation leads only to explored executions
  bool starting_ = false;
  bool abandoned_ = false;
};

}  // namespace weft::model
