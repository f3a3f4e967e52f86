// SPDX-License-Identifier: MIT
#include "weft/base/error_code.h"

#include <cstdint>
#include <limits>
#include <string>

namespace weft {
namespace {

Error error_of(int value) noexcept { return Error(Error::Parts{nullptr, static_cast<std::uint32_t>(value)}); }

class Category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "weft"; }
  [[nodiscard]] std::string message(int value) const override { return error_of(value).message(); }

  // Maps a code only where the standard has a condition of the same meaning. Every other code is its own
  // condition.
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (error_of(value).code()) {
      case Errc::would_block: return std::errc::resource_unavailable_try_again;
      case Errc::timed_out: return std::errc::timed_out;
      case Errc::interrupted: return std::errc::interrupted;
      case Errc::terminated:
      case Errc::cancelled: return std::errc::operation_canceled;
      case Errc::closed: return std::errc::bad_file_descriptor;
      case Errc::invalid_argument:
      case Errc::malformed_endpoint: return std::errc::invalid_argument;
      case Errc::not_supported: return std::errc::operation_not_supported;
      case Errc::unknown_option: return std::errc::no_protocol_option;
      case Errc::unknown_transport: return std::errc::protocol_not_supported;
      case Errc::address_in_use: return std::errc::address_in_use;
      case Errc::address_unavailable: return std::errc::address_not_available;
      case Errc::unreachable: return std::errc::host_unreachable;
      case Errc::too_many_sockets: return std::errc::too_many_files_open;
      case Errc::message_too_large: return std::errc::message_size;
      case Errc::buffer_too_small: return std::errc::no_buffer_space;
      case Errc::connection_closed: return std::errc::connection_reset;
      case Errc::protocol_error: return std::errc::protocol_error;
      case Errc::not_permitted: return std::errc::operation_not_permitted;
      default: return {value, *this};
    }
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

std::error_code make_error_code(Errc code) noexcept { return {static_cast<int>(code), error_category()}; }

std::error_code to_error_code(const Error& error) noexcept {
  if (error == Errc::system && error.os_errno() != 0) {
    return {error.os_errno(), std::system_category()};
  }
  return {static_cast<int>(error.domain_and_value()), error_category()};
}

Error from_error_code(const std::error_code& code) noexcept {
  if (!code) {
    return {};
  }
  const std::error_category& category = code.category();
  if (category == error_category()) {
    return error_of(code.value());
  }
  if (category == std::system_category() || category == std::generic_category()) {
    return {errc_of(code.value()), nullptr, code.value()};
  }
  constexpr int kMost = std::numeric_limits<std::uint16_t>::max();
  const bool fits = code.value() >= 0 && code.value() <= kMost;
  return {ErrorDomain(category.name()), static_cast<std::uint16_t>(fits ? code.value() : kMost),
          StaticText::of_immortal(category.name())};
}

}  // namespace weft
