// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/net/http/head_scanner.h"
#include "weft/net/http/refusal.h"

namespace weft::net::http {

// The head of a request: views into its bytes.
struct RequestHead {
  std::string_view method;
  std::string_view target;  // as the peer sent it
  std::string_view path;    // of the target, still percent-encoded; "*" for OPTIONS *; never empty
  std::string_view query;   // after the '?'; empty: there is none
  std::string_view host;    // of the target if that has one, otherwise of the field
  std::string_view fields;  // the lines of the fields, each with its CRLF
  std::uint64_t content_length = 0;
  std::uint8_t minor = 1;      // of the version: HTTP/1.<minor>; a larger one counts as 1
  bool secure_target = false;  // an absolute one of https; the connection may be without TLS
  bool chunked = false;
  bool keep_alive = false;
  bool expects_continue = false;

  [[nodiscard]] bool is_head() const noexcept { return method == "HEAD"; }
  [[nodiscard]] bool has_body() const noexcept { return chunked || content_length != 0; }
};

// Parses a head that HeadScanner found: from its first line to the end of its empty line. After a refusal `into` is
// worth nothing, but for its method if that is known.
[[nodiscard]] HttpRefusal parse_request_head(std::string_view head, const HeadLimits& limits,
                                             RequestHead& into) noexcept;

// The status line of an answer: "HTTP/1.1 101 Switching Protocols".
struct StatusLine {
  unsigned status = 0;  // 0: the line is not of HTTP/1
  std::uint8_t minor = 0;
};
[[nodiscard]] StatusLine parse_status_line(std::string_view line) noexcept;

}  // namespace weft::net::http
