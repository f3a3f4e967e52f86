// SPDX-License-Identifier: MIT
#include "weft/base/text/base64.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft {

namespace {

constexpr std::uint8_t kNoDigit = 64;

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t i = 0; i < kBase64Digits.size(); ++i) {
    values[static_cast<unsigned char>(kBase64Digits[i])] = static_cast<std::uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    const std::size_t used = std::min<std::size_t>(bytes.size() - at, 3) + 1;
    for (std::size_t i = 0; i < 4; ++i) {
      text += i < used ? kBase64Digits[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

bool decode_base64(std::string_view text, std::string& out) {
  if (text.size() % 4 != 0) {
    return false;
  }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::size_t before = out.size();
  out.reserve(before + text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const std::size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 4; ++j) {
      const std::uint8_t value = j < digits ? kValues[static_cast<unsigned char>(text[i + j])] : std::uint8_t{0};
      if (value == kNoDigit) {
        out.resize(before);
        return false;
      }
      group = group << 6 | value;
    }
    for (std::size_t j = 0; j + 1 < digits; ++j) {
      out += static_cast<char>(group >> (16 - 8 * j) & 0xFF);
    }
  }
  return true;
}

}  // namespace weft
