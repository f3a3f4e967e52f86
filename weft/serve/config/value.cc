// SPDX-License-Identifier: MIT
#include "weft/serve/config/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>
#include <system_error>
#include <type_traits>

#include "weft/base/text/hex.h"
#include "weft/base/text/utf8.h"

namespace weft::serve::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t count;  // of the smallest unit
};

constexpr std::array<Unit, 7> kTimes{{{"d", 86'400'000'000'000},
                                      {"h", 3'600'000'000'000},
                                      {"min", 60'000'000'000},
                                      {"s", 1'000'000'000},
                                      {"ms", 1'000'000},
                                      {"us", 1'000},
                                      {"ns", 1}}};
constexpr std::array<Unit, 5> kSizes{{{"TiB", std::uint64_t{1} << 40U},
                                      {"GiB", std::uint64_t{1} << 30U},
                                      {"MiB", std::uint64_t{1} << 20U},
                                      {"KiB", std::uint64_t{1} << 10U},
                                      {"B", 1}}};

constexpr Error kNoDuration(Errc::invalid_argument, R"(write a number and ns, us, ms, s, min, h or d, like "250 ms")");
constexpr Error kNoSize(Errc::invalid_argument, R"(write a number and B, KiB, MiB, GiB or TiB, like "16 KiB")");
constexpr Error kNoRate(Errc::invalid_argument, R"(write a number a second, like "10/s" or "10/s burst 50")");
constexpr std::size_t kDigitsMax = 18;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// A number with at most one point, and a unit, as a whole number of the smallest unit.
Result<std::uint64_t> parse_amount(std::string_view text, std::span<const Unit> units, const Error& refusal) noexcept {
  std::uint64_t number = 0;
  std::uint64_t parts = 1;  // of one: 10 for each digit after the point
  std::size_t digits = 0;
  bool point = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !point && digits != 0)); ++at) {
    if (text[at] == '.') {
      point = true;
      continue;
    }
    if (++digits > kDigitsMax) {
      return refusal;
    }
    number = number * 10 + static_cast<std::uint64_t>(text[at] - '0');
    parts *= point ? 10 : 1;
  }
  if (digits == 0 || text[at - 1] == '.') {
    return refusal;
  }
  text.remove_prefix(at);
  text.remove_prefix(text.starts_with(' ') ? 1 : 0);
  for (const Unit& unit : units) {
    if (text == unit.name) {
      __extension__ using Wide = unsigned __int128;
      const Wide all = static_cast<Wide>(number) * unit.count;
      if (all % parts != 0 || all / parts > static_cast<Wide>(std::numeric_limits<std::int64_t>::max())) {
        return refusal;
      }
      return static_cast<std::uint64_t>(all / parts);
    }
  }
  return refusal;
}

std::string amount_text(std::uint64_t amount, std::span<const Unit> units, std::string_view of_zero) {
  if (amount == 0) {
    return std::string(of_zero);
  }
  for (const Unit& unit : units) {
    if (amount % unit.count == 0) {
      return std::to_string(amount / unit.count) + " " + std::string(unit.name);
    }
  }
  return "";  // the last unit counts one
}

// Takes a number of 32 bits from the front of the text.
bool take_number(std::string_view& text, std::uint32_t& into) noexcept {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error != std::errc()) {
    return false;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) noexcept {
  if (text == "none") {
    return kNone;
  }
  return Duration(static_cast<Duration::rep>(WEFT_TRY(parse_amount(text, kTimes, kNoDuration))));
}

Result<Size> parse_size(std::string_view text) noexcept { return Size{WEFT_TRY(parse_amount(text, kSizes, kNoSize))}; }

Result<net::RateLimit> parse_rate(std::string_view text) noexcept {
  net::RateLimit rate;
  if (text == "none") {
    return rate;
  }
  constexpr std::string_view kBurst = " burst ";
  bool good = take_number(text, rate.per_second) && rate.per_second != 0 && text.starts_with("/s");
  if (good) {
    text.remove_prefix(2);
  }
  if (good && text.starts_with(kBurst)) {
    text.remove_prefix(kBurst.size());
    good = take_number(text, rate.burst) && rate.burst != 0;
  }
  return good && text.empty() ? Result<net::RateLimit>(rate) : kNoRate;
}

std::string to_text(Duration value) {
  return value < Duration::zero() ? "none" : amount_text(static_cast<std::uint64_t>(value.count()), kTimes, "0 s");
}

std::string to_text(Size value) { return amount_text(value.bytes, kSizes, "0 B"); }

std::string to_text(const net::RateLimit& value) {
  if (!value.limits()) {
    return "none";
  }
  return std::to_string(value.per_second) + "/s" + (value.burst > 1 ? " burst " + std::to_string(value.burst) : "");
}

std::string to_text(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<Held, std::int64_t>) {
          return std::to_string(held);
        } else if constexpr (std::is_same_v<Held, double>) {
          char digits[32];
          const auto end = std::to_chars(digits, digits + sizeof digits, held).ptr;
          return {digits, end};
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return held;
        } else if constexpr (std::is_same_v<Held, std::vector<std::string>>) {
          std::string list = "[";
          for (const std::string& each : held) {
            list += list.size() > 1 ? ", \"" : "\"";
            for (const char c : each) {
              list += c == '"' || c == '\\' ? "\\" : "";
              list += c;
            }
            list += '"';
          }
          return list + "]";
        } else {
          return to_text(held);
        }
      },
      value);
}

bool same_value(const Value& a, const Value& b) {
  const auto same = [&b](const auto& held) {
    using Held = std::decay_t<decltype(held)>;
    const auto& other = std::get<Held>(b);
    if constexpr (std::is_same_v<Held, net::RateLimit>) {
      return held.per_second == other.per_second &&
             (!held.limits() || std::max(held.burst, 1U) == std::max(other.burst, 1U));
    } else if constexpr (std::is_same_v<Held, Duration>) {
      return std::max(held, kNone) == std::max(other, kNone);
    } else {
      return held == other;
    }
  };
  return a.index() == b.index() && std::visit(same, a);
}

std::string quote(std::string_view text) {
  constexpr std::size_t kMost = 64;
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool control = first < 0x20 || first == 0x7F || (first == 0xC2 && size == 2 && text[1] < '\xA0');
    std::string shown(text.substr(0, size == 0 ? 1 : size));
    if (size == 0 || control) {
      std::string escaped;
      for (const char& c : shown) {
        append_hex_bytes({&c, 1}, escaped += "\\x");
      }
      shown = escaped;
    }
    if (out.size() + shown.size() > kMost) {
      out += "...";
      break;
    }
    out += shown;
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out + "\"";
}

}  // namespace weft::serve::config
