// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/json_text.h"

#include <charconv>
#include <cmath>

#include "weft/base/text/json_string.h"
#include "weft/base/text/utf8.h"

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

void JsonText::append_string(std::string_view of) { append_json_string(utf8_prefix(of, kStringMax), text_); }

void JsonText::append_number(double of) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, of);
  text_ += std::isfinite(of) ? std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)) : "null";
}

}  // namespace weft::serve
