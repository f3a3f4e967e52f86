// SPDX-License-Identifier: MIT
#include "weft/net/http/answer_head.h"

#include <algorithm>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"
#include "weft/net/http/message_fields.h"
#include "weft/net/http/request_head.h"

namespace weft::net::http {

namespace {

constexpr unsigned kStatusMax = 599;

HttpRefusal take_status_line(std::string_view line, AnswerHead& into) noexcept {
  const bool versioned =
      line.size() > 8 && line.starts_with("HTTP/") && is_digit(line[5]) && line[6] == '.' && is_digit(line[7]);
  if (versioned && line[5] != '1') {
    return HttpRefusal::version;
  }
  const StatusLine parsed = parse_status_line(line);
  if (parsed.status == 0 || parsed.status > kStatusMax) {
    return HttpRefusal::malformed;
  }
  into.status = static_cast<std::uint16_t>(parsed.status);
  into.minor = std::min<std::uint8_t>(parsed.minor, 1);
  into.reason = line.substr(std::min<std::size_t>(line.size(), 13));
  return HttpRefusal::none;
}

}  // namespace

HttpRefusal parse_answer_head(std::string_view head, AnswerHead& into) noexcept {
  into = {};
  std::string_view rest = head;
  const HttpRefusal line = take_status_line(take_line(rest), into);
  if (line != HttpRefusal::none) {
    return line;
  }
  MessageFields message;
  const HttpRefusal why =
      take_fields(rest, into.fields, [&](const Field& field) noexcept { return message.take(field); });
  if (why != HttpRefusal::none) {
    return why;
  }
  into.content_length = message.content_length();
  into.has_length = message.has_length();
  into.chunked = message.chunked();
  into.keep_alive = message.keep_alive(into.minor);
  const bool announces = into.chunked || into.content_length != 0;
  if (announces && into.is_bodiless() && into.status != 304) {
    return HttpRefusal::framing;
  }
  return message.check(into.minor);
}

}  // namespace weft::net::http
