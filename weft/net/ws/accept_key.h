// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::net::ws {

inline constexpr std::size_t kKeySize = 24;  // characters of base64: 16 bytes

// SHA-1 (RFC 3174). WebSocket uses it as a mark that the server speaks WebSocket; it protects nothing.
[[nodiscard]] std::array<std::uint8_t, 20> sha1(std::string_view text);

// Whether `key` is the base64 form of 16 bytes.
[[nodiscard]] bool is_key(std::string_view key) noexcept;
// The value of Sec-WebSocket-Accept that proves that the server read `key` (RFC 6455 section 4.2.2).
[[nodiscard]] std::string accept_key(std::string_view key);

}  // namespace weft::net::ws
