// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "weft/base/text/hex.h"
#include "weft/net/http/chars.h"

namespace weft::net::http {

// Whether the text has only characters of `is_one`, and "%XX".
template <typename IsOne>
[[nodiscard]] constexpr bool is_encoded(std::string_view text, IsOne is_one) noexcept {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (text.size() - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0) {
        return false;
      }
      i += 2;
    } else if (!is_one(text[i])) {
      return false;
    }
  }
  return true;
}

// "host", "host:port" or "[v6]:port". The host and the port may be empty.
[[nodiscard]] constexpr bool is_host(std::string_view text) noexcept {
  std::size_t end = 0;
  if (text.starts_with('[')) {
    end = std::min(text.find(']'), text.size());
    const std::string_view inside = text.substr(1, end - 1);
    if (end == text.size() || inside.empty() ||
        !std::all_of(inside.begin(), inside.end(), [](char c) { return hex_value(c) >= 0 || c == ':' || c == '.'; })) {
      return false;
    }
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
    if (!is_encoded(text.substr(0, end), [](char c) { return is_path_char(c) && c != '/' && c != '@' && c != ':'; })) {
      return false;
    }
  }
  std::string_view port = text.substr(end);
  if (port.empty()) {
    return true;
  }
  port.remove_prefix(1);
  return text[end] == ':' && port.size() <= 5 && std::all_of(port.begin(), port.end(), is_digit);
}

}  // namespace weft::net::http
