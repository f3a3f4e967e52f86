// SPDX-License-Identifier: MIT
#include "weft/net/backoff.h"

#include <algorithm>

#include "weft/sys/clock.h"

namespace weft::net {

Backoff::Backoff(Duration base, Duration max, std::uint64_t seed) noexcept : random_(seed) {
  base = std::clamp(base, Duration::zero(), Duration::max() / 4);  // neither 2 * base nor 4 * base overflows
  max_ = max > base ? std::min(max, Duration::max() / 2) : 2 * base;
  first_ceiling_ = std::min(2 * base, max_);
  ceiling_ = first_ceiling_;
}

std::uint64_t Backoff::seed_for(const void* owner) noexcept {
  return reinterpret_cast<std::uintptr_t>(owner) ^ static_cast<std::uint64_t>(sys::now().time_since_epoch().count());
}

Duration Backoff::next() noexcept {
  ceiling_ = std::min(ceiling_, max_);
  return draw(ceiling_, max_);
}

Duration Backoff::next_costly() noexcept {
  ceiling_ = std::max(ceiling_, 2 * kCostlyFirst);
  return draw(ceiling_, std::max(max_, kCostlyMax));
}

Duration Backoff::next_cut() noexcept {
  cut_ceiling_ = std::max({cut_ceiling_, first_ceiling_, 2 * kCostlyFirst});
  return draw(cut_ceiling_, std::max(first_ceiling_, kCutMax));
}

// The next ceiling is twice this one, up to `most`.
Duration Backoff::draw(Duration& ceiling, Duration most) noexcept {
  const Duration floor = ceiling / 2;
  const auto width = static_cast<std::uint64_t>((ceiling - floor).count());
  const Duration interval = floor + Duration(static_cast<Duration::rep>(random_.below(width)));
  ceiling = std::min(2 * ceiling, most);
  return interval;
}

}  // namespace weft::net
