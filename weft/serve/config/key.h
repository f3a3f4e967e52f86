// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/serve/config/toml_file.h"
#include "weft/serve/config/value.h"

namespace weft::serve::config {

enum class Kind : std::uint8_t { flag, integer, real, duration, size, rate, text, word, texts };
[[nodiscard]] std::string_view describe(Kind kind) noexcept;  // "duration"

// Change: when a key may change. reload() refuses another value of a key that changes at the start.
enum class Change : std::uint8_t { at_start, at_run_time };

// Key: a name that a configuration may set, and the bounds of its values.
struct Key {
  std::string name;  // "server.cores"; in [[listener]] "limits.idle_timeout", in [app] as the program named it
  Kind kind = Kind::text;
  std::string doc{};
  Change change = Change::at_start;
  // The bounds of an integer, of nanoseconds, of bytes, of tokens a second, of the bytes of a text, of the texts of a
  // list.
  std::int64_t least = 0;
  std::int64_t most = 0;
  double least_real = 0;  // of a real
  double most_real = 0;
  bool takes_none = false;           // a duration may be "none"
  std::vector<std::string> words{};  // the values of a word

  [[nodiscard]] std::string bounds() const;  // "1 to 512", "1 KiB to 1 MiB", "automatic, never, always"
};

inline constexpr std::int64_t kTextMax = 4096;   // bytes of a text
inline constexpr std::int64_t kTextsMax = 4096;  // texts of a list

// Reads the value of a file's node, or of a text (of an environment variable, where commas separate the texts of a
// list). Returns false, and the reason, if it is not a value of the key or not in its bounds.
[[nodiscard]] bool read_value(const Key& key, const TomlNode& node, Value& into, std::string& why);
[[nodiscard]] bool read_value(const Key& key, std::string_view text, Value& into, std::string& why);
// The bounds alone.
[[nodiscard]] bool check_bounds(const Key& key, const Value& value, std::string& why);

}  // namespace weft::serve::config
