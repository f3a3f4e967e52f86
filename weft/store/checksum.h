// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/bytes.h"

namespace weft::store {

// CRC-32C (Castagnoli) of `bytes`, the one of iSCSI and ext4. Finds every flip of up to 5 bits in a block of 256 KB,
// and misses one of 2^32 other changes. Any thread. About a nanosecond a byte; an eighth of it with SSE 4.2. `before`
// is the result for the bytes that come before these.
[[nodiscard]] std::uint32_t crc32c(Bytes bytes, std::uint32_t before = 0) noexcept;
// The same on any processor.
[[nodiscard]] std::uint32_t crc32c_by_tables(Bytes bytes, std::uint32_t before = 0) noexcept;

}  // namespace weft::store
