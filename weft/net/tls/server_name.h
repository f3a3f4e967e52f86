// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "weft/base/result.h"

namespace weft::net {

// The part of `name` by which a client verifies a server (RFC 9525): a host name without its final dot, in letters of
// ASCII, digits, '-', '_' and dots between them; or an IP address without its zone. The view is of `name`.
// invalid_argument: anything else. OpenSSL would stop at a zero byte, and take ".example" for all names below it.
[[nodiscard]] Result<std::string_view> parse_server_name(std::string_view name) noexcept;

// The same, as a rule for an option (weft/msg/message/options.h).
[[nodiscard]] bool is_server_name(std::string_view name) noexcept;

}  // namespace weft::net
