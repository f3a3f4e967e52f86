// SPDX-License-Identifier: MIT
// Coroutines that await or return a wrong type.
#include "weft/rt/task/task.h"

using namespace weft;

rt::Task<int> number() { co_return 1; }
rt::Task<Result<int>> result() { co_return 1; }
rt::Task<Result<int>> whole() {
  rt::Task<int> task = number();
  WEFT_CO_TRY(const int first, co_await result());
  co_return first + co_await std::move(task);
}

rt::Task<Result<>> nothing() { co_return Result<>(); }

// MISTAKE a task that is awaited as a variable: weft: a task is awaited once: co_await std::move(task)
rt::Task<int> wrong() {
  rt::Task<int> task = number();
  co_return co_await task;
}

// MISTAKE WEFT_TRY in a coroutine: weft_try_in_coroutines_is_WEFT_CO_TRY
rt::Task<Result<int>> wrong() {
  const int first = WEFT_TRY(Result<int>(1));
  co_return first;
}

// MISTAKE a value of another type: weft: the value of co_return does not convert to the T of Task<T>
rt::Task<int> wrong() { co_return "text"; }

// MISTAKE an error of a task without a result: weft: the value of co_return does not convert to the T of Task<T>
rt::Task<int> wrong() { co_return Error(Errc::closed); }

// MISTAKE a constant result: weft: the awaiter owns the result of a task: Task<T> instead of Task<const T>
rt::Task<const int> wrong() { co_return 1; }

// MISTAKE a result that a frame cannot align: weft: a coroutine's frame is aligned for std::max_align_t
struct alignas(64) Line {};
rt::Task<Line> wrong() { co_return Line(); }

// MISTAKE a reference: return a pointer, or std::ref
rt::Task<int&> wrong();
int size() { return sizeof(rt::Task<int&>); }

// MISTAKE a variable of WEFT_CO_TRY in a loop without braces: weft_co_try_with_a_variable_needs_braces
// clang-format off
rt::Task<Result<int>> wrong() {
  for (;;)
    WEFT_CO_TRY(const int first, co_await result());
}
