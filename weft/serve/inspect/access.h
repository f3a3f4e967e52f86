// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string_view>

#include "weft/base/result.h"
#include "weft/net/endpoint.h"

namespace weft::serve {

// The rules for peers of the admin port. Affinity: any thread.

inline constexpr std::size_t kAdminTokenMin = 16;  // characters; 32 of a random generator are good ones
inline constexpr std::size_t kAdminTokenMax = 256;

// Whether other machines reach the endpoint. False for ipc, and for the addresses of this machine alone.
[[nodiscard]] bool reached_from_afar(const net::Endpoint& endpoint);

// Errors: invalid_argument (its length is not within the bounds; it has other characters than letters, digits, and
// "-._~+/=", which a bearer token has, RFC 6750 section 2.1).
[[nodiscard]] Result<void> check_admin_token(std::string_view token);

// Whether the field Authorization is "Bearer <token>". The time does not depend on the place of the first wrong
// character. `token` is not empty.
[[nodiscard]] bool bears_token(std::string_view authorization, std::string_view token) noexcept;

}  // namespace weft::serve
