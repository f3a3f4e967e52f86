// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "weft/base/version.h"

namespace weft {

using Bytes = std::span<const std::uint8_t>;   // bytes to read
using MutableBytes = std::span<std::uint8_t>;  // bytes to fill

[[nodiscard]] inline Bytes as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

[[nodiscard]] inline std::string_view as_text(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The result of reading a header from the front of some bytes. need_more: it is not whole, and so far not malformed.
enum class ParseStatus : std::uint8_t { complete, need_more, malformed };

// memcpy that allows a null source or target for 0 bytes.
inline void copy_bytes(std::uint8_t* target, Bytes source) noexcept {
  if (!source.empty()) {
    std::memcpy(target, source.data(), source.size());
  }
}

}  // namespace weft
