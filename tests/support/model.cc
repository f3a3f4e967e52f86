// SPDX-License-Identifier: MIT
// The operations that the code under test calls: each is a scheduling point, then its effect on the modelled memory.
#include "tests/support/model.h"

#include <array>

#include "tests/support/model_explorer.h"
#include "tests/support/model_sites.h"
#include "weft/base/assert.h"

namespace weft::model {

namespace {

Explorer& explorer() {
  Explorer* current = Explorer::current();
  WEFT_ASSERT(current != nullptr);  // the model's atomics live only inside explore()
  return *current;
}

Pending::Order order_class(std::memory_order order) noexcept {
  return order == std::memory_order_seq_cst ? Pending::Order::total : Pending::Order::none;
}

void fence_point(const char* name, Pending::Order order_class, const Where& where) {
  Explorer& run = explorer();
  run.before({-1, false, order_class});
  run.note({run.thread(), name, std::memory_order_seq_cst, -1, 0, 0, where});
}

// The read-modify-write under way: no other thread runs between its two halves.
struct Update {
  LocationId location = 0;
  const char* name = nullptr;
  std::memory_order order{};
  std::uint64_t old = 0;
  Where where{};
} update;

}  // namespace

Outcome explore(const std::function<void()>& scenario, Options options) { return Explorer(options).run(scenario); }

void require(bool condition, const char* what) {
  if (!condition) {
    explorer().fail(what);
  }
}

int choose(int count) { return explorer().choose(count); }
void let_allocations_fail(int times) { explorer().heap().failures_left = times; }
bool exploring() noexcept { return Explorer::current() != nullptr; }
int this_thread() noexcept { return explorer().thread(); }

void note_read(const void* address) {
  Explorer& run = explorer();
  const Heap::Block* block = run.heap().find(address);
  run.check(block != nullptr && block->freed ? "freed memory is read" : nullptr);
  run.check(run.memory().plain_read(run.thread(), address));
}

void note_write(const void* address) {
  Explorer& run = explorer();
  const Heap::Block* block = run.heap().find(address);
  run.check(block != nullptr && block->freed ? "freed memory is written" : nullptr);
  run.check(run.memory().plain_write(run.thread(), address));
}

void light_fence(Where where) {
  if (!detail::effective("light_fence", std::memory_order_seq_cst, where).removed) {
    fence_point("light fence", Pending::Order::light, where);
    explorer().memory().light_fence(explorer().thread());
  }
}

void heavy_fence(Where where) {
  if (!detail::effective("heavy_fence", std::memory_order_seq_cst, where).removed) {
    fence_point("heavy fence", Pending::Order::total, where);
    explorer().memory().heavy_fence(explorer().thread());
  }
}

void fence(std::memory_order order, Where where) {
  if (!detail::effective("fence", order, where).removed) {
    fence_point("fence", order_class(order), where);
    explorer().memory().fence(explorer().thread(), order);
  }
}

namespace detail {

void run_bodies(const Body* bodies, int count) { explorer().run_bodies(bodies, count); }

LocationId make_location(std::uint64_t initial) {
  return explorer().memory().make_location(explorer().thread(), initial);
}

void end_location(LocationId location) {
  Explorer& run = explorer();
  run.check(run.memory().end_location(run.thread(), location));
}

std::uint64_t load(LocationId location, std::memory_order order, Where where) {
  Explorer& run = explorer();
  order = effective("load", order, where).order;
  run.before({location, false, order_class(order)});
  run.check(run.memory().check_access(run.thread(), location));
  const int age = run.choose(run.memory().visible(run.thread(), location, order));
  const std::uint64_t value = run.memory().load(run.thread(), location, age, order);
  run.note({run.thread(), age == 0 ? "load" : "stale load", order, location, value, value, where});
  return value;
}

void store(LocationId location, std::uint64_t value, std::memory_order order, Where where) {
  Explorer& run = explorer();
  order = effective("store", order, where).order;
  run.before({location, true, order_class(order)});
  run.check(run.memory().check_access(run.thread(), location));
  run.note({run.thread(), "store", order, location, run.memory().peek(location, 0), value, where});
  run.memory().store(run.thread(), location, value, order);
}

std::uint64_t begin_update(LocationId location, const char* name, std::memory_order order, Where where) {
  Explorer& run = explorer();
  order = effective(name, order, where).order;
  run.before({location, true, order_class(order)});
  run.check(run.memory().check_access(run.thread(), location));
  update = {location, name, order, run.memory().begin_update(run.thread(), location, order), where};
  return update.old;
}

void end_update(std::uint64_t value) {
  Explorer& run = explorer();
  run.note({run.thread(), update.name, update.order, update.location, update.old, value, update.where});
  run.memory().end_update(run.thread(), update.location, value, update.order);
}

// A failure is a load: of the latest store if that differs from `expected`, or of an older one that does.
bool compare_exchange(LocationId location, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                      std::memory_order failure, Where where) {
  Explorer& run = explorer();
  success = effective("compare_exchange", success, where).order;
  failure = failure == std::memory_order_relaxed || success == std::memory_order_relaxed ? std::memory_order_relaxed
                                                                                         : failure;
  run.before({location, true, order_class(success)});
  run.check(run.memory().check_access(run.thread(), location));
  std::array<int, 256> ages;
  int count = 0;
  for (int age = 0; age < run.memory().visible(run.thread(), location, failure); ++age) {
    if (age == 0 || run.memory().peek(location, age) != expected) {
      ages[count++] = age;
    }
  }
  const int age = ages[run.choose(count)];
  if (age == 0 && run.memory().peek(location, 0) == expected) {
    run.note({run.thread(), "compare_exchange", success, location, expected, desired, where});
    run.memory().begin_update(run.thread(), location, success);
    run.memory().end_update(run.thread(), location, desired, success);
    return true;
  }
  expected = run.memory().load(run.thread(), location, age, failure);
  run.note({run.thread(), "compare_exchange fails", failure, location, expected, expected, where});
  return false;
}

namespace {

// One step of a mutex or an event: a read-modify-write of the latest value, with memory order `order`.
std::uint64_t step(LocationId location, const char* name, std::memory_order order, std::uint64_t value) {
  Explorer& run = explorer();
  run.check(run.memory().check_access(run.thread(), location));
  const std::uint64_t old = run.memory().begin_update(run.thread(), location, order);
  run.memory().end_update(run.thread(), location, value, order);
  run.note({run.thread(), name, order, location, old, value, Where::current()});
  return old;
}

void point(LocationId location) { explorer().before({location, true, Pending::Order::none}); }

}  // namespace

bool wait_while_equal(LocationId location, std::uint64_t expected) {
  Explorer& run = explorer();
  point(location);
  run.check(run.memory().check_access(run.thread(), location));
  const std::uint64_t value = run.memory().peek(location, 0);
  run.note({run.thread(), value == expected ? "sleeps" : "need not sleep", std::memory_order_relaxed, location, value,
            value, Where::current()});
  if (value != expected) {
    return false;
  }
  run.block_on(location);
  return true;
}

void wake_all(LocationId location) {
  Explorer& run = explorer();
  point(location);
  run.check(run.memory().check_access(run.thread(), location));
  run.note({run.thread(), "wakes all", std::memory_order_relaxed, location, 0, 0, Where::current()});
  run.wake(location);
}

void lock(LocationId location) {
  point(location);
  while (explorer().memory().peek(location, 0) != 0) {
    explorer().block_on(location);
  }
  step(location, "lock", std::memory_order_acquire, 1);
}

void unlock(LocationId location) {
  point(location);
  step(location, "unlock", std::memory_order_release, 0);
  explorer().wake(location);
}

void signal(LocationId location) {
  point(location);
  step(location, "signal", std::memory_order_relaxed, 1);
  explorer().wake(location);
}

void wait_for_signal(LocationId location) {
  point(location);
  while (explorer().memory().peek(location, 0) == 0) {
    explorer().block_on(location);
  }
  step(location, "has signal", std::memory_order_relaxed, 0);
}

}  // namespace detail
}  // namespace weft::model
