// SPDX-License-Identifier: MIT
#include "weft/base/text/json_string.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "weft/base/text/hex.h"
#include "weft/base/text/utf8.h"

namespace weft {

namespace {

constexpr std::array<bool, 256> plain_bytes() noexcept {
  std::array<bool, 256> plain{};
  for (unsigned c = ' '; c <= '~'; ++c) {
    plain[c] = c != '"' && c != '\\';
  }
  return plain;
}
constexpr std::array<bool, 256> kPlain = plain_bytes();  // bytes that stand for themselves

constexpr std::size_t kEscapeMax = 2 * kJsonEscapedSize;  // of a character beyond the first 65,536

char* put_code_unit(std::uint32_t unit, char* out) noexcept {
  *out++ = '\\';
  *out++ = 'u';
  return write_hex(unit, 4, out);
}

// Takes the bytes that stand for themselves off the text.
std::string_view take_plain(std::string_view& text) noexcept {
  const auto* const end =
      std::find_if_not(text.begin(), text.end(), [](char c) { return kPlain[static_cast<unsigned char>(c)]; });
  const std::string_view plain = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(plain.size());
  return plain;
}

// Writes the first character of the text, which does not stand for itself, and takes it off.
char* put_escaped(std::string_view& text, char* out) noexcept {
  constexpr std::string_view kShort = "\"\\\n\r\t";
  if (const std::size_t which = kShort.find(text[0]); which != std::string_view::npos) {
    text.remove_prefix(1);
    *out++ = '\\';
    *out++ = "\"\\nrt"[which];
    return out;
  }
  const std::size_t size = utf8_size(text);
  if (size == 0) {
    text.remove_prefix(1);
    return put_code_unit(0xFFFD, out);
  }
  const std::uint32_t code = utf8_decode(text.substr(0, size));
  text.remove_prefix(size);
  if (code < 0x10000) {
    return put_code_unit(code, out);
  }
  out = put_code_unit(0xD800 + ((code - 0x10000) >> 10), out);
  return put_code_unit(0xDC00 + ((code - 0x10000) & 0x3FF), out);
}

}  // namespace

char* write_json_string(std::string_view text, char* out) noexcept {
  *out++ = '"';
  while (!text.empty()) {
    const std::string_view plain = take_plain(text);
    std::memcpy(out, plain.data(), plain.size());
    out += plain.size();
    if (!text.empty()) {
      out = put_escaped(text, out);
    }
  }
  *out++ = '"';
  return out;
}

void append_json_string(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    out += take_plain(text);
    if (!text.empty()) {
      std::array<char, kEscapeMax> escaped;
      const char* const end = put_escaped(text, escaped.data());
      out.append(escaped.data(), static_cast<std::size_t>(end - escaped.data()));
    }
  }
  out += '"';
}

}  // namespace weft
