// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::serve::web {

// "%41" to "A". A '%' without two hexadecimal digits stays unchanged.
[[nodiscard]] std::string percent_decode(std::string_view text);
// The same of application/x-www-form-urlencoded, where a '+' is a space.
[[nodiscard]] std::string form_decode(std::string_view text);

// A pair of a query or a form, still encoded. Views.
struct FormPair {
  std::string_view name;
  std::string_view value;
};

// Calls visit(const FormPair&) for each pair of "a=1&b=2", until visit returns true; then returns true. A part without
// '=' is a name without a value; empty parts are skipped.
template <typename Visit>
bool any_pair(std::string_view text, Visit&& visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    if (!part.empty() && visit(FormPair{part.substr(0, equals), part.substr(std::min(equals + 1, part.size()))})) {
      return true;
    }
  }
  return false;
}

// The decoded value of the first pair of that decoded name. Cost: linear in the text.
[[nodiscard]] std::optional<std::string> find_pair(std::string_view text, std::string_view name);

// The value of the first cookie of that name in a field Cookie, "a=1; b=2", unchanged from the client. A name has its
// case. A view into the text.
[[nodiscard]] std::optional<std::string_view> find_cookie(std::string_view text, std::string_view name) noexcept;

// With which requests of other sites a browser sends a cookie: none; those that follow a link; all, then only `secure`.
enum class SameSite : std::uint8_t { strict, lax, none };

// Cookie: a cookie that an answer sets (RFC 6265 section 4.1). The defaults are the careful ones: over TLS alone, not
// for scripts, for this host, until the browser ends. A value.
struct Cookie {
  std::string name;
  std::string value;
  std::string path = "/";
  std::string domain{};                           // with its subdomains; empty: this host alone
  std::optional<std::chrono::seconds> max_age{};  // zero removes the cookie
  bool secure = true;
  bool http_only = true;
  SameSite same_site = SameSite::lax;

  // The value of Set-Cookie. Errors: invalid_argument (the name is not a token; a byte that the value, the path or the
  // domain may not have; SameSite::none without `secure`).
  [[nodiscard]] Result<std::string> text() const;
};

}  // namespace weft::serve::web
