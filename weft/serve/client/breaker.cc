// SPDX-License-Identifier: MIT
#include "weft/serve/client/breaker.h"

#include <algorithm>

namespace weft::serve {

CircuitBreaker::CircuitBreaker(const BreakerOptions& options) noexcept : options_(options) {
  options_.window = std::clamp<std::uint32_t>(options_.window, 1, kWindowMax);
  options_.calls_min = std::clamp<std::uint32_t>(options_.calls_min, 1, options_.window);
  options_.probes = std::max<std::uint32_t>(options_.probes, 1);
}

std::optional<CircuitBreaker::Ticket> CircuitBreaker::try_begin(Instant now) noexcept {
  pass_time(now);
  if (state_ == State::open || (state_ == State::half_open && probing_ + successes_ >= options_.probes)) {
    return std::nullopt;
  }
  probing_ += state_ == State::half_open ? 1 : 0;
  return Ticket{epoch_};
}

void CircuitBreaker::finish(Ticket ticket, Outcome outcome, Instant now) noexcept {
  pass_time(now);
  if (ticket.epoch != epoch_) {
    return;
  }
  if (state_ == State::half_open) {
    --probing_;
    if (outcome == Outcome::failure) {
      enter(State::open, now);
    } else if (outcome == Outcome::success && ++successes_ >= options_.probes) {
      enter(State::closed, now);
    }
  } else if (outcome != Outcome::nothing) {
    note(outcome == Outcome::failure);
    if (too_many_failures()) {
      enter(State::open, now);
    }
  }
}

CircuitBreaker::State CircuitBreaker::state(Instant now) noexcept {
  pass_time(now);
  return state_;
}

void CircuitBreaker::pass_time(Instant now) noexcept {
  if (state_ == State::closed || now < deadline_after(since_, options_.open_time)) {
    return;
  }
  if (state_ == State::open || probing_ != 0) {  // replaces probes that had no outcome for open_time
    enter(State::half_open, now);
  }
}

void CircuitBreaker::enter(State state, Instant now) noexcept {
  openings_ += state == State::open ? 1 : 0;
  state_ = state;
  since_ = now;
  ++epoch_;
  failed_ = {};
  next_ = calls_ = failures_ = in_row_ = 0;
  probing_ = successes_ = 0;
}

void CircuitBreaker::note(bool failed) noexcept {
  std::uint64_t& word = failed_[next_ / 64];
  const std::uint64_t bit = std::uint64_t{1} << (next_ % 64);
  if (calls_ == options_.window) {
    failures_ -= (word & bit) != 0 ? 1 : 0;
  } else {
    ++calls_;
  }
  word = failed ? word | bit : word & ~bit;
  failures_ += failed ? 1 : 0;
  in_row_ = failed ? in_row_ + 1 : 0;
  next_ = (next_ + 1) % options_.window;
}

bool CircuitBreaker::too_many_failures() const noexcept {
  const bool share = calls_ >= options_.calls_min &&
                     std::uint64_t{failures_} * 100 >= std::uint64_t{options_.failure_percent} * calls_;
  return (share && failures_ != 0) || (options_.failures_in_row != 0 && in_row_ >= options_.failures_in_row);
}

}  // namespace weft::serve
