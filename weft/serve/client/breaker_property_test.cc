// SPDX-License-Identifier: MIT
// The breaker beside a model that keeps every outcome and counts all of them.
#include <rapidcheck.h>

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

#include "weft/serve/client/breaker.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using Outcome = CircuitBreaker::Outcome;
using State = CircuitBreaker::State;

struct Model {
  struct Call {
    std::uint64_t era;
    std::optional<Outcome> outcome;
  };
  BreakerOptions options;
  State state = State::closed;
  std::uint64_t era = 0;
  Instant since;
  std::vector<Call> calls;      // all calls, ever
  std::vector<bool> counted{};  // outcomes of this era, in the order of finishing: failed or not

  void enter(State next, Instant now) {
    state = next;
    since = now;
    ++era;
    counted.clear();
  }
  [[nodiscard]] std::size_t running() const {
    std::size_t count = 0;
    for (const Call& call : calls) {
      count += call.era == era && !call.outcome ? 1 : 0;
    }
    return count;
  }
  void pass(Instant now) {
    const bool over = now - since >= options.open_time;
    if (over && (state == State::open || (state == State::half_open && running() != 0))) {
      enter(State::half_open, now);
    }
  }
  bool begin(Instant now) {
    pass(now);
    if (state == State::open || (state == State::half_open && running() + counted.size() >= options.probes)) {
      return false;
    }
    calls.push_back({era, std::nullopt});
    return true;
  }
  void finish(std::size_t index, Outcome outcome, Instant now) {
    pass(now);
    calls[index].outcome = outcome;
    if (calls[index].era != era || outcome == Outcome::nothing) {
      return;
    }
    counted.push_back(outcome == Outcome::failure);
    if (state == State::half_open) {
      if (outcome == Outcome::failure) {
        enter(State::open, now);
      } else if (counted.size() >= options.probes) {
        enter(State::closed, now);
      }
      return;
    }
    const std::size_t first = counted.size() > options.window ? counted.size() - options.window : 0;
    std::size_t failures = 0;
    std::size_t in_row = 0;
    for (std::size_t i = 0; i < counted.size(); ++i) {
      failures += i >= first && counted[i] ? 1 : 0;
      in_row = counted[i] ? in_row + 1 : 0;
    }
    const std::size_t size = counted.size() - first;
    const bool share = size >= options.calls_min && failures * 100 >= options.failure_percent * size && failures != 0;
    if (share || (options.failures_in_row != 0 && in_row >= options.failures_in_row)) {
      enter(State::open, now);
    }
  }
};

TEST(BreakerProperty, TheBreakerAgreesWithAModelThatRemembersEverything) {
  EXPECT_TRUE(rc::check([] {
    BreakerOptions options;
    options.window = *rc::gen::inRange(1u, 12u);
    options.calls_min = *rc::gen::inRange(1u, options.window + 1);
    options.failure_percent = *rc::gen::inRange(1u, 120u);
    options.failures_in_row = *rc::gen::inRange(0u, 5u);
    options.probes = *rc::gen::inRange(1u, 4u);
    options.open_time = std::chrono::seconds(3);
    CircuitBreaker breaker(options);
    Model model{options, State::closed, 0, Instant(), {}};
    std::vector<CircuitBreaker::Ticket> tickets;
    std::vector<std::size_t> running;  // indices of calls
    Instant now{};
    const auto steps = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
    for (const std::uint8_t step : steps) {
      if (step < 100) {
        const auto ticket = breaker.try_begin(now);
        RC_ASSERT(ticket.has_value() == model.begin(now));
        if (ticket) {
          running.push_back(tickets.size());
          tickets.push_back(*ticket);
        }
      } else if (step < 230 && !running.empty()) {
        const std::size_t which = step % running.size();
        const auto outcome = step % 7 == 0 ? Outcome::nothing : step % 3 == 0 ? Outcome::success : Outcome::failure;
        breaker.finish(tickets[running[which]], outcome, now);
        model.finish(running[which], outcome, now);
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
      } else {
        now += std::chrono::seconds(1);
      }
      model.pass(now);
      RC_ASSERT(breaker.state(now) == model.state);
    }
  }));
}

}  // namespace
}  // namespace weft::serve
