// SPDX-License-Identifier: MIT
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace weft::nats::jetstream {

// The whole text as a decimal number.
template <typename Number = std::uint64_t>
[[nodiscard]] std::optional<Number> read_number(std::string_view text) noexcept {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, number);
  return failed == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

}  // namespace weft::nats::jetstream
