// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/serve/config/problem.h"

// The only part that needs toml++. A build without it reads no file.
namespace weft::serve::config {

inline constexpr std::size_t kFileMax = std::size_t{1} << 20;  // bytes
inline constexpr unsigned kNestingMax = 16;  // tables and lists in each other, and the parts of a dotted key

// TomlNode: a value of a file, with its place. A table has its members in `items`, by name.
struct TomlNode {
  enum class Kind : std::uint8_t { flag, integer, real, text, list, table, date };

  Kind kind = Kind::table;
  Position at{};       // of the name, for a member of a table; otherwise of the value
  std::string name{};  // in its table
  std::variant<bool, std::int64_t, double, std::string> scalar{};
  std::vector<TomlNode> items{};  // of a list or a table
};
// "a text", "a table", "true or false" ...
[[nodiscard]] std::string_view describe(TomlNode::Kind kind) noexcept;

[[nodiscard]] bool toml_available() noexcept;

// Parses TOML 1.0, and returns its root table. Returns null after a text that does not parse; the problem has the
// place, without a source. A text above kFileMax or nested deeper than kNestingMax is refused before it is parsed. The
// parser ends at the first fault of the syntax, because the meaning of the text after it is unknown. Throws
// std::bad_alloc. Cost: about 200 bytes of memory for each value.
[[nodiscard]] std::optional<TomlNode> parse_toml(std::string_view text, Problem& problem);

struct Refused {
  Position at;
  const char* why;  // static storage
};
// The first place that parse_toml() refuses without the parser: one that is nested deeper than kNestingMax. Cost: one
// pass over the text.
[[nodiscard]] std::optional<Refused> find_refused(std::string_view text) noexcept;

}  // namespace weft::serve::config
