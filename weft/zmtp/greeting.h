// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/zmtp/frame.h"

namespace weft::zmtp {

inline constexpr std::size_t kGreetingSize = 64;
inline constexpr std::size_t kMechanismNameMax = 20;

// The 64 bytes that open a ZMTP 3 connection (RFC 23 "greeting"): FF, 8 bytes of padding, 7F, major, minor, mechanism
// name padded with zeros to 20, as-server, 31 bytes of filler. A value.
struct Greeting {
  std::uint8_t major = 3;
  std::uint8_t minor = 1;
  std::array<char, kMechanismNameMax> mechanism_field{};
  bool as_server = false;

  [[nodiscard]] std::string_view mechanism() const noexcept;  // up to the first zero byte
  void set_mechanism(std::string_view name) noexcept;         // at most kMechanismNameMax characters
};

struct GreetingResult {
  ParseStatus status = ParseStatus::need_more;
  Greeting greeting;         // complete
  const char* problem = "";  // malformed: static text that says what the peer seems to be
};

// Reads a greeting at the front of `input`. Reports a peer that is no ZMTP 3 peer from the first byte that shows it;
// the result for a stream of bytes does not depend on how it is cut. Padding, filler and as-server are not validated:
// real peers differ there.
[[nodiscard]] GreetingResult parse_greeting(Bytes input) noexcept;

void write_greeting(std::uint8_t* to, const Greeting& greeting) noexcept;  // kGreetingSize bytes

}  // namespace weft::zmtp
