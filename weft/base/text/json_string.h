// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

inline constexpr std::size_t kJsonEscapedSize = 6;  // bytes that one byte of a text takes at most

// Writes the text as a string of JSON, in quotes. Printable ASCII stands for itself; `"`, `\`, the ends of lines and
// the tab have a backslash; each other character is \uXXXX. Bytes that are not UTF-8 become U+FFFD. A value of logfmt
// has the same form. Returns the end: at most 2 + kJsonEscapedSize * text.size() bytes. Never allocates.
char* write_json_string(std::string_view text, char* out) noexcept;

// Appends the same.
void append_json_string(std::string_view text, std::string& out);

}  // namespace weft
