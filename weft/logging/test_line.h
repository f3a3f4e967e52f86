// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/text/utf8.h"

// A strict reader of lines, for tests and fuzzers: logfmt of words or of strings with the escapes of JSON, and flat
// objects of JSON. Characters beyond ASCII are returned as the code units that the escapes name, one char16_t each.
namespace weft::logging::test {

using LineFields = std::map<std::string, std::u16string>;

// LineReader: one line, without its end.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  // Null if the line is not well formed.
  std::optional<LineFields> read_text() {
    LineFields fields;
    do {
      const std::string name = take_while([](char c) { return c != '=' && c != ' ' && c != '"'; });
      std::u16string value;
      if (name.empty() || !take('=') || !(at('"') ? take_string(value) : take_word(value)) ||
          !fields.emplace(name, value).second) {
        return std::nullopt;
      }
    } while (take(' '));
    return line_.empty() ? std::optional(fields) : std::nullopt;
  }

  std::optional<LineFields> read_json() {
    LineFields fields;
    if (!take('{')) {
      return std::nullopt;
    }
    do {
      std::u16string name;
      std::u16string value;
      if (!take_string(name) || !take(':') || !(at('"') ? take_string(value) : take_literal(value)) ||
          !fields.emplace(std::string(name.begin(), name.end()), value).second) {
        return std::nullopt;
      }
    } while (take(','));
    return take('}') && line_.empty() ? std::optional(fields) : std::nullopt;
  }

 private:
  [[nodiscard]] bool at(char c) const { return !line_.empty() && line_[0] == c; }
  bool take(char c) {
    const bool there = at(c);
    line_.remove_prefix(there ? 1 : 0);
    return there;
  }
  template <typename Is>
  std::string take_while(const Is& is) {
    std::size_t size = 0;
    while (size < line_.size() && line_[size] > ' ' && line_[size] <= '~' && is(line_[size])) {
      ++size;
    }
    const std::string taken(line_.substr(0, size));
    line_.remove_prefix(size);
    return taken;
  }
  bool take_word(std::u16string& into) {
    const std::string word = take_while([](char c) { return c != '"' && c != '=' && c != '\\'; });
    into.assign(word.begin(), word.end());
    return !word.empty();
  }
  bool take_literal(std::u16string& into) {  // a number, true or false
    const std::string word = take_while([](char c) { return c != ',' && c != '}'; });
    into.assign(word.begin(), word.end());
    if (word == "true" || word == "false") {
      return true;
    }
    char* end = nullptr;
    (void)std::strtod(word.c_str(), &end);
    return !word.empty() && word.find_first_not_of("0123456789+-.e") == std::string::npos && *end == '\0';
  }
  bool take_string(std::u16string& into) {
    if (!take('"')) {
      return false;
    }
    while (!line_.empty() && !at('"')) {
      char c = line_[0];
      line_.remove_prefix(1);
      if (c < ' ' || c > '~') {
        return false;
      }
      if (c != '\\') {
        into += static_cast<char16_t>(c);
        continue;
      }
      c = line_.empty() ? '\0' : line_[0];
      line_.remove_prefix(line_.empty() ? 0 : 1);
      switch (c) {
        case '"':
        case '\\': into += static_cast<char16_t>(c); break;
        case 'n': into += u'\n'; break;
        case 'r': into += u'\r'; break;
        case 't': into += u'\t'; break;
        case 'u': {
          const std::string digits(line_.substr(0, 4));
          if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
            return false;
          }
          into += static_cast<char16_t>(std::strtoul(digits.c_str(), nullptr, 16));
          line_.remove_prefix(4);
          break;
        }
        default: return false;
      }
    }
    return take('"');
  }

  std::string_view line_;
};

// The code units of any bytes: of each character of UTF-8, and U+FFFD for each other byte.
inline std::u16string code_units(std::string_view text) {
  std::u16string units;
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const std::uint32_t code = size == 0 ? 0xFFFD : utf8_decode(text.substr(0, size));
    if (code >= 0x10000) {
      units += static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10));
      units += static_cast<char16_t>(0xDC00 + ((code - 0x10000) & 0x3FF));
    } else {
      units += static_cast<char16_t>(code);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return units;
}

// The lines of a text, without their ends. A line without an end is returned as "torn: …".
inline std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      lines.push_back("torn: " + std::string(text));
      break;
    }
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace weft::logging::test
