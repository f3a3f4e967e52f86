// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "weft/base/bytes.h"

namespace weft::net::ws {

// Utf8Scanner: whether bytes are UTF-8, for text that comes in pieces. A value of 4 bytes. Affinity: one thread.
// Cost: linear; eight bytes of ASCII take one comparison.
// Invariants: (1) The outcome depends on the bytes, never on how they were cut. (2) The piece with the byte at fault
// reports the fault.
class Utf8Scanner {
 public:
  // Returns false if the bytes so far begin no text. Nothing may follow.
  [[nodiscard]] bool take(Bytes bytes) noexcept {
    std::size_t i = 0;
    while (i < bytes.size()) {
      if (rest_ == 0) {
        i = skip_ascii(bytes, i);
        if (i == bytes.size()) {
          return true;
        }
        if (!begin(bytes[i++])) {
          return false;
        }
        continue;
      }
      const std::uint8_t byte = bytes[i++];
      if (byte < low_ || byte > high_) {
        return false;
      }
      low_ = 0x80;
      high_ = 0xBF;
      --rest_;
    }
    return true;
  }
  // Whether the text may end here: not inside a character.
  [[nodiscard]] bool complete() const noexcept { return rest_ == 0; }

 private:
  static std::size_t skip_ascii(Bytes bytes, std::size_t i) noexcept {
    constexpr std::uint64_t kHighBits = 0x8080808080808080u;
    for (std::uint64_t word = 0; i + sizeof word <= bytes.size(); i += sizeof word) {
      std::memcpy(&word, &bytes[i], sizeof word);
      if ((word & kHighBits) != 0) {
        break;
      }
    }
    while (i < bytes.size() && bytes[i] < 0x80) {
      ++i;
    }
    return i;
  }
  // The first byte of a character that is not ASCII. The second one has the bounds of RFC 3629 section 4.
  bool begin(std::uint8_t first) noexcept {
    if (first < 0xC2 || first > 0xF4) {
      return false;
    }
    rest_ = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    low_ = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    high_ = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    return true;
  }

  std::uint8_t rest_ = 0;  // bytes that the character lacks
  std::uint8_t low_ = 0x80;
  std::uint8_t high_ = 0xBF;
};

}  // namespace weft::net::ws
