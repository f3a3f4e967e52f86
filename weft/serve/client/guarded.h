// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/breaker.h"
#include "weft/sync/counter.h"

namespace weft::serve {

// Whether an error of a request says that the other side is not well: it does not answer, or not in its protocol.
// Others are about the caller: cancelled, closed, its own bounds.
[[nodiscard]] constexpr CircuitBreaker::Outcome outcome_of(const Error& error) noexcept {
  if (error == Errc::ok) {
    return CircuitBreaker::Outcome::success;
  }
  const bool failure = error == Errc::timed_out || error == Errc::connection_closed ||
                       error == Errc::connection_failed || error == Errc::protocol_error || error == Errc::unreachable;
  return failure ? CircuitBreaker::Outcome::failure : CircuitBreaker::Outcome::nothing;
}

inline constexpr Error kBreakerOpen(Errc::unreachable, "the circuit breaker is open");

namespace detail {

// The time of the turn, for a coroutine of whatever runner.
class TurnTime {
 public:
  TurnTime() noexcept {}  // NOLINT(modernize-use-equals-default): not an aggregate, see rt/task/task.h
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <rt::detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    now_ = coroutine.promise().scope().runner().now();
    return false;
  }
  [[nodiscard]] Instant await_resume() const noexcept { return now_; }

 private:
  Instant now_;
};

// Says `nothing` unless it is told more: when the task throws.
class GuardedCall {
 public:
  GuardedCall(CircuitBreaker& breaker, CircuitBreaker::Ticket ticket, Instant now) noexcept
      : breaker_(breaker), ticket_(ticket), now_(now) {}
  GuardedCall(const GuardedCall&) = delete;
  GuardedCall& operator=(const GuardedCall&) = delete;
  ~GuardedCall() { breaker_.finish(ticket_, outcome_, now_); }
  void note(CircuitBreaker::Outcome outcome, Instant now) noexcept {
    outcome_ = outcome;
    now_ = now;
  }

 private:
  CircuitBreaker& breaker_;
  CircuitBreaker::Ticket ticket_;
  Instant now_;
  CircuitBreaker::Outcome outcome_ = CircuitBreaker::Outcome::nothing;
};

}  // namespace detail

// The task, unless the breaker is open: then kBreakerOpen, and it does not run. Its result tells the breaker
// (outcome_of()). `breaker` and `refused`, which counts those that did not run, outlive it. An answer that is no good,
// but an answer, is a success here: who thinks otherwise asks try_begin() and tells finish() by himself.
template <typename T>
[[nodiscard]] rt::Task<Result<T>> guarded(CircuitBreaker* breaker, rt::Task<Result<T>> task,
                                          sync::Counter* refused = nullptr) {
  const Instant began = co_await detail::TurnTime();
  const auto ticket = breaker->try_begin(began);
  if (!ticket) {
    if (refused != nullptr) {
      refused->add();
    }
    co_return kBreakerOpen;
  }
  detail::GuardedCall call(*breaker, *ticket, began);
  Result<T> result = co_await std::move(task);
  const Instant ended = co_await detail::TurnTime();
  call.note(outcome_of(result ? Error() : result.error()), ended);
  co_return result;
}

}  // namespace weft::serve
