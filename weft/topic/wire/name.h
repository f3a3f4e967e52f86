// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "weft/base/filter.h"
#include "weft/base/result.h"

namespace weft::topic {

// Names: converts topics and filters between a handle's program and the wire. On the wire, '.' separates tokens, and
// the handle's space, if any, comes first. With another separator, the separator becomes '.', and '.' and '=' become
// "=2E" and "=3D": so each name of the program is one name of the wire, and the conversion back is exact.
// Affinity: immutable. Cost: with neither a space nor another separator, decoding is the identity.
class Names {
 public:
  // Errors: invalid_argument (the space is not a token, or the separator is a letter, a digit, or one of `*>=?[]\`).
  [[nodiscard]] static Result<Names> make(std::string_view space, char separator);

  // Fails with invalid_argument if it is not a topic name (filter.h), or has a `*` or `>`; the space counts.
  [[nodiscard]] Result<std::string> encode(std::string_view name) const;
  // Errors: those of Filter's makers: the text with the space may be too long.
  [[nodiscard]] Result<Filter> encode(const Filter& filter) const;
  [[nodiscard]] Result<Filter> filter(std::string_view text) const;  // Filter::parse() of the program's text
  // The program's name of a topic on the wire. Topics without the space stay unchanged.
  [[nodiscard]] std::string decode(std::string_view wire) const;
  [[nodiscard]] char separator() const noexcept { return separator_; }  // the program's
  [[nodiscard]] bool identity() const noexcept { return space_.empty() && separator_ == '.'; }

 private:
  [[nodiscard]] std::string translate(std::string_view name) const;

  std::string space_;  // with its '.'; empty: none
  char separator_ = '.';
};

}  // namespace weft::topic
