// SPDX-License-Identifier: MIT
#include "weft/nats/protocol/inbox.h"

#include <charconv>
#include <cstring>
#include <system_error>

namespace weft::nats {

namespace {
constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";  // 64
constexpr std::size_t kPrefixMax = 200;
}  // namespace

Inbox::Inbox(std::string_view prefix, std::span<const std::uint8_t, kRandomSize> random)
    : front_(prefix.substr(0, kPrefixMax)) {
  front_ += '.';
  for (const std::uint8_t byte : random) {
    front_ += kDigits[byte % kDigits.size()];
  }
  front_ += '.';
}

std::string_view Inbox::subject(std::uint32_t number, Subject& place) const noexcept {
  std::memcpy(place.data(), front_.data(), front_.size());
  char* const digits = place.data() + front_.size();
  char* const end = std::to_chars(digits, place.data() + place.size(), number).ptr;
  return {place.data(), static_cast<std::size_t>(end - place.data())};
}

std::optional<std::uint32_t> Inbox::number_of(std::string_view subject) const noexcept {
  if (!subject.starts_with(front_)) {
    return std::nullopt;
  }
  std::uint32_t number = 0;
  const char* const end = subject.data() + subject.size();
  const auto [stop, failed] = std::from_chars(subject.data() + front_.size(), end, number);
  if (failed != std::errc() || stop != end) {
    return std::nullopt;
  }
  return number;
}

}  // namespace weft::nats
