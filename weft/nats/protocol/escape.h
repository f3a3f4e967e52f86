// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "weft/base/text/hex.h"

namespace weft::nats {

// Bytes that a name of NATS cannot have: "=XX", their value in upper-case hexadecimal digits.
inline constexpr char kEscape = '=';
inline constexpr std::size_t kEscapeSize = 3;

inline void append_escape(char c, std::string& out) {
  out += kEscape;
  append_hex_bytes({&c, 1}, out, kUpperHexDigits);
}
// The byte of the escape at this place; -1: there is none.
[[nodiscard]] constexpr int escaped_byte(std::string_view text, std::size_t at) noexcept {
  if (text[at] != kEscape || text.size() - at < kEscapeSize) {
    return -1;
  }
  const int high = upper_hex_value(text[at + 1]);
  const int low = upper_hex_value(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace weft::nats
