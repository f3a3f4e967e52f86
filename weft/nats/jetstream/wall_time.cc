// SPDX-License-Identifier: MIT
#include "weft/nats/jetstream/wall_time.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace weft::nats::jetstream {

namespace {

constexpr Error kNotATime(Errc::protocol_error, "the time of day has another form than that of RFC 3339");

// Takes a number of so many digits.
[[nodiscard]] std::optional<unsigned> take_digits(std::string_view& text, std::size_t count) noexcept {
  if (text.size() < count) {
    return std::nullopt;
  }
  unsigned number = 0;
  for (const char c : text.substr(0, count)) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    number = number * 10 + static_cast<unsigned>(c - '0');
  }
  text.remove_prefix(count);
  return number;
}

[[nodiscard]] bool take_sign(std::string_view& text, char sign) noexcept {
  const bool there = text.starts_with(sign);
  text.remove_prefix(there ? 1 : 0);
  return there;
}

[[nodiscard]] std::optional<std::int64_t> take_fraction(std::string_view& text) noexcept {
  std::int64_t nanoseconds = 0;
  std::size_t digits = 0;
  for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1)) {
    if (++digits <= 9) {
      nanoseconds = nanoseconds * 10 + (text.front() - '0');
    }
  }
  for (std::size_t i = digits; i < 9; ++i) {
    nanoseconds *= 10;
  }
  return digits == 0 ? std::nullopt : std::optional(nanoseconds);
}

// "Z", "+02:00" or "-02:00".
[[nodiscard]] std::optional<std::chrono::minutes> take_zone(std::string_view& text) noexcept {
  if (take_sign(text, 'Z')) {
    return std::chrono::minutes(0);
  }
  const bool east = take_sign(text, '+');
  if (!east && !take_sign(text, '-')) {
    return std::nullopt;
  }
  const auto hours = take_digits(text, 2);
  const bool colon = take_sign(text, ':');
  const auto minutes = take_digits(text, 2);
  if (!hours || !colon || !minutes || *hours > 23 || *minutes > 59) {
    return std::nullopt;
  }
  const std::chrono::minutes offset(*hours * 60 + *minutes);
  return east ? offset : -offset;
}

}  // namespace

Result<WallTime> read_wall_time(std::string_view text) noexcept {
  std::array<unsigned, 6> parts{};  // year, month, day, hours, minutes, seconds
  constexpr std::string_view kAfter = "--T::";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto part = take_digits(text, i == 0 ? 4 : 2);
    if (!part || (i < kAfter.size() && !take_sign(text, kAfter[i]))) {
      return kNotATime;
    }
    parts[i] = *part;
  }
  std::int64_t nanoseconds = 0;
  if (take_sign(text, '.')) {
    const auto fraction = take_fraction(text);
    if (!fraction) {
      return kNotATime;
    }
    nanoseconds = *fraction;
  }
  const auto offset = take_zone(text);
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(parts[0])), std::chrono::month(parts[1]),
                                         std::chrono::day(parts[2]));
  if (!offset || !text.empty() || !date.ok() || parts[3] > 23 || parts[4] > 59 || parts[5] > 60) {
    return kNotATime;
  }
  const std::int64_t seconds = std::chrono::sys_seconds(std::chrono::sys_days(date)).time_since_epoch().count() +
                               std::int64_t{parts[3]} * 3600 + std::int64_t{parts[4]} * 60 + parts[5] -
                               std::chrono::seconds(*offset).count();
  std::int64_t whole = 0;
  if (__builtin_mul_overflow(seconds, std::int64_t{1'000'000'000}, &whole) ||
      __builtin_add_overflow(whole, nanoseconds, &whole)) {
    return seconds < 0 ? WallTime::min() : WallTime::max();
  }
  return WallTime(Duration(whole));
}

void append_wall_time(WallTime time, std::string& out) {
  // WallTime does not hold the whole second in which its least value is.
  time = std::max(time, WallTime::min() + std::chrono::seconds(1));
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto nanoseconds = (time - seconds).count();
  const auto of_day = static_cast<unsigned>((seconds - std::chrono::sys_seconds(day)).count());
  const auto put = [&out](std::uint64_t number, std::size_t digits) {
    std::string text(digits, '0');
    for (std::size_t i = digits; i-- > 0; number /= 10) {
      text[i] = static_cast<char>('0' + number % 10);
    }
    out += text;
  };
  put(static_cast<std::uint64_t>(static_cast<int>(date.year())), 4);
  out += '-';
  put(static_cast<unsigned>(date.month()), 2);
  out += '-';
  put(static_cast<unsigned>(date.day()), 2);
  out += 'T';
  put(of_day / 3600, 2);
  out += ':';
  put(of_day / 60 % 60, 2);
  out += ':';
  put(of_day % 60, 2);
  out += '.';
  put(static_cast<std::uint64_t>(nanoseconds), 9);
  out += 'Z';
}

}  // namespace weft::nats::jetstream
