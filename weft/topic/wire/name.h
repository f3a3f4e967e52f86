// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>

#include "weft/base/filter.h"
#include "weft/base/result.h"

namespace weft::topic {

// Names: how one handle's program writes topics and filters, and how the wire does. On the wire tokens are separated by
// '.', and the handle's space, if any, stands in front. With another separator, the separator becomes '.', and '.' and
// '=' become "=2E" and "=3D": so each name of the program is one name of the wire, and the way back is exact.
// Affinity: immutable. Cost: with neither a space nor another separator, decoding is the identity.
class Names {
 public:
  // invalid_argument: the space is not a token, or the separator is a letter, a digit, or one of `*>=?[]\`.
  [[nodiscard]] static Result<Names> make(std::string_view space, char separator);

  // invalid_argument: not a topic name (filter.h), or one with a `*` or `>`; the space counts.
  [[nodiscard]] Result<std::string> encode(std::string_view name) const;
  // The errors of Filter's makers: the text with the space may be too long.
  [[nodiscard]] Result<Filter> encode(const Filter& filter) const;
  [[nodiscard]] Result<Filter> filter(std::string_view text) const;  // Filter::parse() of the program's text
  // The program's name of a topic on the wire. Topics without the space come back as they are.
  [[nodiscard]] std::string decode(std::string_view wire) const;
  [[nodiscard]] bool identity() const noexcept { return space_.empty() && separator_ == '.'; }

 private:
  [[nodiscard]] std::string translate(std::string_view name) const;

  std::string space_;  // with its '.'; empty: none
  char separator_ = '.';
};

}  // namespace weft::topic
