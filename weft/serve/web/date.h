// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "weft/base/time.h"

namespace weft::serve::web {

inline constexpr std::size_t kDateSize = 29;

// "Sun, 06 Nov 1994 08:49:37 GMT": the form of RFC 9110 section 5.6.7, in UTC. Years 0 to 9999.
[[nodiscard]] std::array<char, kDateSize> http_date(std::chrono::sys_seconds time) noexcept;

// The time that the field's value names, in one of the three forms of that section. None: it has none of them. A year
// of two digits is the last one of that form that is not more than 50 years after `now`.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text,
                                                                      std::chrono::sys_seconds now) noexcept;

// DateClock: the field Date of answers. Owner: a service of one core. Affinity: one thread.
// Cost: a comparison; the clock is read and the text is made once a second.
class DateClock {
 public:
  // `now`: of the monotonic clock. The text is valid until the next call.
  [[nodiscard]] std::string_view text(Instant now) noexcept;

 private:
  std::array<char, kDateSize> text_{};
  Instant fresh_until_ = Instant::min();
};

}  // namespace weft::serve::web
