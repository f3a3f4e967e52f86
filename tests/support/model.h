// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <string>
#include <type_traits>

// The model checker: runs a small concurrent scenario under every interleaving of its atomic operations and every value
// that the C++ memory model lets a load return, within the bounds of its Options. The checker reports the first
// execution that breaks a rule.
//
// A scenario is a function that builds its state on its own stack, calls run_threads() and then checks the final state.
// The checker runs it again and again; it must behave the same but for the checker's decisions. All of its threads are
// fibers of one real thread.
// Failures: a false require(), a data race on Plain data (or on addresses given to note_read/note_write), a race with
// the construction or the end of an atomic, use after free and leaks of over-aligned memory (the types under test
// allocate such memory), all threads asleep, a scenario that does not end.
//
// The memory model is operational, as in loom and relacy: each atomic keeps the history of its stores, and each
// thread the oldest store of each atomic that it may still see. Acquire and release hand such views on; a vector
// clock keeps the happens-before order. The order of stores to one atomic is the order of execution, and a load
// never returns a later store: load buffering and 2+2W are the only weak behaviours that are left out.
namespace weft::model {

using Where = std::source_location;
using LocationId = std::uint8_t;

// Options: bounds of the exploration. `preemptions`: how often a thread that could continue may be interrupted.
// kNoBound explores every interleaving except those that differ only in the order of independent operations (sleep
// sets).
struct Options {
  static constexpr int kNoBound = -1;
  int preemptions = kNoBound;
  std::uint64_t executions_max = 20'000'000;
};

struct Outcome {
  std::string failure;  // empty: none; otherwise the failure and the operations that led to it
  std::uint64_t executions = 0;
  bool complete = false;  // everything within the bound was explored
};

[[nodiscard]] Outcome explore(const std::function<void()>& scenario, Options options = {});

// --- in a scenario ---

void require(bool condition, const char* what);
// Returns one of 0 .. count - 1; the checker explores each.
[[nodiscard]] int choose(int count);
// The next allocations of over-aligned memory may fail; the checker explores both outcomes. Ends with the execution.
void let_allocations_fail(int times);
// Whether the running code is inside explore().
[[nodiscard]] bool exploring() noexcept;
// 0: the scenario itself; 1, 2, ...: the bodies of run_threads().
[[nodiscard]] int this_thread() noexcept;

// Reads and writes of plain memory, for types that must stay trivial.
void note_read(const void* address);
void note_write(const void* address);

void light_fence(Where where);  // pairs with heavy fences only (P1202): a compiler barrier beside membarrier
void heavy_fence(Where where);
void fence(std::memory_order order, Where where);

namespace detail {

struct Body {
  void (*run)(void*);
  void* context;
};
void run_bodies(const Body* bodies, int count);

LocationId make_location(std::uint64_t initial);
void end_location(LocationId location);
std::uint64_t load(LocationId location, std::memory_order order, Where where);
void store(LocationId location, std::uint64_t value, std::memory_order order, Where where);
// A read-modify-write is begin_update() and, with nothing in between, end_update().
std::uint64_t begin_update(LocationId location, const char* name, std::memory_order order, Where where);
void end_update(std::uint64_t value);
bool compare_exchange(LocationId location, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                      std::memory_order failure, Where where);
bool wait_while_equal(LocationId location, std::uint64_t expected);
void wake_all(LocationId location);
void lock(LocationId location);
void unlock(LocationId location);
void signal(LocationId location);
void wait_for_signal(LocationId location);

template <typename T>
std::uint64_t to_bits(T value) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <typename T>
T from_bits(std::uint64_t bits) noexcept {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace detail

// Runs each callable as a thread of the scenario; returns when all are through. At most kThreadsMax - 1 of them.
template <typename... Callables>
void run_threads(Callables&&... callables) {
  const std::array<detail::Body, sizeof...(Callables)> bodies{
      detail::Body{[](void* context) { (*static_cast<std::remove_reference_t<Callables>*>(context))(); },
                   const_cast<void*>(static_cast<const void*>(&callables))}...};
  detail::run_bodies(bodies.data(), static_cast<int>(bodies.size()));
}

// Atomic: stands in for std::atomic. Each operation is a scheduling point and a site whose order can be weakened.
template <typename T>
class Atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  static constexpr auto kSeqCst = std::memory_order_seq_cst;

 public:
  Atomic() : Atomic(T{}) {}
  Atomic(T initial) : location_(detail::make_location(detail::to_bits(initial))) {}  // NOLINT: as std::atomic
  ~Atomic() { detail::end_location(location_); }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order = kSeqCst, Where where = Where::current()) const {
    return detail::from_bits<T>(detail::load(location_, order, where));
  }
  void store(T value, std::memory_order order = kSeqCst, Where where = Where::current()) {
    detail::store(location_, detail::to_bits(value), order, where);
  }
  T exchange(T value, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return update("exchange", order, where, [&](T) { return value; });
  }
  T fetch_add(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return update("fetch_add", order, where, [&](T old) { return static_cast<T>(old + operand); });
  }
  T fetch_sub(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return update("fetch_sub", order, where, [&](T old) { return static_cast<T>(old - operand); });
  }
  T fetch_or(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return update("fetch_or", order, where, [&](T old) { return static_cast<T>(old | operand); });
  }
  T fetch_and(T operand, std::memory_order order = kSeqCst, Where where = Where::current()) {
    return update("fetch_and", order, where, [&](T old) { return static_cast<T>(old & operand); });
  }
  // Spurious failure of the weak form is not modelled: both are strong.
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure,
                               Where where = Where::current()) {
    std::uint64_t bits = detail::to_bits(expected);
    const bool done = detail::compare_exchange(location_, bits, detail::to_bits(desired), success, failure, where);
    expected = detail::from_bits<T>(bits);
    return done;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure,
                             Where where = Where::current()) {
    return compare_exchange_strong(expected, desired, success, failure, where);
  }

  // A futex on this word. Returns false if the word was not `expected`. Waiting and waking order nothing.
  bool wait_while_equal(T expected) { return detail::wait_while_equal(location_, detail::to_bits(expected)); }
  void wake_all() { detail::wake_all(location_); }

 private:
  template <typename Change>
  T update(const char* name, std::memory_order order, Where where, Change change) {
    const T old = detail::from_bits<T>(detail::begin_update(location_, name, order, where));
    detail::end_update(detail::to_bits(change(old)));
    return old;
  }

  LocationId location_;
};

// Plain: a plain variable whose reads and writes are watched for races.
template <typename T>
class Plain {
 public:
  Plain() : Plain(T{}) {}
  Plain(T value) : value_(value) { note_write(this); }  // NOLINT: converts as T does
  Plain(const Plain& other) : Plain(T(other)) {}
  Plain& operator=(const Plain& other) { return *this = T(other); }
  Plain& operator=(T value) {
    note_write(this);
    value_ = value;
    return *this;
  }
  operator T() const {  // NOLINT: as above
    note_read(this);
    return value_;
  }

 private:
  T value_;
};

// Mutex: stands in for std::mutex.
class Mutex {
 public:
  Mutex() : location_(detail::make_location(0)) {}
  ~Mutex() { detail::end_location(location_); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() { detail::lock(location_); }
  void unlock() { detail::unlock(location_); }

 private:
  LocationId location_;
};

// Event: stands in for an event descriptor that a thread polls: stays signalled until a thread has waited. An event
// orders no memory.
class Event {
 public:
  Event() : location_(detail::make_location(0)) {}
  ~Event() { detail::end_location(location_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void signal() { detail::signal(location_); }
  void wait() { detail::wait_for_signal(location_); }

 private:
  LocationId location_;
};

}  // namespace weft::model
