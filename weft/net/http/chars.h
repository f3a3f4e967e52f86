// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace weft::net::http {

namespace detail {

enum : std::uint8_t {
  kToken = 1,    // tchar of RFC 9110 section 5.6.2
  kInValue = 2,  // of a field: field-vchar, space and tab, RFC 9110 section 5.5
  kInPath = 4,   // pchar and '/' of RFC 3986, without '%'
  kInQuery = 8,  // the same, '?', and the bytes that browsers leave as they are: [ ] { } | \ ^ `
};

consteval std::array<std::uint8_t, 256> classes_of_bytes() {
  std::array<std::uint8_t, 256> classes{};
  const auto mark = [&classes](std::string_view bytes, unsigned as) {
    for (const char c : bytes) {
      auto& marks = classes[static_cast<unsigned char>(c)];
      marks = static_cast<std::uint8_t>(marks | as);
    }
  };
  mark("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~", kToken | kInPath | kInQuery);
  mark("!#$%&'*+^`|", kToken);
  mark("!$&'()*+,;=:@/", kInPath | kInQuery);
  mark("?[]{}|\\^`", kInQuery);
  for (unsigned c = 0; c < 256; ++c) {
    if (c == '\t' || (c >= ' ' && c != 0x7F)) {
      classes[c] = static_cast<std::uint8_t>(classes[c] | kInValue);
    }
  }
  return classes;
}
inline constexpr std::array<std::uint8_t, 256> kClasses = classes_of_bytes();

constexpr bool is_of(char c, std::uint8_t mask) noexcept {
  return (kClasses[static_cast<unsigned char>(c)] & mask) != 0;
}

}  // namespace detail

[[nodiscard]] constexpr bool is_token_char(char c) noexcept { return detail::is_of(c, detail::kToken); }
[[nodiscard]] constexpr bool is_value_char(char c) noexcept { return detail::is_of(c, detail::kInValue); }
[[nodiscard]] constexpr bool is_path_char(char c) noexcept { return detail::is_of(c, detail::kInPath); }
[[nodiscard]] constexpr bool is_query_char(char c) noexcept { return detail::is_of(c, detail::kInQuery); }
[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

[[nodiscard]] constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Compares as names of fields and codings are compared: without the case of ASCII letters.
[[nodiscard]] constexpr bool same_text(std::string_view a, std::string_view b) noexcept {
  constexpr auto kLower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) { return kLower(x) == kLower(y); });
}

}  // namespace weft::net::http
