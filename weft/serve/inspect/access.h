// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/net/stream/endpoint.h"

namespace weft::serve {

// The rules for peers of the admin port. Affinity: any thread.

inline constexpr std::size_t kAdminTokenMin = 16;  // characters; 32 of a random generator are good ones
inline constexpr std::size_t kAdminTokenMax = 256;

// Whether other machines reach the endpoint. False for ipc, and for the addresses of this machine alone.
[[nodiscard]] bool reached_from_afar(const net::Endpoint& endpoint);

inline constexpr std::size_t kAdminHostsMax = 64;       // names
inline constexpr std::size_t kAdminHostBytesMax = 253;  // of a name

// Errors: invalid_argument (too many names, or one that is not a host without a port: "admin.internal", "10.0.0.7",
// "[fd00::7]").
[[nodiscard]] Result<void> check_admin_hosts(const std::vector<std::string>& hosts);

// Whether a request with this host is for the admin port: "127.0.0.1", "[::1]" and all other addresses of this machine
// alone, "localhost", or one of `hosts`, in any case and with any port. A page of a browser that lets its own name
// resolve to 127.0.0.1 has that name as its host. An empty host is for the port: browsers always send one, and old
// probes do not.
[[nodiscard]] bool is_admin_host(std::string_view host, const std::vector<std::string>& hosts) noexcept;

// Errors: invalid_argument (its length is not within the bounds; it has other characters than letters, digits, and
// "-._~+/=", which a bearer token has, RFC 6750 section 2.1).
[[nodiscard]] Result<void> check_admin_token(std::string_view token);

// Whether the field Authorization is "Bearer <token>". The time does not depend on the place of the first wrong
// character. `token` is not empty.
[[nodiscard]] bool bears_token(std::string_view authorization, std::string_view token) noexcept;

}  // namespace weft::serve
