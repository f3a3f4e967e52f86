// SPDX-License-Identifier: MIT
#include "weft/logging/level.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace weft::logging {

namespace {

constexpr std::size_t kComponentMax = 64;  // bytes of a name
constexpr std::array<std::string_view, 6> kLevels{"trace", "debug", "info", "warning", "error", "off"};

}  // namespace

std::string_view describe(Level level) noexcept {
  const auto at = static_cast<std::size_t>(level);
  return at < kLevels.size() ? kLevels[at] : "unknown";
}

std::optional<Level> parse_level(std::string_view text) noexcept {
  const auto* const at = std::find(kLevels.begin(), kLevels.end(), text);
  return at == kLevels.end() ? std::nullopt : std::optional(static_cast<Level>(at - kLevels.begin()));
}

std::optional<LevelRule> parse_level_rule(std::string_view text) noexcept {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || !is_component(text.substr(0, equals))) {
    return std::nullopt;
  }
  const auto level = parse_level(text.substr(equals + 1));
  return level ? std::optional(LevelRule{text.substr(0, equals), *level}) : std::nullopt;
}

bool is_component(std::string_view name) noexcept {
  bool inside = false;  // a part has begun
  for (const char c : name) {
    if (c != '.' && c != '_' && c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9')) {
      return false;
    }
    if (c == '.' && !inside) {
      return false;
    }
    inside = c != '.';
  }
  return inside && name.size() <= kComponentMax;
}

}  // namespace weft::logging
