// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

namespace weft {

// Base64 (RFC 4648 section 4), with padding.
inline constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

[[nodiscard]] std::string encode_base64(std::string_view bytes);
// Appends the bytes. Returns false if the text has another form or length; then `out` is unchanged. The unused bits of
// the last digit may have any value.
[[nodiscard]] bool decode_base64(std::string_view text, std::string& out);

}  // namespace weft
