// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weft/base/time.h"

namespace weft::serve {

struct BreakerOptions {
  std::uint32_t window = 64;           // calls that the share is of: the last ones; at most CircuitBreaker::kWindowMax
  std::uint32_t calls_min = 16;        // fewer say nothing about the share
  std::uint32_t failure_percent = 50;  // of the window: opens it; above 100: never
  std::uint32_t failures_in_row = 0;   // open it too; 0: never
  Duration open_time = std::chrono::seconds(5);
  std::uint32_t probes = 1;  // calls at a time while it is half open; as many successes in a row close it
};

// CircuitBreaker: whether to call something that has failed lately. It has no clock: `now` comes in, and is not before
// an earlier one. Owner: who calls. Affinity: one thread. Cost: no allocation, O(1).
// closed: every call is let through; too many failures open it. open: none, for open_time. half open: `probes` calls at
// a time; when so many succeeded it is closed and has forgotten everything, when one failed it is open again.
// Invariants:
//   (1) Only calls that began in the present state count: what comes late neither opens nor closes it.
//   (2) It never stays shut because somebody forgot to finish(): probes that said nothing for open_time are replaced.
class CircuitBreaker {
 public:
  static constexpr std::uint32_t kWindowMax = 256;

  enum class State : std::uint8_t { closed, open, half_open };
  enum class Outcome : std::uint8_t {
    success,
    failure,
    nothing,  // it says nothing about the other side: the caller gave up, or never asked
  };
  struct Ticket {  // of a call that was let through, for finish()
    std::uint64_t epoch = 0;
  };

  explicit CircuitBreaker(const BreakerOptions& options = {}) noexcept;

  [[nodiscard]] std::optional<Ticket> try_begin(Instant now) noexcept;  // nothing: do not call
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
  Instant since_;  // when it entered the state, or the probes of this epoch may begin
  std::uint64_t epoch_ = 0;
  std::uint64_t openings_ = 0;

  // closed
  std::array<std::uint64_t, kWindowMax / 64> failed_{};  // bit per call of the window
  std::uint32_t next_ = 0;
  std::uint32_t calls_ = 0;  // in the window
  std::uint32_t failures_ = 0;
  std::uint32_t in_row_ = 0;
  // half open
  std::uint32_t probing_ = 0;
  std::uint32_t successes_ = 0;
};

}  // namespace weft::serve
