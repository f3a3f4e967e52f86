// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "weft/base/text/json_string.h"
#include "weft/logging/field.h"
#include "weft/logging/level.h"

// The bytes of a line.
namespace weft::logging {

// Format: how a line is written.
//   text: time=2026-11-22T05:28:21.123456Z level=info component=shop event="order placed" order=7
//   json: {"time":"2026-11-22T05:28:21.123456Z","level":"info","component":"shop","event":"order placed","order":7}
// A value of `text` (logfmt) that is not a plain word is quoted, with the escapes of JSON. In both formats characters
// other than printable ASCII are escaped and bytes that are not UTF-8 become U+FFFD. So no value can forge a line or a
// field, or send a terminal a command.
enum class Format : std::uint8_t { text, json };

inline constexpr std::size_t kTextMax = 1024;       // bytes of a value; a longer one is cut
inline constexpr std::size_t kLineMax = 32 * 1024;  // bytes of a line; fields that may not fit are left out
inline constexpr std::size_t kNameMax = 64;         // bytes of the name of a field; a longer one is cut
inline constexpr std::size_t kQuotedMax = 2 + kTextMax * kJsonEscapedSize;  // bytes of a value

// LineParts: the contents of a line, as views.
struct LineParts {
  std::int64_t time_ns = 0;  // since 1970, in UTC
  Level level = Level::info;
  std::string_view component{};  // a component's name (is_component)
  std::string_view event{};
  std::span<const Field> fields{};
};

// TimeText: the text of a time, whose seconds are made once for all lines of a second.
// Owner: a value. Affinity: one thread at a time.
class TimeText {
 public:
  static constexpr std::size_t kSize = 27;  // 2026-11-22T05:28:21.123456Z

  // Writes kSize bytes and returns their end. A time outside of the years 0 to 9999 is written as the nearest one.
  char* write(std::int64_t time_ns, char* out) noexcept;

 private:
  std::int64_t second_ = std::numeric_limits<std::int64_t>::min();  // none yet
  std::array<char, 20> begin_{};
};

// Writes the value in quotes with its escapes, as JSON and as logfmt have it; at most kQuotedMax bytes. Returns their
// end.
char* write_quoted(std::string_view value, char* out) noexcept;
// Writes the value as logfmt has it: without quotes if it is a plain word.
char* write_word(std::string_view value, char* out) noexcept;

// Counts the first fields that fit into a line of kLineMax bytes, whatever has to be escaped. `bound` becomes the most
// bytes of the line with these fields.
[[nodiscard]] std::size_t count_fitting(const LineParts& parts, std::size_t& bound) noexcept;
// Writes the line with its end ('\n', the only one), and returns the end. There is room for the bound of the fields.
// `with_priority`: "<4>" stands before it, which systemd takes off: the line's priority in the journal.
char* write_line(const LineParts& parts, Format format, bool with_priority, TimeText& time, char* out) noexcept;

}  // namespace weft::logging
