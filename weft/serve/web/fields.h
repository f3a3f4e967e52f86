// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::serve::web {

// Fields: the fields of an answer, or of a client's request, as the lines that a peer gets. A value. Affinity: one
// thread at a time.
// Cost: a copy of each name and value into one string; a look-up is linear.
// Invariants:
//   (1) Each line is "name: value\r\n" with a name that is a token and a value without CR, LF and other control
//       characters: no value can begin another line, or another answer.
//   (2) There is no field that the server writes itself: those that say where a body ends, the connection, the date.
class Fields {
 public:
  static constexpr std::size_t kBytesMax = 3072;  // of all lines of an answer

  Fields() = default;
  explicit Fields(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

  // Errors: invalid_argument (not a name or a value of a field, or the server writes the field); message_too_large
  // (`bytes_max`). After an error nothing has changed.
  Result<void> add(std::string_view name, std::string_view value);
  // The same instead of all fields of that name.
  Result<void> set(std::string_view name, std::string_view value);
  void remove(std::string_view name);

  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const noexcept;
  [[nodiscard]] std::string_view lines() const noexcept { return lines_; }

 private:
  [[nodiscard]] Result<void> check(std::string_view name, std::string_view value) const noexcept;

  std::string lines_;
  std::size_t bytes_max_ = kBytesMax;
};

}  // namespace weft::serve::web
