// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/call.h"
#include "weft/rt/core/core.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/core/sharded_state.h"
#include "weft/rt/core/task_call.h"
#include "weft/rt/exec/job_run.h"
#include "weft/rt/task/closure_await.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_group.h"
#include "weft/rt/task/task_time.h"

namespace weft::rt {

namespace detail {

// Carried: the result of a function on another core, or its exception.
template <typename Outcome>
struct Carried {
  explicit Carried(Outcome value) : outcome(std::move(value)) {}
  explicit Carried(std::exception_ptr exception)
      : outcome(Error(Errc::job_threw, "the function threw")), thrown(std::move(exception)) {}

  Outcome outcome;
  std::exception_ptr thrown;
};

template <typename Outcome>
Outcome unwrap(Result<Carried<Outcome>> carried) {
  if (!carried) {
    return carried.error();
  }
  if (carried->thrown) {
    std::rethrow_exception(carried->thrown);
  }
  return std::move(carried->outcome);
}

// OnShard: calls the function with the instance of the core on which it runs.
template <typename T, typename F>
class OnShard {
 public:
  using R = std::remove_cvref_t<std::invoke_result_t<F&, T&>>;
  using Outcome = AsResult<R>;

  template <typename G>
  OnShard(std::uint64_t number, G&& function) : number_(number), function_(std::forward<G>(function)) {}

  Result<Carried<Outcome>> operator()() {
    ShardedPlace* const place = ShardedState::find(number_);
    if (place == nullptr) {
      return kNoInstance;
    }
    try {
      if constexpr (std::is_void_v<R>) {
        function_(*static_cast<T*>(place->object));
        return Carried<Outcome>(Outcome());
      } else {
        return Carried<Outcome>(Outcome(function_(*static_cast<T*>(place->object))));
      }
    } catch (...) {
      return Carried<Outcome>(std::current_exception());
    }
  }

 private:
  std::uint64_t number_;
  F function_;
};

// The same for a function that returns a Task, which runs there.
template <typename T, typename F>
class TaskOnShard {
 public:
  using R = typename TaskValue<std::invoke_result_t<F&, T&>>::Type;
  using Outcome = AsResult<R>;

  template <typename G>
  TaskOnShard(std::uint64_t number, G&& function) : number_(number), function_(std::forward<G>(function)) {}

  Task<Result<Carried<Outcome>>> operator()() { return run(number_, &function_); }

 private:
  static Task<Result<Carried<Outcome>>> run(std::uint64_t number, F* function) {
    const ShardedUse use(number);
    if (use.object() == nullptr) {
      co_return kNoInstance;
    }
    std::exception_ptr thrown;
    try {
      if constexpr (std::is_void_v<R>) {
        co_await (*function)(*static_cast<T*>(use.object()));
        co_return Carried<Outcome>(Outcome());
      } else {
        Outcome outcome(co_await (*function)(*static_cast<T*>(use.object())));
        if (!outcome) {
          co_return outcome.error();  // of two errors the caller gets its own: its deadline
        }
        co_return Carried<Outcome>(std::move(outcome));
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    co_return Carried<Outcome>(std::move(thrown));
  }

  std::uint64_t number_;
  F function_;
};

template <typename F, typename T>
concept ReturnsTaskOn = requires { typename TaskValue<std::invoke_result_t<F&, T&>>::Type; };

template <typename T, typename F>
struct ShardCall {
  using Function = OnShard<T, F>;
  using Call = Calling<Function>;
};
template <typename T, ReturnsTaskOn<T> F>
struct ShardCall<T, F> {
  using Function = TaskOnShard<T, F>;
  using Call = CallingTask<Function>;
};

// CarryingCall: a call whose awaiter returns a Carried, which it does not open.
template <typename T, typename F>
class CarryingCall {
 public:
  using Function = typename ShardCall<T, F>::Function;
  using Outcome = typename Function::Outcome;

  template <typename G>
  CarryingCall(Core* caller, unsigned target, Instant deadline, std::uint64_t number, G&& function)
      : call_(caller, target, deadline, Function(number, std::forward<G>(function))) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <typename Promise>
  [[nodiscard]] bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return call_.await_suspend(coroutine);
  }
  [[nodiscard]] Result<Carried<Outcome>> await_resume() { return call_.await_resume(); }

 private:
  typename ShardCall<T, F>::Call call_;
};

}  // namespace detail

// Invoking: the awaiter of Sharded::invoke_on(); co_await it once, on the core that made it.
template <typename T, typename F>
class [[nodiscard]] Invoking : private detail::CarryingCall<T, F> {
  using Base = detail::CarryingCall<T, F>;

 public:
  using Base::await_ready;
  using Base::await_suspend;
  using Base::Base;
  [[nodiscard]] typename Base::Outcome await_resume() { return detail::unwrap(Base::await_resume()); }
};

// Sharded: one T on each core of a runtime, made, used and destroyed in its core's thread alone, so that a T needs no
// lock. A part of a whole: each core has its share of the keys, of the counts, of the connections to a database.
// Owner: the caller of start(). The runtime outlives it; otherwise the destructor destroys the instances where it runs.
// Affinity: start(), stop() and destruction a foreign thread; on a core stop() fails, and the destructor does not wait.
// local() any thread; the calls are awaited on a core of the runtime.
// Cost: local() is two loads. A call costs that of Runtime::call(), and a search among the residents of its core:
// its servers and sharded objects. No lock, no shared reference count.
// Invariants:
//   1. The instances are made one after the other, on core 0 first, and end one after the other, on core 0 last. If one
//      cannot be made, the earlier ones end, in that order.
//   2. A function gets the instance of the core on which it runs, and no other one. After the beginning of stop() on a
//      core, calls fail there with `closed`.
//   3. An instance ends after the tasks of calls that run on it. Coroutines that use local() end before stop().
//   4. An instance of a core that has ended lives until stop(), which destroys it in the thread that calls.
template <typename T>
class Sharded {
 public:
  // Calls make(core), or make(), on each core: it returns a T, a std::unique_ptr<T>, or a Result of one. Waits for all.
  // Without a function: T(core), or T(). Rethrows an exception of the function.
  // Errors: those of the function; closed (the runtime is stopped); invalid_state (called by a core);
  // resource_exhausted.
  template <typename Make>
  static Result<std::unique_ptr<Sharded>> start(Runtime& runtime, Make make);
  static Result<std::unique_ptr<Sharded>> start(Runtime& runtime) {
    return start(runtime, []([[maybe_unused]] Core& core) {
      if constexpr (std::is_constructible_v<T, Core&>) {
        return std::make_unique<T>(core);
      } else {
        return std::make_unique<T>();
      }
    });
  }
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;
  ~Sharded() {
    if (state_->inherited()) {
      detail::keep_for_ever(std::move(state_));
    } else if (!state_->stop(kNever)) {
      state_->begin_stop();  // on a core
    }
  }

  // The instance of the calling core; null on another thread, and after its end.
  [[nodiscard]] T* local() const noexcept { return static_cast<T*>(state_->here()); }
  [[nodiscard]] unsigned size() const noexcept { return state_->cores(); }  // instances, and cores

  // `co_await sharded.invoke_on(core, [](T& t) { … })`: calls the function with the instance of that core, which may be
  // the caller's own. Result<R>; a Result stays as it is; of a Task, its result, and the task runs there. The await
  // rethrows an exception of the function.
  // Errors: those of Runtime::call(), except job_threw; closed (stopped). The rule of call() for closures that own
  // something holds, and its rule for tasks: while a called task runs it may refer to the caller's variables.
  template <typename F>
  [[nodiscard]] detail::ClosureAwaiter<Invoking<T, std::decay_t<F>>, F> invoke_on(unsigned core, F&& function,
                                                                                  Instant deadline = kNever) {
    using Awaiter = detail::ClosureAwaiter<Invoking<T, std::decay_t<F>>, F>;
    return Awaiter(own_core(state_->runtime()), core, deadline, state_->number(), std::forward<F>(function));
  }
  // Calls a copy of the function on every core, beside each other, and waits for all: Result<void>. The function
  // returns void, a Result<void>, or a Task of one. If some fail, the others run nevertheless, and the await rethrows
  // the exception, or returns the error, of the lowest such core.
  template <std::copy_constructible F>
  [[nodiscard]] Task<Result<void>> invoke_on_all(F function, Instant deadline = kNever) {
    static_assert(std::same_as<typename detail::CarryingCall<T, F>::Outcome, Result<void>>,
                  "weft: map_reduce() returns values; a function for invoke_on_all() returns void or Result<void>");
    return run_on_all<F>(&state_->runtime(), state_->number(), std::move(function), deadline);
  }
  // Calls a copy of map(T&) on every core, beside each other, then reduce() with their values, on the caller's core and
  // in the order of the cores: `value = reduce(value, mapped)`, or reduce(value, mapped) if that returns nothing.
  // Returns the last value: Result<V>. If some fail, as invoke_on_all(). An exception of reduce() is rethrown, too.
  template <std::copy_constructible Map, typename V, typename Reduce>
  [[nodiscard]] Task<Result<V>> map_reduce(Map map, V initial, Reduce reduce, Instant deadline = kNever) {
    return run_map_reduce<Map, V, Reduce>(&state_->runtime(), state_->number(), std::move(map), std::move(initial),
                                          std::move(reduce), deadline);
  }

  // Ends the instances, and waits. Idempotent. Errors: timed_out (a core is busy, or tasks run on an instance: the
  // stop goes on, and the caller may call again to wait for it); invalid_state (called by a core: no effect; or in a
  // forked child).
  Result<void> stop(Instant deadline) { return state_->stop(deadline); }

 private:
  explicit Sharded(std::shared_ptr<detail::ShardedState> state) noexcept : state_(std::move(state)) {}

  template <typename Made>
  static Result<void*> release(Made made) {
    if constexpr (detail::kIsResult<Made>) {
      return made ? release(std::move(*made)) : Result<void*>(made.error());
    } else if constexpr (std::same_as<Made, std::unique_ptr<T>>) {
      return made != nullptr ? Result<void*>(made.release())
                             : Result<void*>(Error(Errc::invalid_argument, "a function made no instance"));
    } else {
      return static_cast<void*>(new T(std::move(made)));
    }
  }
  template <typename Make>
  static Result<void*> build(void* make, Core& core) {
    const auto call = [&]() -> decltype(auto) {
      if constexpr (std::invocable<Make&, Core&>) {
        return (*static_cast<Make*>(make))(core);
      } else {
        return (*static_cast<Make*>(make))();
      }
    };
    if constexpr (std::same_as<std::invoke_result_t<decltype(call)>, T>) {
      return static_cast<void*>(new T(call()));  // a T need not be movable
    } else {
      return release(call());
    }
  }
  static void destroy(void* object) noexcept { delete static_cast<T*>(object); }

  [[nodiscard]] static Core* own_core(const Runtime& runtime) noexcept {
    Core* const core = Core::current();
    return core != nullptr && &core->runtime() == &runtime ? core : nullptr;
  }
  // These take no reference to the object, which may end before them.
  template <typename F>
  static std::vector<detail::CarryingCall<T, F>> calls_of(Runtime& runtime, std::uint64_t number, const F& function,
                                                          Instant deadline) {
    std::vector<detail::CarryingCall<T, F>> calls;
    calls.reserve(runtime.size());
    for (unsigned core = 0; core < runtime.size(); ++core) {
      calls.emplace_back(own_core(runtime), core, deadline, number, function);
    }
    return calls;
  }
  template <typename F>
  static Task<Result<void>> run_on_all(Runtime* runtime, std::uint64_t number, F function, Instant deadline) {
    auto calls = calls_of(*runtime, number, function, deadline);
    auto results = co_await when_all(std::move(calls));
    for (auto& result : results) {
      if (const Result<void> done = detail::unwrap(std::move(result)); !done) {
        co_return done;
      }
    }
    co_return Result<void>();
  }
  template <typename Map, typename V, typename Reduce>
  static Task<Result<V>> run_map_reduce(Runtime* runtime, std::uint64_t number, Map map, V value, Reduce reduce,
                                        Instant deadline) {
    auto calls = calls_of(*runtime, number, map, deadline);
    auto results = co_await when_all(std::move(calls));
    for (auto& result : results) {
      auto mapped = detail::unwrap(std::move(result));
      if (!mapped) {
        co_return mapped.error();
      }
      using Mapped = decltype(std::move(*mapped));
      if constexpr (std::is_void_v<std::invoke_result_t<Reduce&, V&, Mapped>>) {
        reduce(value, std::move(*mapped));
      } else {
        value = reduce(std::move(value), std::move(*mapped));
      }
    }
    co_return std::move(value);
  }

  std::shared_ptr<detail::ShardedState> state_;
};

template <typename T>
template <typename Make>
Result<std::unique_ptr<Sharded<T>>> Sharded<T>::start(Runtime& runtime, Make make) {
  std::unique_ptr<Sharded> sharded;
  try {
    sharded.reset(new Sharded(std::make_shared<detail::ShardedState>(runtime, &destroy)));
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for a sharded object");
  }
  WEFT_TRY(sharded->state_->start(&build<Make>, &make));
  return sharded;
}

}  // namespace weft::rt
