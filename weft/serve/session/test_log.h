// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>

// A strict reader of one line of logfmt, for tests and fuzzers: words, or strings with the escapes of JSON.
// Characters beyond ASCII are returned as the code units that the escapes name, one char16_t each.
namespace weft::serve::test {

using LogLine = std::map<std::string, std::u16string>;

// Returns null if the line is not well formed. `line` comes without its end.
inline std::optional<LogLine> read_log_line(std::string_view line) {
  LogLine fields;
  const auto take = [&line](char c) {
    const bool there = !line.empty() && line[0] == c;
    line.remove_prefix(there ? 1 : 0);
    return there;
  };
  do {
    const std::size_t key_size = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    const std::string key(line.substr(0, key_size));
    line.remove_prefix(key.size());
    std::u16string value;
    if (key.empty() || !take('=')) {
      return std::nullopt;
    }
    const bool quoted = take('"');
    while (!line.empty() && line[0] != (quoted ? '"' : ' ')) {
      char c = line[0];
      if (c < ' ' || c > '~' || (!quoted && (c == '"' || c == '=' || c == '\\'))) {
        return std::nullopt;
      }
      line.remove_prefix(1);
      if (c != '\\') {
        value += static_cast<char16_t>(c);
        continue;
      }
      c = line.empty() ? '\0' : line[0];
      line.remove_prefix(line.empty() ? 0 : 1);
      switch (c) {
        case '"':
        case '\\': value += static_cast<char16_t>(c); break;
        case 'n': value += u'\n'; break;
        case 'r': value += u'\r'; break;
        case 't': value += u'\t'; break;
        case 'u': {
          const std::string digits(line.substr(0, 4));
          if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
            return std::nullopt;
          }
          value += static_cast<char16_t>(std::strtoul(digits.c_str(), nullptr, 16));
          line.remove_prefix(4);
          break;
        }
        default: return std::nullopt;
      }
    }
    if ((quoted && !take('"')) || (!quoted && value.empty()) || !fields.emplace(key, value).second) {
      return std::nullopt;
    }
  } while (take(' '));
  return line.empty() ? std::optional(fields) : std::nullopt;
}

}  // namespace weft::serve::test
