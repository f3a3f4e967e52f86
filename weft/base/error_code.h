// SPDX-License-Identifier: MIT
#pragma once

#include <system_error>
#include <type_traits>

#include "weft/base/error.h"

// Error beside std::error_code, for code that speaks the standard library's errors. A header of its own: <system_error>
// is not for everybody.
template <>
struct std::is_error_code_enum<weft::Errc> : std::true_type {};

namespace weft {

// "weft": its values are Error's domain * 65536 + value, so those of Errc by themselves. A code compares equal to the
// std::errc that says the same (`std::error_code(Errc::timed_out) == std::errc::timed_out`). Immutable, any thread.
[[nodiscard]] const std::error_category& error_category() noexcept;

[[nodiscard]] std::error_code make_error_code(Errc code) noexcept;

// The domain and the value remain, the text does not. Of Errc::system with an errno, which says no more than that
// number, comes the number in std::system_category(); any other errno is lost too.
[[nodiscard]] std::error_code to_error_code(const Error& error) noexcept;

// An errno (system or generic category) becomes the Error that Weft's own calls make of it. A code of another category
// becomes an Error of the domain of that category's name, with the name as its text; a value that is not one of 16 bits
// is 0xFFFF there.
[[nodiscard]] Error from_error_code(const std::error_code& code) noexcept;

}  // namespace weft
