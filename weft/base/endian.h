// SPDX-License-Identifier: MIT
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace weft {

// Network byte order loads and stores at any alignment.
template <typename T>
[[nodiscard]] inline T load_big_endian(const std::uint8_t* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  if constexpr (std::endian::native == std::endian::little) {
    if constexpr (sizeof(T) == 2) {
      value = static_cast<T>(__builtin_bswap16(value));
    } else if constexpr (sizeof(T) == 4) {
      value = static_cast<T>(__builtin_bswap32(value));
    } else if constexpr (sizeof(T) == 8) {
      value = static_cast<T>(__builtin_bswap64(value));
    }
  }
  return value;
}

template <typename T>
inline void store_big_endian(std::uint8_t* to, T value) noexcept {
  T swapped = load_big_endian<T>(reinterpret_cast<const std::uint8_t*>(&value));
  std::memcpy(to, &swapped, sizeof swapped);
}

// The same for 24 bits, which no integer type has. Requires: value < 2^24.
[[nodiscard]] inline std::uint32_t load_big_endian_24(const std::uint8_t* from) noexcept {
  return std::uint32_t{from[0]} << 16U | load_big_endian<std::uint16_t>(from + 1);
}
inline void store_big_endian_24(std::uint8_t* to, std::uint32_t value) noexcept {
  to[0] = static_cast<std::uint8_t>(value >> 16U);
  store_big_endian(to + 1, static_cast<std::uint16_t>(value));
}

}  // namespace weft
