// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";
inline constexpr std::string_view kUpperHexDigits = "0123456789ABCDEF";

// The value of a hexadecimal digit in either case; -1: the character is not one.
[[nodiscard]] constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}
// The same for a format that has one case alone.
[[nodiscard]] constexpr int lower_hex_value(char c) noexcept { return c >= 'A' && c <= 'F' ? -1 : hex_value(c); }
[[nodiscard]] constexpr int upper_hex_value(char c) noexcept { return c >= 'a' && c <= 'f' ? -1 : hex_value(c); }

// Writes the last `count` digits of the number, with zeros before them. Returns their end.
constexpr char* write_hex(std::uint64_t number, std::size_t count, char* out,
                          std::string_view digits = kHexDigits) noexcept {
  for (std::size_t i = count; i-- > 0; number >>= 4U) {
    out[i] = digits[number & 15U];
  }
  return out + count;
}

// Appends the two digits of each byte.
inline void append_hex_bytes(std::string_view bytes, std::string& out, std::string_view digits = kHexDigits) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
}

}  // namespace weft
