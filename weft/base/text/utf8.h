// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft {

// The size in bytes of the first character of `text`. `text` is not empty. 0: the bytes are not UTF-8.
[[nodiscard]] constexpr std::size_t utf8_size(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  const std::size_t size = first < 0x80   ? 1
                           : first < 0xC2 ? 0
                           : first < 0xE0 ? 2
                           : first < 0xF0 ? 3
                           : first < 0xF5 ? 4
                                          : 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) {
      return 0;
    }
  }
  const bool too_long = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool no_character = (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) >= 0x90);
  return too_long || no_character ? 0 : size;
}

// The beginning of `text` of at most `most` bytes that ends with a whole character. Within bytes that are not UTF-8 it
// ends anywhere.
[[nodiscard]] constexpr std::string_view utf8_prefix(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) {
    return text;
  }
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U; };
  std::size_t end = most;
  while (end > 0 && most - end < 4 && continues(end)) {
    --end;
  }
  return text.substr(0, continues(end) ? most : end);
}

// Whether all of `text` is.
[[nodiscard]] constexpr bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    if (size == 0) {
      return false;
    }
    text.remove_prefix(size);
  }
  return true;
}

// The code point of `text`, which is exactly one character: utf8_size(text) == text.size().
[[nodiscard]] constexpr std::uint32_t utf8_decode(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  std::uint32_t code = text.size() == 1 ? first : first & (0x7FU >> text.size());
  for (const char c : text.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return code;
}

}  // namespace weft
