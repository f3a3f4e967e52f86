// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/backoff.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/guarded.h"

namespace weft::serve {

// RetryBudget: bounds the retries of a program to a share of its requests, so that retries cannot multiply the load of
// a failing peer. It holds at most `retries_max` retries. Each first attempt adds `percent` hundredths of a retry.
// Owner: the program; one for each peer. Affinity: one thread.
class RetryBudget {
 public:
  explicit RetryBudget(std::uint32_t percent = 20, std::uint32_t retries_max = 10) noexcept
      : percent_(percent), max_(retries_max * std::uint64_t{100}), left_(max_) {}

  void note_request() noexcept { left_ = std::min(max_, left_ + percent_); }
  [[nodiscard]] bool try_take() noexcept {  // false: do not retry now
    const bool some = left_ >= 100;
    left_ -= some ? 100 : 0;
    return some;
  }

 private:
  std::uint64_t percent_;
  std::uint64_t max_;
  std::uint64_t left_;  // in hundredths
};

struct RetryPolicy {
  std::uint32_t attempts = 3;  // with the first one
  // Set it if a repeated request does no harm, or if the peer recognises it: then retrying() also repeats a request
  // whose outcome is unknown.
  bool repeatable = false;
  Duration wait_first = std::chrono::milliseconds(50);  // the first wait is 0.5 to 1 times this, ...
  Duration wait_max = std::chrono::seconds(2);          // ... the next ones double up to this
  Instant deadline = kNever;                            // no attempt begins after it; each attempt has its own deadline
  RetryBudget* budget = nullptr;                        // must outlive the coroutine; null: no bound except `attempts`
  // Whether the peer's answer permits another attempt: "busy", for example. Null: an answer ends the attempts.
  bool (*retry_answer)(const Error& error) = nullptr;
};

// Whether the request that ended with the error may be sent again: not if the caller gave up or made a mistake, which a
// second attempt would repeat.
[[nodiscard]] constexpr bool may_retry(const Error& error, const RetryPolicy& policy) noexcept {
  switch (error.code()) {
    case Errc::ok:
    case Errc::cancelled:
    case Errc::closed:
    case Errc::terminated:
    case Errc::invalid_argument:
    case Errc::invalid_state:
    case Errc::not_supported:
    case Errc::message_too_large:
    case Errc::buffer_too_small:
    case Errc::job_threw: return false;
    default: break;
  }
  switch (error.fate()) {
    case Fate::not_sent: return true;
    case Fate::answered: return policy.retry_answer != nullptr && policy.retry_answer(error);
    default: return policy.repeatable;
  }
}

namespace detail {

template <typename Outcome, typename Make>
rt::Task<Outcome> retry(RetryPolicy policy, Make make) {
  net::Backoff backoff(policy.wait_first / 2, policy.wait_max, net::Backoff::seed_for(&policy));
  bool in_doubt = false;  // the peer may have executed an earlier attempt
  if (policy.budget != nullptr) {
    policy.budget->note_request();
  }
  for (std::uint32_t attempt = 1;; ++attempt) {
    Outcome outcome = co_await make();
    if (outcome) {
      co_return outcome;
    }
    Error error = outcome.error();
    const bool again = attempt < policy.attempts && may_retry(error, policy);
    if (in_doubt && error.fate() == Fate::not_sent) {
      error = error.with_fate(Fate::outcome_unknown);
    }
    in_doubt = in_doubt || error.fate() == Fate::outcome_unknown || error.fate() == Fate::unsaid;
    const Duration wait = backoff.next();
    const Instant now = co_await TurnTime();
    if (!again || deadline_after(now, wait) >= policy.deadline ||
        (policy.budget != nullptr && !policy.budget->try_take())) {
      co_return error;
    }
    const Result<void> slept = co_await rt::sleep(wait);
    if (!slept) {
      co_return slept.error().with_fate(error.fate());
    }
  }
}

}  // namespace detail

// Awaits make(), which sends a request, and again after a wait, as long as the policy allows it: `co_await
// retrying(policy, ask)` with `auto ask = [&] { return client->request(header, body, sys::now() + 1s); };`. With a
// breaker, make() returns guarded(&breaker, ...). Returns the first success, or the error of the last attempt. Its
// fate() is `outcome_unknown` also if an earlier attempt had this fate and the last one was not sent.
// `make` is a variable that outlives the coroutine, or a closure of references and plain values, which is copied.
template <typename Make>
  requires std::is_invocable_v<Make&>
[[nodiscard]] std::invoke_result_t<Make&> retrying(const RetryPolicy& policy, Make& make) {
  using Outcome = decltype(std::declval<std::invoke_result_t<Make&>>().operator co_await().await_resume());
  return detail::retry<Outcome, Make&>(policy, make);
}
template <typename Make>
  requires(!std::is_lvalue_reference_v<Make> && std::is_invocable_v<Make&>)
[[nodiscard]] std::invoke_result_t<Make&> retrying(const RetryPolicy& policy, Make&& make) {
  static_assert(std::is_trivially_destructible_v<Make>,
                "weft: GCC 12 may destroy a temporary closure that owns something twice: name it first");
  using Outcome = decltype(std::declval<std::invoke_result_t<Make&>>().operator co_await().await_resume());
  return detail::retry<Outcome, Make>(policy, std::forward<Make>(make));
}

}  // namespace weft::serve
