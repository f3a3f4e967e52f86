// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/zmtp/frame.h"

namespace weft::zmtp {

inline constexpr std::size_t kGreetingSize = 64;
inline constexpr std::size_t kMechanismNameMax = 20;
inline constexpr std::size_t kIdentityMax = 255;

// The ends of the parts of a greeting that an older peer understands.
inline constexpr std::size_t kSignatureSize = 10;               // every version understands it
inline constexpr std::size_t kMajorEnd = kSignatureSize + 1;    // ZMTP 2.0 and later
inline constexpr std::size_t kOldGreetingSize = kMajorEnd + 1;  // signature, revision, socket type: all of ZMTP 2.0's

// The 64 bytes that open a ZMTP 3 connection (RFC 23 "greeting"): FF, 8 bytes of padding, 7F, major, minor,
// mechanism name padded with zeros to 20, as-server, 31 bytes of filler. A value.
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
  Greeting greeting;        // if complete
  StaticText problem = "";  // if malformed: static text that names the peer's likely protocol
};

// Reads a greeting at the front of `input`. Reports a peer that does not speak ZMTP 3 from the first byte
// that shows it. The result for a stream of bytes does not depend on the cuts. Padding, filler and as-server
// are not validated, since real peers differ there.
[[nodiscard]] GreetingResult parse_greeting(Bytes input) noexcept;

// Writes kGreetingSize bytes. A ZMTP 1.0 peer reads the signature as the header of a frame that holds our
// identity of `identity_size` bytes. All other peers ignore the size in it.
void write_greeting(std::uint8_t* to, const Greeting& greeting, std::size_t identity_size = 0) noexcept;

enum class Version : std::uint8_t {
  unknown,    // too early to say
  foreign,    // not ZMTP
  v1,         // ZMTP 1.0: no greeting, the first bytes are the frame of the identity
  v1_signed,  // revision 0: a greeting like that of 2.0, then ZMTP 1.0
  v2,
  v3,  // and later versions
};
[[nodiscard]] constexpr bool is_old(Version version) noexcept {
  return version == Version::v1 || version == Version::v1_signed || version == Version::v2;
}

// The version that a peer speaks (RFC 23 "Backwards Interoperability"), from the first byte that shows it.
struct Recognition {
  Version version = Version::unknown;
  bool has_signature = false;  // 2.0 or later: the peer understands our major version
  StaticText problem = "";     // if foreign: static text that names the peer's likely protocol
};
[[nodiscard]] Recognition recognize_version(Bytes input) noexcept;

}  // namespace weft::zmtp
