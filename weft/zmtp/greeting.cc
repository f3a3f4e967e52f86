// SPDX-License-Identifier: MIT
#include "weft/zmtp/greeting.h"

#include <algorithm>

#include "weft/base/assert.h"

namespace weft::zmtp {
namespace {

constexpr std::size_t kSignatureEnd = 9;  // its last byte, 7F; bit 0 tells it from the flags of a ZMTP 1.0 frame
constexpr std::size_t kMajor = 10;
constexpr std::size_t kMinor = 11;
constexpr std::size_t kMechanism = 12;
constexpr std::size_t kAsServer = 32;

constexpr const char* kOldPeer = "peer speaks ZMTP 2.0 or older";

// Names the protocols that knock at the wrong door, from the first byte alone so that cutting cannot change the answer.
const char* describe_first_byte(std::uint8_t first) {
  switch (first) {
    case 0x01: return kOldPeer;  // ZMTP 1.0: the frame of an empty identity
    case 0x16: return "not ZMTP: peer sent a TLS record";
    default: break;
  }
  return first >= 0x20 && first < 0x7F ? "not ZMTP: peer sent text, as HTTP or SSH do" : "not ZMTP: bad signature";
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

GreetingResult parse_greeting(Bytes input) noexcept {
  GreetingResult result;
  const auto refuse = [&result](const char* problem) {
    result.status = ParseStatus::malformed;
    result.problem = problem;
    return result;
  };
  if (!input.empty() && input[0] != 0xFF) {
    return refuse(describe_first_byte(input[0]));
  }
  if (input.size() > kSignatureEnd && (input[kSignatureEnd] & 0x01) == 0) {
    return refuse(kOldPeer);
  }
  if (input.size() > kMajor && input[kMajor] < 3) {
    return refuse(kOldPeer);
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

void write_greeting(std::uint8_t* to, const Greeting& greeting) noexcept {
  std::fill_n(to, kGreetingSize, std::uint8_t{0});
  to[0] = 0xFF;
  to[kSignatureEnd - 1] = 1;  // a ZMTP 1.0 peer then reads the signature as a long frame of one byte: an empty identity
  to[kSignatureEnd] = 0x7F;
  to[kMajor] = greeting.major;
  to[kMinor] = greeting.minor;
  std::copy(greeting.mechanism_field.begin(), greeting.mechanism_field.end(), to + kMechanism);
  to[kAsServer] = greeting.as_server ? 1 : 0;
}

}  // namespace weft::zmtp
