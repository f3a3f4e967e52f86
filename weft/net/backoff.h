// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>

#include "weft/base/random.h"
#include "weft/base/time.h"

namespace weft::net {

// Backoff: the time to wait before the next attempt to connect.
// Affinity: one thread at a time. Cost: no allocation, no system call.
// Invariants:
// 1. Constant mode (`max` <= `base`): next() is uniform in [base, 2 * base).
// 2. Otherwise the k-th next() is uniform in [h/2, h) with h = min(2^k * base, max).
// 3. Base 0 always gives 0.
// 4. next_costly() grows in every mode: as in 2, with h between 2 * kCostlyFirst and kCostlyMax at least.
// Every interval has jitter, since clients of one dead server must not return in step.
// 5. next_cut() grows like next_costly(), up to kCutMax at least, whatever the others and reset() do, until settle().
// The owner adds the wait itself, and decides when an attempt has succeeded and when it gives up.
class Backoff {
 public:
  static constexpr Duration kCutMax = std::chrono::milliseconds(400);
  static constexpr Duration kCostlyFirst = std::chrono::milliseconds(10);
  static constexpr Duration kCostlyMax = std::chrono::seconds(5);

  Backoff(Duration base, Duration max, std::uint64_t seed) noexcept;  // max 0: constant

  // A seed that differs between owners and between processes that start together: the owner's address and the time.
  [[nodiscard]] static std::uint64_t seed_for(const void* owner) noexcept;

  [[nodiscard]] Duration next() noexcept;
  [[nodiscard]] Duration next_costly() noexcept;  // after an attempt that cost both ends much, as a handshake of TLS
  [[nodiscard]] Duration next_cut() noexcept;     // after a connection that ended soon after its handshake
  void reset() noexcept { ceiling_ = first_ceiling_; }         // called after a success
  void settle() noexcept { cut_ceiling_ = Duration::zero(); }  // called after a connection that lasted

 private:
  [[nodiscard]] Duration draw(Duration& ceiling, Duration most) noexcept;

  Random random_;
  Duration first_ceiling_;
  Duration max_;
  Duration ceiling_;         // of the next interval
  Duration cut_ceiling_{0};  // of the next interval of next_cut(); 0: of the first one
};

}  // namespace weft::net
