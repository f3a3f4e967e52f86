// SPDX-License-Identifier: MIT
#include "weft/net/http/head_scanner.h"

#include <algorithm>

#include "weft/net/http/chars.h"

namespace weft::net::http {

namespace {
constexpr std::uint32_t kFieldsMax = 65'534;
}  // namespace

// Judges a byte that is neither CR nor LF.
HttpRefusal HeadScanner::handle_plain(std::uint8_t c, const HeadLimits& limits) const noexcept {
  const std::uint32_t in_line = scanned_ - line_;
  const char as_char = static_cast<char>(c);
  if (!is_value_char(as_char) || (in_line == 0 && !is_token_char(as_char))) {
    return HttpRefusal::malformed;
  }
  // The method, two spaces and the version stand beside the target.
  if (lines_ == 0 && in_line >= kMethodMax + limits.target_max + sizeof(" HTTP/1.1")) {
    return HttpRefusal::target_long;
  }
  return HttpRefusal::none;
}

HeadScanner::Found HeadScanner::scan(Bytes input, const HeadLimits& limits) noexcept {
  const auto window = static_cast<std::uint32_t>(std::min<std::size_t>(input.size(), limits.head_max));
  while (scanned_ < window) {
    const std::uint8_t c = input[scanned_];
    if (behind_cr_ != (c == '\n')) {
      ++scanned_;
      return refuse(HttpRefusal::malformed);
    }
    if (c == '\r') {
      behind_cr_ = true;
    } else if (c != '\n') {
      const HttpRefusal why = handle_plain(c, limits);
      if (why != HttpRefusal::none) {
        ++scanned_;
        return refuse(why);
      }
    } else {
      behind_cr_ = false;
      const bool empty = scanned_ - line_ == 1;
      line_ = ++scanned_;
      if (empty && lines_ != 0) {
        return Found::head;
      }
      if (empty && begin_ != 0) {
        return refuse(HttpRefusal::malformed);
      }
      if (empty) {
        begin_ = scanned_;
      } else if (++lines_ > std::min(limits.fields_max, kFieldsMax) + 1) {
        return refuse(HttpRefusal::many_fields);
      }
      continue;
    }
    ++scanned_;
  }
  return scanned_ >= limits.head_max ? refuse(HttpRefusal::head_large) : Found::nothing;
}

}  // namespace weft::net::http
