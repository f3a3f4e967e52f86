// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/bytes.h"

namespace weft::store {

// Numbers as 1 to 10 bytes: seven bits a byte, the lowest first; the highest bit is set if another byte follows.
inline void write_varint(std::vector<std::uint8_t>& to, std::uint64_t value) {
  while (value >= 0x80U) {
    to.push_back(static_cast<std::uint8_t>(value | 0x80U));
    value >>= 7U;
  }
  to.push_back(static_cast<std::uint8_t>(value));
}

// Takes a number from the front of `from`. Returns false if there is none, or it exceeds 64 bits.
[[nodiscard]] inline bool read_varint(Bytes& from, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const std::uint8_t byte = from[0];
    from = from.subspan(1);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) {
      return shift < 63 || byte <= 1;
    }
  }
  return false;
}

}  // namespace weft::store
