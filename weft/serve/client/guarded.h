// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/breaker.h"
#include "weft/serve/frame/error_frame.h"
#include "weft/sync/counter.h"

namespace weft::serve {

// Classifies the error of a request. A failure: the peer does not answer, or breaks its protocol, or answers with an
// error frame because its service refused or threw. Other errors concern the caller: cancelled, closed, its own bounds,
// a message that the peer does not support or parse.
[[nodiscard]] constexpr CircuitBreaker::Outcome outcome_of(const Error& error) noexcept {
  if (error == Errc::ok) {
    return CircuitBreaker::Outcome::success;
  }
  if (error.domain() == kServiceDomain) {
    return CircuitBreaker::Outcome::failure;
  }
  if (error.domain() == kFrameDomain) {
    const auto code = static_cast<ErrorCode>(error.value());
    return code == ErrorCode::refused || code == ErrorCode::handler_failed ? CircuitBreaker::Outcome::failure
                                                                           : CircuitBreaker::Outcome::nothing;
  }
  const bool failure = error == Errc::timed_out || error == Errc::connection_closed ||
                       error == Errc::connection_failed || error == Errc::protocol_error ||
                       error == Errc::unreachable || error == Errc::outcome_unknown || error == Errc::name_unresolved ||
                       error == Errc::address_unavailable;
  return failure ? CircuitBreaker::Outcome::failure : CircuitBreaker::Outcome::nothing;
}

// A function of the program with this task: if services refuse in the ordinary course, it calls that a success.
using Judge = CircuitBreaker::Outcome (*)(const Error& error);

inline constexpr Error kBreakerOpen = Error(Errc::unreachable, "the circuit breaker is open").with_fate(Fate::not_sent);

namespace detail {

// The time of the present turn, for a coroutine of any runner.
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

// Reports `nothing` to the breaker if no outcome was noted, because the task threw.
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

// Awaits the task if the breaker lets it pass. Otherwise the task does not run, and the result is kBreakerOpen. `judge`
// classifies the task's result for the breaker. `breaker` and `refused`, which counts tasks that did not run, must
// outlive the coroutine. A caller that judges answers itself calls try_begin() and finish().
template <typename T>
[[nodiscard]] rt::Task<Result<T>> guarded(CircuitBreaker* breaker, rt::Task<Result<T>> task,
                                          sync::Counter* refused = nullptr, Judge judge = outcome_of) {
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
  call.note(judge(result ? Error() : result.error()), ended);
  co_return result;
}

}  // namespace weft::serve
