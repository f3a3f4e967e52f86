// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft {

// Z85 (ZeroMQ RFC 32): 4 bytes as 5 printable characters that need no escaping in source code or a command
// line. CURVE keys are written in Z85: 32 bytes, 40 characters.
[[nodiscard]] constexpr std::size_t z85_encoded_size(std::size_t bytes) noexcept { return bytes / 4 * 5; }
[[nodiscard]] constexpr std::size_t z85_decoded_size(std::size_t characters) noexcept { return characters / 5 * 4; }

// Fills `to` from its start. Errors: buffer_too_small; invalid_argument (the size is not a multiple of 4, or of 5 in
// decoding, or the text is not Z85). After a failure the content of `to` is undefined. Source and target do not
// overlap.
[[nodiscard]] Result<void> z85_encode(Bytes from, std::span<char> to) noexcept;
[[nodiscard]] Result<void> z85_decode(std::string_view from, MutableBytes to) noexcept;

}  // namespace weft
