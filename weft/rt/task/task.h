// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/mem/pool.h"
#include "weft/rt/loop/task_runner.h"

namespace weft::rt {

template <typename T = void>
class Task;

namespace detail {

class PromiseBase;

// Join: gets the end of a task that no coroutine awaits directly: a group, a scope, a Future.
class Join {
 public:
  using Done = std::coroutine_handle<> (*)(Join& self) noexcept;
  explicit Join(Done function) noexcept : done_(function) {}
  [[nodiscard]] std::coroutine_handle<> done() noexcept { return done_(*this); }

 private:
  Done done_;
};

struct FinalAwaiter {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    return transfer(coroutine.promise().next());
  }
  void await_resume() const noexcept {}
};

// NewestFrame: finds coroutines that GCC 12 miscompiles: those with an await in a condition and without any variable.
// The function that makes such a coroutine and the coroutine itself disagree about the frame: the promise is after the
// place from which coroutine_handle computes the frame. Such a coroutine would not begin, or trap.
// Affinity: a thread's own. Cost: two stores and a comparison for each frame.
class NewestFrame {
 public:
#if defined(__GNUC__) && !defined(__clang__)
  static void note(const void* frame, std::size_t size) noexcept {
    newest = {static_cast<const std::byte*>(frame), size};
  }
  // `computed`: the frame of a promise, which may not be the newest one. Throws std::logic_error.
  static void check(const void* computed) {
    const auto* const at = static_cast<const std::byte*>(computed);
    if (at > newest.frame && at < newest.frame + newest.size) [[unlikely]] {
      refuse();
    }
  }

 private:
  struct Block {
    const std::byte* frame;
    std::size_t size;
  };
  [[noreturn, gnu::cold]] static void refuse() {
    throw std::logic_error(
        "weft: the compiler breaks this coroutine: it awaits in the condition of an if, while, do, for or switch, and "
        "declares no variable. Name the result first: const auto r = co_await ...; if (r)");
  }
  static inline constinit thread_local Block newest{};
#else
  static void note(const void* /*frame*/, std::size_t /*size*/) noexcept {}
  static void check(const void* /*computed*/) noexcept {}
#endif
};

// PromiseBase: the part that the promises of all tasks share.
class PromiseBase {
 public:
  // A coroutine's frame is in the pool of the thread that called it.
  static void* operator new(std::size_t size) {
    void* const frame = mem::pool_allocate(size);
    if (frame == nullptr) [[unlikely]] {
      throw std::bad_alloc();
    }
    NewestFrame::note(frame, size);
    return frame;
  }
  static void operator delete(void* frame) noexcept { mem::pool_deallocate(frame); }

  [[nodiscard]] std::suspend_always initial_suspend() const noexcept { return {}; }
  [[nodiscard]] FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { exception_ = std::current_exception(); }

  // --- for the starter of the task ---
  void start_in(CancelScope& scope, std::coroutine_handle<> continuation) noexcept {
    scope_ = &scope;
    continuation_ = continuation;
  }
  void start_in(CancelScope& scope, Join& join) noexcept {
    scope_ = &scope;
    join_ = &join;
  }
  [[nodiscard]] bool begun() const noexcept { return scope_ != nullptr; }
  [[nodiscard]] CancelScope& scope() const noexcept { return *scope_; }
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }
  [[nodiscard]] std::coroutine_handle<> next() const noexcept {
    return join_ == nullptr ? continuation_ : join_->done();
  }

 private:
  CancelScope* scope_ = nullptr;
  std::coroutine_handle<> continuation_;
  Join* join_ = nullptr;
  std::exception_ptr exception_;
};

template <typename T>
class Promise final : public PromiseBase {
  static_assert(
      alignof(T) <= alignof(std::max_align_t),
      "weft: a coroutine's frame is aligned for std::max_align_t: return a pointer to what is aligned further");

 public:
  Promise() noexcept {}
  Promise(const Promise&) = delete;
  Promise& operator=(const Promise&) = delete;
  ~Promise() {
    if (has_value_) {
      value_.~T();
    }
  }

  Task<T> get_return_object();
  template <typename U = T>
  void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
    static_assert(std::is_constructible_v<T, U>, "weft: the value of co_return does not convert to the T of Task<T>");
    ::new (static_cast<void*>(std::addressof(value_))) T(std::forward<U>(value));
    has_value_ = true;
  }
  // Requires that the task has ended. Rethrows the task's exception.
  T take() {
    if (!has_value_) [[unlikely]] {
      std::rethrow_exception(exception());
    }
    return std::move(value_);
  }

 private:
  union {
    T value_;
  };
  bool has_value_ = false;
};

template <>
class Promise<void> final : public PromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() const noexcept {}
  void take() const {
    if (exception()) [[unlikely]] {
      std::rethrow_exception(exception());
    }
  }
};

}  // namespace detail

// Task<T>: a coroutine that begins when it is awaited. The task and its awaiter run in one thread: a Loop's, or that of
// the caller of TaskRunner::turn(). `Task<int> f() { ... co_return 1; }`, `const int x = co_await f();`.
// Owner: a move-only value that owns the frame. A task that is dropped before it was awaited does not run.
// Affinity: may be made in any thread; then the thread of the loop it is started on (spawn(), TaskScope).
// Cost: a frame from the thread's pool (mem/pool.h), no malloc in steady state. However many awaits are nested or
// follow each other, the stack does not grow, also if the compiler makes no tail calls.
// Errors: co_await returns a T, also a Result, unchanged, and rethrows the coroutine's exception. If there is no memory
// for a frame, calling the coroutine function throws std::bad_alloc.
// Cancellation (docs/design/0003): a task is in its awaiter's CancelScope. When that is cancelled, each await of this
// library inside (sleep, a Future, an event, a socket) ends with kCancelled; so does each later one. The task is never
// destroyed half-way: it checks its Results and returns. The canceller waits for a task that continues nevertheless. A
// task that does not check them does not keep its thread: from the second of such awaits in a row, each one ends in the
// loop's next turn, and is counted (weft_core_cancels_ignored_total). After kCancelledAwaitsMax in a row the next one
// throws CancelIgnored, which ends the task.
// Invariants:
//   1. A coroutine is resumed once for each wait.
//   2. A frame ends with its Task, after the coroutine ran to its end.
//
// GCC 12 miscompiles some coroutines. Write them so:
// - A lambda that is a coroutine refers to its captures, which end with the lambda, not with the frame. Pass its data
//   as parameters by value: `[](Session* s) -> Task<> {...}(s)`.
// - A parameter by reference must outlive the task, not only the call.
// - Temporaries of aggregate types with members that need destruction, made inside a co_await expression, may be
//   destroyed twice: name them first (`const Key key{a, b}; co_await find(key);`), or give the type a constructor.
//   A closure that owns something is such a temporary: `auto calling = runtime.call(1, [text] {...}); co_await
//   calling`. run_on(), call() and post_wait() refuse the other form; Executor::submit() cannot.
// - An await in the condition of if, while, do, for or switch would never resume, or trap, when the coroutine declares
//   no variable at all, whatever the await gives. Calling such a coroutine throws std::logic_error, whose text says so.
//   Name the result: `if (const bool done = co_await f(); done)`, or `const auto r = co_await f(); if (r)`.
// - `condition ? co_await a : co_await b`, and co_await inside of a statement expression: use an if. WEFT_TRY holds a
//   return and is not for coroutines: WEFT_CO_TRY, below, is.
// - co_await is not allowed in a catch block, by the language.
template <typename T>
class [[nodiscard]] Task {
  static_assert(!std::is_reference_v<T>, "return a pointer, or std::ref");
  static_assert(!std::is_const_v<T>, "weft: the awaiter owns the result of a task: Task<T> instead of Task<const T>");

 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() noexcept = default;  // without a coroutine
  explicit Task(Handle coroutine) noexcept : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      reset();
      coroutine_ = std::exchange(other.coroutine_, nullptr);
    }
    return *this;
  }
  ~Task() { reset(); }

  class Awaiter {
   public:
    explicit Awaiter(Handle coroutine) noexcept : coroutine_(coroutine) {}  // if null, await_resume() throws
    [[nodiscard]] bool await_ready() const noexcept { return !coroutine_; }
    template <detail::TaskPromise Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
      coroutine_.promise().start_in(parent.promise().scope(), parent);
      return detail::transfer(coroutine_);
    }
    T await_resume() {
      if (!coroutine_) [[unlikely]] {
        throw std::logic_error("weft: co_await of a Task that was moved from, or awaited before");
      }
      return coroutine_.promise().take();
    }

   private:
    Handle coroutine_;
  };
  // Only in another Task, and once: throws std::logic_error if the task was moved from or has begun.
  Awaiter operator co_await() && noexcept { return Awaiter(may_begin() ? coroutine_ : Handle()); }
  template <bool kMoved = false>
  Awaiter operator co_await() & noexcept {
    static_assert(kMoved, "weft: a task is awaited once: co_await std::move(task)");
    return Awaiter(coroutine_);
  }

  explicit operator bool() const noexcept { return static_cast<bool>(coroutine_); }
  [[nodiscard]] bool may_begin() const noexcept { return coroutine_ && !coroutine_.promise().begun(); }
  // For code that starts tasks in other ways.
  [[nodiscard]] Handle handle() const noexcept { return coroutine_; }
  void reset() noexcept {
    if (coroutine_) {
      std::exchange(coroutine_, nullptr).destroy();
    }
  }

 private:
  Handle coroutine_;
};

// IsCancelled: whether the present task is cancelled: `if (const bool cancelled = co_await is_cancelled(); cancelled)`.
// Does not wait, but counts as an await of a cancelled task: from the second one in a row the answer comes in the next
// turn (see Wait).
class [[nodiscard]] IsCancelled {
 public:
  IsCancelled() noexcept {}  // NOLINT(modernize-use-equals-default): not an aggregate, see above
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    CancelScope& scope = coroutine.promise().scope();
    cancelled_ = scope.cancelled();
    return cancelled_ && defer(scope, coroutine);
  }
  [[nodiscard]] bool await_resume() const noexcept { return cancelled_; }

 private:
  bool defer(CancelScope& scope, std::coroutine_handle<> coroutine) {
    // Made here only, so that an await of a task that is not cancelled does not initialize it.
    auto* const wait = ::new (static_cast<void*>(place_)) Wait([](Wait& /*self*/) noexcept {});
    return !wait->begin(scope, coroutine) && wait->deferred();
  }

  bool cancelled_ = false;
  alignas(Wait) std::byte place_[sizeof(Wait)];
};
inline IsCancelled is_cancelled() noexcept { return {}; }

namespace detail {
inline constexpr Error kNoTask(Errc::invalid_argument, "the task was moved from, or has begun");

template <typename T>
Task<T> Promise<T>::get_return_object() {
  const auto coroutine = std::coroutine_handle<Promise>::from_promise(*this);
  NewestFrame::check(coroutine.address());
  return Task<T>(coroutine);
}
inline Task<void> Promise<void>::get_return_object() {
  const auto coroutine = std::coroutine_handle<Promise>::from_promise(*this);
  NewestFrame::check(coroutine.address());
  return Task<void>(coroutine);
}
}  // namespace detail

}  // namespace weft::rt

// In a coroutine that returns a Result or an Error. `WEFT_CO_TRY(auto message, co_await socket.recv());` declares a
// variable with the value of a Result, and `WEFT_CO_TRY(co_await socket.send(text));` needs none; an Error ends the
// coroutine as its result. The second form is one statement. The first is three, so as the body of an if or a loop it
// needs braces, and does not compile without. The declaration may have up to three commas: `WEFT_CO_TRY(auto [name,
// price], co_await next());`. Put an expression with a comma outside of all parentheses into parentheses.
#define WEFT_CO_TRY(...)                                                                                       \
  WEFT_CO_TRY_PICK(__VA_ARGS__, WEFT_CO_TRY_VALUE4, WEFT_CO_TRY_VALUE3, WEFT_CO_TRY_VALUE2, WEFT_CO_TRY_VALUE, \
                   WEFT_CO_TRY_CHECK)                                                                          \
  (__COUNTER__, __VA_ARGS__)
#define WEFT_CO_TRY_PICK(first, second, third, fourth, fifth, form, ...) form
#define WEFT_CO_TRY_NAME(number) WEFT_CO_TRY_JOIN(weft_co_try_with_a_variable_needs_braces_, number)
#define WEFT_CO_TRY_JOIN(name, number) name##number
// The switch keeps a compiler from warning of an else that follows.
#define WEFT_CO_TRY_CHECK(number, expression)                                              \
  switch (0)                                                                               \
  case 0:                                                                                  \
  default:                                                                                 \
    if (auto WEFT_CO_TRY_NAME(number) = expression; WEFT_CO_TRY_NAME(number)) [[likely]] { \
    } else                                                                                 \
      co_return WEFT_CO_TRY_NAME(number).error()
#define WEFT_CO_TRY_VALUE(number, a, expression) WEFT_CO_TRY_DECLARE(number, expression, a)
#define WEFT_CO_TRY_VALUE2(number, a, b, expression) WEFT_CO_TRY_DECLARE(number, expression, a, b)
#define WEFT_CO_TRY_VALUE3(number, a, b, c, expression) WEFT_CO_TRY_DECLARE(number, expression, a, b, c)
#define WEFT_CO_TRY_VALUE4(number, a, b, c, d, expression) WEFT_CO_TRY_DECLARE(number, expression, a, b, c, d)
#define WEFT_CO_TRY_DECLARE(number, expression, ...) \
  auto WEFT_CO_TRY_NAME(number) = expression;        \
  if (!WEFT_CO_TRY_NAME(number)) [[unlikely]] {      \
    co_return WEFT_CO_TRY_NAME(number).error();      \
  }                                                  \
  __VA_ARGS__ = ::weft::detail::take_value(WEFT_CO_TRY_NAME(number))
