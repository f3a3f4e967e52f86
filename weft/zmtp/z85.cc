// SPDX-License-Identifier: MIT
#include "weft/zmtp/z85.h"

#include <array>
#include <cstdint>

#include "weft/base/endian.h"

namespace weft {

namespace {

constexpr std::string_view kAlphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
constexpr std::uint32_t kBase = 85;
constexpr std::uint8_t kNoDigit = 255;
static_assert(kAlphabet.size() == kBase);

constexpr std::array<std::uint8_t, 256> make_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<std::uint8_t>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kDigits = make_digits();

}  // namespace

Result<void> z85_encode(Bytes from, std::span<char> to) noexcept {
  if (from.size() % 4 != 0) {
    return Error(Errc::invalid_argument, "Z85 encodes a multiple of 4 bytes");
  }
  if (to.size() < z85_encoded_size(from.size())) {
    return Errc::buffer_too_small;
  }
  char* out = to.data();
  for (std::size_t at = 0; at < from.size(); at += 4, out += 5) {
    auto value = load_big_endian<std::uint32_t>(from.data() + at);
    for (int digit = 4; digit >= 0; --digit) {
      out[digit] = kAlphabet[value % kBase];
      value /= kBase;
    }
  }
  return {};
}

Result<void> z85_decode(std::string_view from, MutableBytes to) noexcept {
  if (from.size() % 5 != 0) {
    return Error(Errc::invalid_argument, "Z85 text is a multiple of 5 characters");
  }
  if (to.size() < z85_decoded_size(from.size())) {
    return Errc::buffer_too_small;
  }
  std::uint8_t* out = to.data();
  for (std::size_t at = 0; at < from.size(); at += 5, out += 4) {
    std::uint64_t value = 0;  // five digits reach 85^5 - 1, a little past 32 bits
    for (const char character : from.substr(at, 5)) {
      const std::uint8_t digit = kDigits[static_cast<std::uint8_t>(character)];
      if (digit == kNoDigit) {
        return Error(Errc::invalid_argument, "not a character of Z85");
      }
      value = value * kBase + digit;
    }
    if (value > UINT32_MAX) {
      return Error(Errc::invalid_argument, "five characters of Z85 are more than 4 bytes");
    }
    store_big_endian(out, static_cast<std::uint32_t>(value));
  }
  return {};
}

}  // namespace weft
