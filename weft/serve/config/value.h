// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/admit/token_bucket.h"

// The values of a configuration, and their texts.
namespace weft::serve::config {

// Size: a number of bytes: "16 KiB".
struct Size {
  std::uint64_t bytes = 0;
  friend bool operator==(Size, Size) noexcept = default;
};

using Value =
    std::variant<bool, std::int64_t, double, Duration, Size, net::RateLimit, std::string, std::vector<std::string>>;

inline constexpr Duration kNone{-1};  // the duration "none": without a bound

// "250 ms", "1.5 s", "none": a number and ns, us, ms, s, min, h or d, with or without one space between them. A value
// that is not a whole number of nanoseconds, or does not fit, is refused. Errors: invalid_argument, whose text has the
// rule.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text) noexcept;
// "512 B", "16 KiB", "1.5 MiB", up to TiB, in the same way.
[[nodiscard]] Result<Size> parse_size(std::string_view text) noexcept;
// "10/s", "10/s burst 50", "none".
[[nodiscard]] Result<net::RateLimit> parse_rate(std::string_view text) noexcept;

// The texts parse back to equal values.
[[nodiscard]] std::string to_text(Duration value);
[[nodiscard]] std::string to_text(Size value);
[[nodiscard]] std::string to_text(const net::RateLimit& value);
// Lists in brackets, with each text in quotes, and a backslash before each quote and backslash in it.
[[nodiscard]] std::string to_text(const Value& value);

// Whether both have the same effect: equal values of one alternative. All rates without a limit are the same, a burst
// of 0 is one of 1, and all negative durations are "none".
[[nodiscard]] bool same_value(const Value& a, const Value& b);

// The text in quotes, for a message: control characters, and bytes that are not UTF-8, as \xNN. At most 64 bytes.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace weft::serve::config
