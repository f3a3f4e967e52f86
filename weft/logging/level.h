// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weft::logging {

// Level: how much a line matters. A component writes the lines of its own level and above.
enum class Level : std::uint8_t {
  trace,    // each step
  debug,    // for the search of a fault
  info,     // the regular course
  warning,  // caused by a peer, or by a bound
  error,    // caused by this program or its machine
  off,      // of a component: no line
};

[[nodiscard]] std::string_view describe(Level level) noexcept;  // "info"
[[nodiscard]] std::optional<Level> parse_level(std::string_view text) noexcept;

// LevelRule: the level of a component and of those below it: "serve" is also about "serve.session".
struct LevelRule {
  std::string_view component;
  Level level = Level::info;
};
// "serve=debug". Returns nullopt if the text is not one: a name of a component, '=', a level.
[[nodiscard]] std::optional<LevelRule> parse_level_rule(std::string_view text) noexcept;

// Whether a component may have the name: parts of small letters, digits, '_' and '-', with points between them; at most
// 64 bytes.
[[nodiscard]] bool is_component(std::string_view name) noexcept;

}  // namespace weft::logging
