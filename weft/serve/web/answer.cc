// SPDX-License-Identifier: MIT
#include "weft/serve/web/answer.h"

#include <string>

#include "weft/net/http/status.h"

namespace weft::serve::web {

namespace {
constexpr bool is_bodiless(unsigned status) noexcept { return status == 204 || status == 205 || status == 304; }
}  // namespace

bool body_follows(const Answer& answer, const Response& response) noexcept {
  return response.producer() && !answer.is_head && !is_bodiless(response.status());
}

BodyFraming framing_of(const Answer& answer, const Response& response) noexcept {
  return response.length() ? BodyFraming::length : answer.http_1_0 ? BodyFraming::connection : BodyFraming::chunks;
}

bool stays_open(const Answer& answer, const Response& response) noexcept {
  return answer.keep_alive && !response.closes() &&
         !(body_follows(answer, response) && framing_of(answer, response) == BodyFraming::connection);
}

Result<void> send_response(HttpSession& session, const Answer& answer, const Response& response,
                           std::string_view date) {
  if (!(response.error() == Errc::ok)) {
    return response.error();
  }
  ResponseHead head;
  head.status = static_cast<std::uint16_t>(response.status());
  head.keep_alive = stays_open(answer, response);
  head.http_1_0 = answer.http_1_0;
  head.upgrade = answer.upgrade;
  head.date = date;
  head.fields = &response.fields();
  Bytes body = as_bytes(response.body());
  const bool follows = body_follows(answer, response);
  if (is_bodiless(response.status())) {
    body = {};
  } else if (response.producer()) {
    head.part = ResponsePart::head;
    head.chunked = framing_of(answer, response) == BodyFraming::chunks;
    head.content_length = static_cast<std::size_t>(response.length().value_or(ResponseHead::kOfBody));
    body = {};
  } else if (answer.is_head) {
    head.content_length = body.size();
    body = {};
  }
  const Result<void> sent = session.send(head, body);
  const bool other_may_follow = sent.error() == Errc::invalid_argument || sent.error() == Errc::message_too_large;
  if (sent ? !head.keep_alive && !follows : !other_may_follow) {
    session.close();
  }
  return sent;
}

Result<void> send_continue(HttpSession& session, WebCounters& counts) {
  constexpr std::string_view kHead = "HTTP/1.1 100 Continue\r\n\r\n";
  counts.continues.add();
  return session.send_bytes(as_bytes(kHead));
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
    case Errc::message_too_large: return 413;
    case Errc::resource_exhausted:
    case Errc::would_block: return 503;
    case Errc::timed_out: return 504;
    default: return 500;
  }
}

}  // namespace weft::serve::web
