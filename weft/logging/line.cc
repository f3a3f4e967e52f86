// SPDX-License-Identifier: MIT
#include "weft/logging/line.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>

#include "weft/base/text/hex.h"
#include "weft/base/text/json_string.h"
#include "weft/base/text/utf8.h"

namespace weft::logging {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr std::int64_t kLastSecond = 253'402'300'799;   // 9999-12-31T23:59:59Z
constexpr std::int64_t kFirstSecond = -62'167'219'200;  // 0000-01-01T00:00:00Z
constexpr std::size_t kNumberMax = 26;                  // bytes of a number, also in quotes
constexpr std::size_t kFrame = 160;  // bytes of a line around its component, its event and its fields, at most

// Bits of the classes of a byte of a value.
constexpr std::uint8_t kWord = 1;  // stands for itself without quotes
constexpr std::uint8_t kName = 2;  // may be in a field's name

constexpr std::array<std::uint8_t, 256> make_classes() noexcept {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = ' '; c <= '~'; ++c) {
    const bool word = c != '"' && c != '\\' && c != ' ' && c != '=';
    const bool name =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    classes[c] = static_cast<std::uint8_t>((word ? kWord : 0) | (name ? kName : 0));
  }
  return classes;
}
constexpr std::array<std::uint8_t, 256> kClasses = make_classes();

bool is(char c, std::uint8_t what) noexcept { return (kClasses[static_cast<unsigned char>(c)] & what) != 0; }

char* put(std::string_view text, char* out) noexcept {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

// Digits with zeros before them. A division by a constant is a multiplication.
template <std::size_t kWidth>
char* put_digits(std::uint64_t number, char* out) noexcept {
  for (std::size_t i = kWidth; i-- > 0; number /= 10) {
    out[i] = static_cast<char>('0' + number % 10);
  }
  return out + kWidth;
}

char* put_name(std::string_view name, char* out) noexcept {
  constexpr std::array<std::string_view, 4> kTaken{"time", "level", "component", "event"};
  const bool taken = name.empty() || std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end();
  for (const char c : name.substr(0, kNameMax)) {
    *out++ = is(c, kName) ? c : '_';
  }
  if (taken) {
    *out++ = '_';
  }
  return out;
}

char* put_real(double value, char* out) noexcept { return std::to_chars(out, out + kNumberMax, value).ptr; }

template <bool kJson>
char* put_value(const Field& field, char* out) noexcept {
  switch (field.kind()) {
    case Field::Kind::text: return kJson ? write_quoted(field.text(), out) : write_word(field.text(), out);
    case Field::Kind::integer: return std::to_chars(out, out + kNumberMax, field.integer()).ptr;
    case Field::Kind::natural: return std::to_chars(out, out + kNumberMax, field.natural()).ptr;
    case Field::Kind::flag: return put(field.natural() != 0 ? "true" : "false", out);
    case Field::Kind::real: {
      const bool quoted = kJson && !std::isfinite(field.real());  // JSON has no such number
      out = put_real(field.real(), put(quoted ? "\"" : "", out));
      return put(quoted ? "\"" : "", out);
    }
    case Field::Kind::hex:
      out = write_hex(field.natural(), 16, put(kJson ? "\"0x" : "0x", out));
      return put(kJson ? "\"" : "", out);
  }
  return out;
}

// A function for each format: the texts between the values are constants there.
template <bool kJson>
char* put_parts(const LineParts& parts, TimeText& time, char* out) noexcept {
  out = put(kJson ? R"({"time":")" : "time=", out);
  out = time.write(parts.time_ns, out);
  out = put(kJson ? R"(","level":")" : " level=", out);
  out = put(describe(parts.level), out);
  out = put(kJson ? R"(","component":")" : " component=", out);
  out = put(parts.component, out);
  out = put(kJson ? R"(","event":)" : " event=", out);
  out = kJson ? write_quoted(parts.event, out) : write_word(parts.event, out);
  for (const Field& field : parts.fields) {
    out = put(kJson ? ",\"" : " ", out);
    out = put_name(field.name(), out);
    out = put(kJson ? "\":" : "=", out);
    out = put_value<kJson>(field, out);
  }
  return put(kJson ? "}\n" : "\n", out);
}

std::size_t bound_of(std::string_view value) noexcept {
  return 2 + std::min(value.size(), kTextMax) * kJsonEscapedSize;
}

}  // namespace

char* TimeText::write(std::int64_t time_ns, char* out) noexcept {
  using std::chrono::floor;
  std::int64_t second = time_ns / kNanosecondsPerSecond;
  std::int64_t rest = time_ns % kNanosecondsPerSecond;
  if (rest < 0) {
    rest += kNanosecondsPerSecond;
    --second;
  }
  if (second != second_) {
    second_ = second;
    const std::chrono::sys_seconds time{std::chrono::seconds(std::clamp(second, kFirstSecond, kLastSecond))};
    const auto day = floor<std::chrono::days>(time);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss clock(time - day);
    char* at = put_digits<4>(static_cast<std::uint64_t>(static_cast<int>(date.year())), begin_.data());
    *at++ = '-';
    at = put_digits<2>(static_cast<unsigned>(date.month()), at);
    *at++ = '-';
    at = put_digits<2>(static_cast<unsigned>(date.day()), at);
    *at++ = 'T';
    at = put_digits<2>(static_cast<std::uint64_t>(clock.hours().count()), at);
    *at++ = ':';
    at = put_digits<2>(static_cast<std::uint64_t>(clock.minutes().count()), at);
    *at++ = ':';
    at = put_digits<2>(static_cast<std::uint64_t>(clock.seconds().count()), at);
    *at = '.';
  }
  out = put({begin_.data(), begin_.size()}, out);
  out = put_digits<6>(static_cast<std::uint64_t>(rest) / 1000, out);
  *out++ = 'Z';
  return out;
}

char* write_quoted(std::string_view value, char* out) noexcept {
  return write_json_string(utf8_prefix(value, kTextMax), out);
}

char* write_word(std::string_view value, char* out) noexcept {
  const bool word = !value.empty() && value.size() <= kTextMax &&
                    std::all_of(value.begin(), value.end(), [](char c) { return is(c, kWord); });
  return word ? put(value, out) : write_quoted(value, out);
}

std::size_t count_fitting(const LineParts& parts, std::size_t& bound) noexcept {
  bound = kFrame + parts.component.size() + bound_of(parts.event);
  std::size_t count = 0;
  for (const Field& field : parts.fields) {
    const std::size_t more = std::min(field.name().size(), kNameMax) + 5 +
                             (field.kind() == Field::Kind::text ? bound_of(field.text()) : kNumberMax);
    if (more > kLineMax - bound) {
      break;
    }
    bound += more;
    ++count;
  }
  return count;
}

char* write_line(const LineParts& parts, Format format, bool with_priority, TimeText& time, char* out) noexcept {
  if (with_priority) {  // the numbers of syslog
    constexpr std::array<std::string_view, 6> kPriorities{"<7>", "<7>", "<6>", "<4>", "<3>", "<3>"};
    out = put(kPriorities[std::min<std::size_t>(static_cast<std::size_t>(parts.level), kPriorities.size() - 1)], out);
  }
  return format == Format::json ? put_parts<true>(parts, time, out) : put_parts<false>(parts, time, out);
}

}  // namespace weft::logging
