// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/net/http/refusal.h"

namespace weft::net::http {

// Bounds of a head.
struct HeadLimits {
  std::uint32_t head_max = 16 * 1024;   // bytes, to the end of its empty line
  std::uint32_t target_max = 8 * 1024;  // bytes of the target
  std::uint32_t fields_max = 100;       // at most 65,534
};

inline constexpr std::size_t kMethodMax = 32;  // bytes of a method

// HeadScanner: finds the empty line that ends a head. A value of 16 bytes. Affinity: one thread at a time.
// Cost: the scanner reads each byte once, however the input is cut.
// Invariants:
//   (1) Lines end with CRLF. A CR or LF alone, a control character, or a line that begins with a space is refused at
//       that byte. So is a byte that begins a line and is not a character of a name.
//   (2) One empty line before the first line is skipped (RFC 9112 section 2.2).
class HeadScanner {
 public:
  enum class Found : std::uint8_t {
    nothing,  // more bytes are needed
    head,     // begin() and size() say where it is
    refusal,  // size() is the number of bytes to the one at fault
  };

  // `input` begins where the first call's did, and has at least the bytes of the last one.
  [[nodiscard]] Found scan(Bytes input, const HeadLimits& limits) noexcept;

  [[nodiscard]] std::size_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::size_t size() const noexcept { return scanned_; }  // from the input's first byte
  [[nodiscard]] HttpRefusal refusal() const noexcept { return refusal_; }

 private:
  [[nodiscard]] Found refuse(HttpRefusal why) noexcept {
    refusal_ = why;
    return Found::refusal;
  }
  [[nodiscard]] HttpRefusal handle_plain(std::uint8_t c, const HeadLimits& limits) const noexcept;

  std::uint32_t scanned_ = 0;
  std::uint32_t line_ = 0;  // where the present line begins
  std::uint32_t begin_ = 0;
  std::uint16_t lines_ = 0;  // that have ended, and are not empty
  HttpRefusal refusal_ = HttpRefusal::none;
  bool behind_cr_ = false;
};

}  // namespace weft::net::http
