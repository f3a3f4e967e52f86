// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "weft/base/error.h"

namespace weft::logging {

// A number that a line shows as 16 hexadecimal digits: session=0x5c1f000000100007. In JSON it is a string.
struct Hex {
  std::uint64_t value = 0;
};

// Field: a name and a value of a line: {"order", 7}. The name is a literal.
// Owner: the call that logs; texts are views. Affinity: one thread. Cost: 40 bytes; nothing is copied.
class Field {
 public:
  enum class Kind : std::uint8_t { text, integer, natural, real, flag, hex };

  constexpr Field() noexcept = default;  // an empty text without a name
  constexpr Field(StaticText name, std::string_view value) noexcept : name_(name.c_str()), text_(value) {}
  constexpr Field(StaticText name, const char* value) noexcept  // null: an empty text
      : Field(name, value == nullptr ? std::string_view() : std::string_view(value)) {}
  constexpr Field(StaticText name, Hex value) noexcept
      : name_(name.c_str()), bits_{.natural = value.value}, kind_(Kind::hex) {}
  template <std::same_as<bool> T>
  constexpr Field(StaticText name, T value) noexcept
      : name_(name.c_str()), bits_{.natural = value ? 1U : 0U}, kind_(Kind::flag) {}
  template <std::signed_integral T>
  constexpr Field(StaticText name, T value) noexcept
      : name_(name.c_str()), bits_{.integer = value}, kind_(Kind::integer) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  constexpr Field(StaticText name, T value) noexcept
      : name_(name.c_str()), bits_{.natural = value}, kind_(Kind::natural) {}
  template <std::floating_point T>
  constexpr Field(StaticText name, T value) noexcept
      : name_(name.c_str()), bits_{.real = static_cast<double>(value)}, kind_(Kind::real) {}

  [[nodiscard]] constexpr std::string_view name() const noexcept { return name_; }
  [[nodiscard]] constexpr Kind kind() const noexcept { return kind_; }
  [[nodiscard]] constexpr std::string_view text() const noexcept { return text_; }
  [[nodiscard]] constexpr std::int64_t integer() const noexcept { return bits_.integer; }
  [[nodiscard]] constexpr std::uint64_t natural() const noexcept { return bits_.natural; }
  [[nodiscard]] constexpr double real() const noexcept { return bits_.real; }

 private:
  union Bits {
    std::int64_t integer;
    std::uint64_t natural = 0;
    double real;
  };

  std::string_view name_;
  std::string_view text_{};
  Bits bits_{};
  Kind kind_ = Kind::text;
};

}  // namespace weft::logging
