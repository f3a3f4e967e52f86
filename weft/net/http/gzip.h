// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weft::net::http {

// Returns false if this build has no zlib; then gzip() returns null.
[[nodiscard]] bool gzip_available() noexcept;

// The text as one member of gzip (RFC 1952). Null: it would not be smaller, or there is no memory. `level` 1 to 9.
// Cost: 256 KiB for the time of the call; about 10 ms for 1 MiB at level 1.
[[nodiscard]] std::optional<std::string> gzip(std::string_view text, int level);

// Whether a client with this Accept-Encoding takes gzip (RFC 9110 section 12.5.3). An empty field takes nothing.
[[nodiscard]] bool takes_gzip(std::string_view accept_encoding) noexcept;

}  // namespace weft::net::http
