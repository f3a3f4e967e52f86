// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/result.h"

namespace weft::net::http {

inline constexpr std::size_t kUrlMax = 16 * 1024;  // bytes

// Url: the parts of a URL that a client needs: "https://host:port/path?query". A value. Its parts are safe to write
// into the head of a request: no character that RFC 3986 does not allow, apart from those that browsers leave in a
// query. The fragment is dropped.
struct Url {
  bool secure = false;     // https, wss
  bool websocket = false;  // ws, wss
  std::string host{};      // in small letters; an IPv6 address without its brackets
  std::uint16_t port = 0;
  std::string target{};  // the path, which begins with '/' and has no segment "." or "..", and the query

  // The value of the field Host: the port only if it is not the scheme's own.
  [[nodiscard]] std::string authority() const;
  // "https://host:port": the same for all URLs of an origin.
  [[nodiscard]] std::string origin() const;
  [[nodiscard]] std::string text() const;
};

// http, https, ws and wss. The scheme's name is taken in any case. Errors: invalid_argument, whose text has the broken
// rule: also a user's name or a password before the host.
[[nodiscard]] Result<Url> parse_url(std::string_view text);

// The URL that `reference` means in an answer of `base` (RFC 3986 section 5.2). Errors: those of parse_url().
[[nodiscard]] Result<Url> resolve_url(const Url& base, std::string_view reference);

}  // namespace weft::net::http
