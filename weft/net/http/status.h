// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weft::net::http {

// The phrase after a status of RFC 9110 and its relatives: "Not Found" for 404. Empty: none is known.
[[nodiscard]] std::string_view reason_phrase(unsigned status) noexcept;

}  // namespace weft::net::http
