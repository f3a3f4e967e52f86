// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "weft/net/http/chars.h"

namespace weft::net::http {

// A field of a head: "name: value", without the spaces around the value. Views.
struct Field {
  std::string_view name;
  std::string_view value;
};

[[nodiscard]] constexpr std::string_view without_spaces_around(std::string_view text) noexcept {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

[[nodiscard]] constexpr bool is_field_value(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), is_value_char) && text == without_spaces_around(text);
}

// Takes the first line off `lines`, without its CRLF. `lines` has a CRLF after each line.
[[nodiscard]] constexpr std::string_view take_line(std::string_view& lines) noexcept {
  const std::size_t end = std::min(lines.find("\r\n"), lines.size());
  const std::string_view line = lines.substr(0, end);
  lines.remove_prefix(std::min(end + 2, lines.size()));
  return line;
}

// Splits a line. The name is empty if the line is not a field. A space before the colon makes the name empty.
[[nodiscard]] constexpr Field field_of(std::string_view line) noexcept {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
    return {};
  }
  return {line.substr(0, colon), without_spaces_around(line.substr(colon + 1))};
}

// Calls visit(const Field&) for each field of `lines`, until it returns true: then returns true.
template <typename Visit>
constexpr bool any_field(std::string_view lines, Visit&& visit) {
  while (!lines.empty()) {
    const Field field = field_of(take_line(lines));
    if (!field.name.empty() && visit(field)) {
      return true;
    }
  }
  return false;
}

// Returns true if each line is a field.
[[nodiscard]] constexpr bool are_fields(std::string_view lines) noexcept {
  while (!lines.empty()) {
    if (field_of(take_line(lines)).name.empty()) {
      return false;
    }
  }
  return true;
}

// The value of the first field of that name. Cost: linear in the lines.
[[nodiscard]] constexpr std::optional<std::string_view> find_field(std::string_view lines,
                                                                   std::string_view name) noexcept {
  std::optional<std::string_view> found;
  any_field(lines, [&](const Field& field) {
    if (same_text(field.name, name)) {
      found = field.value;
    }
    return found.has_value();
  });
  return found;
}

// Calls visit(element) with each element that is not empty of a value's list "a, b", until it returns true.
template <typename Visit>
constexpr bool any_element(std::string_view list, Visit&& visit) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view element = without_spaces_around(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (!element.empty() && visit(element)) {
      return true;
    }
  }
  return false;
}

}  // namespace weft::net::http
