// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weft::serve::web {

// "%41" to "A". A '%' without two hexadecimal digits stays unchanged.
[[nodiscard]] std::string percent_decode(std::string_view text);
// The same of application/x-www-form-urlencoded, where a '+' is a space.
[[nodiscard]] std::string form_decode(std::string_view text);

// A pair of a query or a form, still encoded. Views.
struct FormPair {
  std::string_view name;
  std::string_view value;
};

// Calls visit(const FormPair&) for each pair of "a=1&b=2", until visit returns true; then returns true. A part without
// '=' is a name without a value; empty parts are skipped.
template <typename Visit>
bool any_pair(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    if (!part.empty() && visit(FormPair{part.substr(0, equals), part.substr(std::min(equals + 1, part.size()))})) {
      return true;
    }
  }
  return false;
}

// The decoded value of the first pair of that decoded name. Cost: linear in the text.
[[nodiscard]] std::optional<std::string> find_pair(std::string_view text, std::string_view name);

}  // namespace weft::serve::web
