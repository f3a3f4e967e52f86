// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/json_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "weft/logging/line.h"

namespace weft::serve {

void JsonText::separate() {
  if (!first_) {
    text_ += ',';
  }
  first_ = false;
}

void JsonText::key(std::string_view name) {
  separate();
  append_string(name);
  text_ += ':';
  first_ = true;
}

void JsonText::append_string(std::string_view of) {
  const std::size_t begin = text_.size();
  text_.resize(begin + 2 + std::min(of.size(), logging::kTextMax) * logging::kEscapedSize);
  const char* const end = logging::write_quoted(of, text_.data() + begin);
  text_.resize(static_cast<std::size_t>(end - text_.data()));
}

void JsonText::append_number(double of) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, of);
  text_ += std::isfinite(of) ? std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)) : "null";
}

}  // namespace weft::serve
