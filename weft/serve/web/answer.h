// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/serve/session/service.h"
#include "weft/serve/web/http_codec.h"
#include "weft/serve/web/response.h"
#include "weft/serve/web/web_counts.h"

namespace weft::serve::web {

using HttpSession = SessionOf<HttpCodec>;

// The part of a request that its answer depends on.
struct Answer {
  bool keep_alive = false;
  bool is_head = false;
  bool http_1_0 = false;
  bool followed = false;  // by bytes of another request
  bool upgrade = false;   // a 426 asks for a WebSocket

  [[nodiscard]] static Answer to(const HttpRequest& request) noexcept {
    return {request.keep_alive, request.head.is_head(), request.head.minor == 0, request.followed};
  }
};

// The mark of the end of a body that is written in pieces.
enum class BodyFraming : std::uint8_t { chunks, length, connection };

// Sends the response, without a body where none may stand, and closes the session if it ends with this answer. If the
// body follows, only the head is sent. Errors of send(): then nothing was sent. invalid_argument and message_too_large
// leave the session unchanged, so that another response can be sent; any other error closes it.
Result<void> send_response(HttpSession& session, const Answer& answer, const Response& response, std::string_view date);

// Sends "100 Continue", for which a peer waits before it sends the body, and counts it.
Result<void> send_continue(HttpSession& session, WebCounters& counts);

// Whether a coroutine writes the body of the response after its head.
[[nodiscard]] bool body_follows(const Answer& answer, const Response& response) noexcept;
// How such a body ends. A client of HTTP/1.0 cannot read chunks.
[[nodiscard]] BodyFraming framing_of(const Answer& answer, const Response& response) noexcept;
// Whether the connection stays open after it.
[[nodiscard]] bool stays_open(const Answer& answer, const Response& response) noexcept;

// "404 Not Found\n": a response with its status as text.
[[nodiscard]] Response status_response(unsigned status);

// The status for the error of a handler: 400 invalid_argument, 403 not_permitted, 404 not_found, 409 conflict, 413
// message_too_large, 503 resource_exhausted or would_block, 504 timed_out, 500 any other.
[[nodiscard]] unsigned status_of(const Error& error) noexcept;

}  // namespace weft::serve::web
