// SPDX-License-Identifier: MIT
#include "weft/msg/message/own_properties.h"

#include <algorithm>

namespace weft::msg {

namespace {

constexpr std::size_t kNameMax = 255;

// Takes the first property off the front of `text`.
std::string_view take_first(std::string_view& text) noexcept {
  const std::size_t end = std::min(text.find('\0'), text.size());
  const std::string_view first = text.substr(0, end);
  text.remove_prefix(end < text.size() ? end + 1 : end);
  return first;
}

bool is_property(std::string_view property) noexcept {
  const std::size_t colon = property.find(':');
  return property.starts_with("X-") && colon != std::string_view::npos && colon <= kNameMax &&
         colon + 1 < property.size();
}

}  // namespace

bool are_properties(std::string_view text) noexcept {
  if (text.ends_with('\0')) {
    return false;
  }
  std::size_t count = 0;
  while (!text.empty()) {
    if (!is_property(take_first(text)) || ++count > kOwnPropertiesMax) {
      return false;
    }
  }
  return true;
}

zmtp::Metadata split_properties(std::string_view text) {
  zmtp::Metadata properties;
  while (!text.empty()) {
    const std::string_view property = take_first(text);
    const std::size_t colon = property.find(':');
    const std::string_view name = property.substr(0, colon);
    const bool known =
        std::any_of(properties.begin(), properties.end(), [&](const auto& earlier) { return earlier.first == name; });
    if (!known) {
      properties.emplace_back(name, property.substr(colon + 1));
    }
  }
  return properties;
}

}  // namespace weft::msg
