// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/net/http/refusal.h"

namespace weft::net::http {

// The head of an answer: views into its bytes.
struct AnswerHead {
  std::uint16_t status = 0;  // 100 to 599
  std::string_view reason;   // after the status; it means nothing
  std::string_view fields;   // the lines of the fields, each with its CRLF
  std::uint64_t content_length = 0;
  std::uint8_t minor = 1;  // of the version: HTTP/1.<minor>; a larger one counts as 1
  bool has_length = false;
  bool chunked = false;
  bool keep_alive = false;

  // More heads follow before that of the answer.
  [[nodiscard]] bool is_interim() const noexcept { return status < 200; }
  // Whatever its fields say (RFC 9112 section 6.3).
  [[nodiscard]] bool is_bodiless() const noexcept { return is_interim() || status == 204 || status == 304; }
};

// Parses a head that HeadScanner found: from its first line to the end of its empty line. The rules of fields are those
// of requests. Refused as `framing`, too: an answer without a body, other than 304, that announces one.
// After a refusal `into` is worth nothing.
[[nodiscard]] HttpRefusal parse_answer_head(std::string_view head, AnswerHead& into) noexcept;

}  // namespace weft::net::http
