// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weft/base/time.h"

namespace weft::serve {

struct BreakerOptions {
  // The last calls, of which the share is computed; at most CircuitBreaker::kWindowMax.
  std::uint32_t window = 64;
  std::uint32_t calls_min = 16;        // with fewer calls in the window the breaker stays closed
  std::uint32_t failure_percent = 50;  // of the window: this share opens the breaker; above 100: never
  std::uint32_t failures_in_row = 0;   // this many failures in a row open it, too; 0: never
  Duration open_time = std::chrono::seconds(5);
  std::uint32_t probes = 1;  // calls at a time while half open; this many successes in a row close it
};

// CircuitBreaker: decides whether to call a peer that has failed recently. The breaker has no clock: callers pass
// `now`, which must not decrease.
// Owner: the caller. Affinity: one thread. Cost: no allocation, O(1).
// States:
//   - closed: every call passes. Too many failures open the breaker.
//   - open: no call passes, for open_time. Then the breaker is half open.
//   - half open: `probes` calls at a time pass. After that many successes the breaker closes and forgets all outcomes;
//     after one failure it opens again.
// Invariants:
//   1. Only calls that began in the present state count: a late outcome neither opens nor closes the breaker.
//   2. A caller that forgets finish() cannot keep the breaker open: the breaker replaces probes without an
//      outcome after open_time.
class CircuitBreaker {
 public:
  static constexpr std::uint32_t kWindowMax = 256;

  enum class State : std::uint8_t { closed, open, half_open };
  enum class Outcome : std::uint8_t {
    success,
    failure,
    nothing,  // the call shows nothing about the peer: the caller gave up, or never sent
  };
  struct Ticket {  // names a call that passed, for finish()
    std::uint64_t epoch = 0;
  };

  explicit CircuitBreaker(const BreakerOptions& options = {}) noexcept;

  [[nodiscard]] std::optional<Ticket> try_begin(Instant now) noexcept;  // null: do not call
  void finish(Ticket ticket, Outcome outcome, Instant now) noexcept;    // once for each ticket
  [[nodiscard]] State state(Instant now) noexcept;
  [[nodiscard]] std::uint64_t openings() const noexcept { return openings_; }

 private:
  void pass_time(Instant now) noexcept;
  void enter(State state, Instant now) noexcept;
  void note(bool failed) noexcept;
  [[nodiscard]] bool too_many_failures() const noexcept;

  BreakerOptions options_;
  State state_ = State::closed;
  Instant since_;  // the time of entering the state, or from which probes of this epoch may begin
  std::uint64_t epoch_ = 0;
  std::uint64_t openings_ = 0;

  // closed
  std::array<std::uint64_t, kWindowMax / 64> failed_{};  // one bit for each call of the window
  std::uint32_t next_ = 0;
  std::uint32_t calls_ = 0;  // in the window
  std::uint32_t failures_ = 0;
  std::uint32_t in_row_ = 0;
  // half open
  std::uint32_t probing_ = 0;
  std::uint32_t successes_ = 0;
};

}  // namespace weft::serve
