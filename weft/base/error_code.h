// SPDX-License-Identifier: MIT
#pragma once

#include <system_error>
#include <type_traits>

#include "weft/base/error.h"

// Converts Error to and from std::error_code, for code that uses the standard library's errors. This is a
// separate header because <system_error> is expensive to include.
template <>
struct std::is_error_code_enum<weft::Errc> : std::true_type {};

namespace weft {

// The category "weft". Its values are domain * 65536 + value of the Error; in Weft's own domain that is the
// Errc itself. A code compares equal to the std::errc of the same meaning (`std::error_code(Errc::timed_out)
// == std::errc::timed_out`). Immutable, any thread.
[[nodiscard]] const std::error_category& error_category() noexcept;

[[nodiscard]] std::error_code make_error_code(Errc code) noexcept;

// Keeps the domain and the value, loses the text. Errc::system with an errno carries only that number, so it becomes
// the number in std::system_category(). Any other errno is lost, too.
[[nodiscard]] std::error_code to_error_code(const Error& error) noexcept;

// An errno (system or generic category) becomes the Error that Weft's own calls make of it. A code of another category
// becomes an Error in the domain of that category's name, with the name as its text. A value outside 16 bits becomes
// 0xFFFF there.
[[nodiscard]] Error from_error_code(const std::error_code& code) noexcept;

}  // namespace weft
