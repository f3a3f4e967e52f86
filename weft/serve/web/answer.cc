// SPDX-License-Identifier: MIT
#include "weft/serve/web/answer.h"

#include <string>

#include "weft/net/http/status.h"

namespace weft::serve::web {

Result<void> send_response(HttpSession& session, const Answer& answer, const Response& response,
                           std::string_view date) {
  if (!(response.error() == Errc::ok)) {
    return response.error();
  }
  ResponseHead head;
  head.status = static_cast<std::uint16_t>(response.status());
  head.keep_alive = answer.keep_alive && !response.closes();
  head.http_1_0 = answer.http_1_0;
  head.upgrade = answer.upgrade;
  head.date = date;
  head.fields = &response.fields();
  Bytes body = as_bytes(response.body());
  if (head.status == 204 || head.status == 205 || head.status == 304) {
    body = {};
  } else if (answer.is_head) {
    head.content_length = body.size();
    body = {};
  }
  const Result<void> sent = session.send(head, body);
  const bool other_may_follow = sent.error() == Errc::invalid_argument || sent.error() == Errc::message_too_large;
  if (sent ? !head.keep_alive : !other_may_follow) {
    session.close();
  }
  return sent;
}

Response status_response(unsigned status) {
  return Response(status, std::to_string(status).append(" ").append(net::http::reason_phrase(status)).append("\n"));
}

unsigned status_of(const Error& error) noexcept {
  switch (error.code()) {
    case Errc::invalid_argument: return 400;
    case Errc::not_permitted: return 403;
    case Errc::not_found: return 404;
    case Errc::conflict: return 409;
    case Errc::resource_exhausted:
    case Errc::would_block: return 503;
    case Errc::timed_out: return 504;
    default: return 500;
  }
}

}  // namespace weft::serve::web
