// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/base/time.h"

namespace weft::net {

// A rate: `per_second` tokens a second, and up to `burst` tokens at once after a rest.
struct RateLimit {
  std::uint32_t per_second = 0;  // 0: no limit
  std::uint32_t burst = 1;       // 0 counts as 1

  [[nodiscard]] constexpr bool limits() const noexcept { return per_second != 0; }
};

// TokenBucket: decides whether an event may happen now under a RateLimit. A value of 16 bytes that starts full.
// The caller keeps the limit, which must not change. Affinity: one thread at a time. Cost: one multiplication.
// Invariant: exact. The level is an integer, in parts of a token that grow by per_second in each nanosecond. From any
// instant on, at most burst + floor(per_second * elapsed) tokens are taken, and exactly that many by a caller that
// never leaves the bucket full: only tokens that a full bucket cannot hold are lost. If time goes back, the level
// stays.
class TokenBucket {
 public:
  [[nodiscard]] constexpr bool try_take(const RateLimit& limit, Instant now, std::uint32_t tokens = 1) noexcept {
    if (!limit.limits()) {
      return true;
    }
    refill(limit, now);
    const std::uint64_t cost = tokens * kToken;
    if (level_ < cost) {
      return false;
    }
    level_ -= cost;
    return true;
  }

  // The time until `tokens` can be taken if no caller takes any before. Negative if `tokens` exceeds the burst.
  [[nodiscard]] constexpr Duration wait(const RateLimit& limit, Instant now, std::uint32_t tokens = 1) noexcept {
    if (!limit.limits()) {
      return Duration::zero();
    }
    refill(limit, now);
    const std::uint64_t cost = tokens * kToken;
    if (cost > capacity(limit)) {
      return Duration(-1);
    }
    const std::uint64_t missing = cost - std::min(cost, level_);
    return Duration((missing + limit.per_second - 1) / limit.per_second);
  }

  // Whether the bucket equals a new one, so that its owner may forget it.
  [[nodiscard]] constexpr bool full(const RateLimit& limit, Instant now) noexcept {
    if (limit.limits()) {
      refill(limit, now);
    }
    return !limit.limits() || level_ == capacity(limit);
  }

 private:
  static constexpr std::uint64_t kToken = 1'000'000'000;
  static constexpr Instant kUnused = Instant::min();

  [[nodiscard]] static constexpr std::uint64_t capacity(const RateLimit& limit) noexcept {
    return std::max(limit.burst, std::uint32_t{1}) * kToken;
  }
  constexpr void refill(const RateLimit& limit, Instant now) noexcept {
    const std::uint64_t most = capacity(limit);
    if (now <= last_ && last_ != kUnused) {
      return;
    }
    const std::uint64_t elapsed = static_cast<std::uint64_t>(now.time_since_epoch().count()) -
                                  static_cast<std::uint64_t>(last_.time_since_epoch().count());
    __extension__ using Wide = unsigned __int128;
    const auto gained = static_cast<Wide>(elapsed) * limit.per_second;
    level_ = last_ == kUnused || gained > most - level_ ? most : level_ + static_cast<std::uint64_t>(gained);
    last_ = now;
  }

  std::uint64_t level_ = 0;
  Instant last_ = kUnused;
};

}  // namespace weft::net
