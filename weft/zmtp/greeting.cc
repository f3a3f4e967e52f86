// SPDX-License-Identifier: MIT
#include "weft/zmtp/greeting.h"

#include <algorithm>

#include "weft/base/assert.h"
#include "weft/base/endian.h"

namespace weft::zmtp {
namespace {

constexpr std::size_t kSignatureEnd = 9;  // its last byte, 7F; bit 0 is 0 in the flags of a ZMTP 1.0 identity
constexpr std::size_t kMajor = kSignatureSize;
constexpr std::size_t kMinor = 11;
constexpr std::size_t kMechanism = 12;
constexpr std::size_t kAsServer = 32;

constexpr StaticText kOldPeer = "peer speaks ZMTP 2.0 or older";

// Names the protocol of a peer that is not ZMTP, from the first byte alone, so that cuts cannot change the
// answer.
StaticText describe_first_byte(std::uint8_t first) {
  if (first == 0x16) {
    return "not ZMTP: peer sent a TLS record";
  }
  return first >= 0x20 && first < 0x7F ? StaticText("not ZMTP: peer sent text, as HTTP or SSH do")
                                       : StaticText("not ZMTP: bad signature");
}

// RFC 13 lets receivers ignore the flags of an identity, but then HTTP would pass for ZMTP 1.0. Peers send 0;
// libzmq 2.1 and 2.2 send 7E.
bool is_identity_flags(std::uint8_t flags) { return flags == 0x00 || flags == 0x7E; }

Recognition foreign(StaticText problem) { return {Version::foreign, false, problem}; }

// Called after a first byte of FF.
Recognition recognize_signature(Bytes input) {
  if (input.size() <= kSignatureEnd) {
    return {};
  }
  const std::uint8_t last = input[kSignatureEnd];
  if ((last & 0x01) == 0) {
    const auto length = load_big_endian<std::uint64_t>(&input[1]);  // of flags and identity
    const bool identity = is_identity_flags(last) && length >= 1 && length <= kIdentityMax + 1;
    return identity ? Recognition{Version::v1, false, ""} : foreign("not ZMTP: bad signature");
  }
  Recognition seen{Version::unknown, true, ""};
  if (input.size() > kMajor) {
    const std::uint8_t major = input[kMajor];
    seen.version = major >= 3 ? Version::v3 : major == 0 ? Version::v1_signed : Version::v2;
  }
  return seen;
}

}  // namespace

std::string_view Greeting::mechanism() const noexcept {
  const auto end = std::find(mechanism_field.begin(), mechanism_field.end(), '\0');
  return {mechanism_field.data(), static_cast<std::size_t>(end - mechanism_field.begin())};
}

void Greeting::set_mechanism(std::string_view name) noexcept {
  WEFT_ASSERT(name.size() <= kMechanismNameMax);
  mechanism_field.fill('\0');
  std::copy(name.begin(), name.end(), mechanism_field.begin());
}

Recognition recognize_version(Bytes input) noexcept {
  if (input.empty()) {
    return {};
  }
  const std::uint8_t first = input[0];
  if (first == 0xFF) {
    return recognize_signature(input);
  }
  if (first == 0) {
    return foreign(describe_first_byte(first));
  }
  if (input.size() < kFrameHeaderSizeMin) {
    return {};
  }
  return is_identity_flags(input[1]) ? Recognition{Version::v1, false, ""} : foreign(describe_first_byte(first));
}

GreetingResult parse_greeting(Bytes input) noexcept {
  GreetingResult result;
  const Recognition seen = recognize_version(input);
  if (seen.version == Version::foreign || is_old(seen.version)) {
    result.status = ParseStatus::malformed;
    result.problem = seen.version == Version::foreign ? seen.problem : kOldPeer;
    return result;
  }
  if (input.size() < kGreetingSize) {
    return result;
  }
  const auto* name = reinterpret_cast<const char*>(input.data() + kMechanism);
  std::copy_n(name, kMechanismNameMax, result.greeting.mechanism_field.begin());
  result.greeting.major = input[kMajor];
  result.greeting.minor = input[kMinor];
  result.greeting.as_server = input[kAsServer] == 1;
  result.status = ParseStatus::complete;
  return result;
}

void write_greeting(std::uint8_t* to, const Greeting& greeting, std::size_t identity_size) noexcept {
  std::fill_n(to, kGreetingSize, std::uint8_t{0});
  to[0] = 0xFF;
  store_big_endian<std::uint64_t>(to + 1, identity_size + 1);
  to[kSignatureEnd] = 0x7F;
  to[kMajor] = greeting.major;
  to[kMinor] = greeting.minor;
  std::copy(greeting.mechanism_field.begin(), greeting.mechanism_field.end(), to + kMechanism);
  to[kAsServer] = greeting.as_server ? 1 : 0;
}

}  // namespace weft::zmtp
