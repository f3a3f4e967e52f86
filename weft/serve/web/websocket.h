// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/serve/session/service.h"
#include "weft/serve/session/session_limits.h"
#include "weft/serve/web/request.h"
#include "weft/serve/web/response.h"
#include "weft/serve/web/websocket_codec.h"

namespace weft::serve::web {

// A connection that speaks WebSocket: session.send(web::Opcode::text, bytes), groups, coroutines and bounds are those
// of every session. A frame for many: SharedFrame::encode(web::WebSocketCodec(), web::Opcode::text, bytes).
using WebSocketSession = SessionOf<WebSocketCodec>;

// A message of a client: views that live until the handler returns; if the handler is a coroutine, until it has ended.
struct Message {
  Opcode kind = Opcode::binary;  // text or binary. A text is UTF-8
  Bytes body;

  [[nodiscard]] std::string_view text() const noexcept { return as_text(body); }
};

// The bounds of time for a session that speaks WebSocket: 1 min for a frame, 5 min without a sign of the peer.
[[nodiscard]] inline SessionLimits websocket_limits() {
  SessionLimits limits;
  limits.handshake_timeout = Duration(-1);  // the request was the handshake
  limits.reply_order = ReplyOrder::any;     // messages are not requests
  return limits;
}

struct WebSocketOptions {
  // The sub-protocols of the route. The connection gets the first of the client's that the route has; if there is none,
  // it has none, and a browser that requires one ends the connection.
  std::vector<std::string> protocols{};
  // The values of the field Origin that the route accepts, such as "https://example.com"; without case. Empty: any
  // value, and a missing field. Browsers let every page connect to every server, with the cookies of its site.
  std::vector<std::string> origins{};
  // Called with each request before the upgrade. A response refuses it. Empty: every request passes.
  std::function<std::optional<Response>(const Request&)> refuse{};
  // The interval of pings, sent by a coroutine of each session: for connections that are quiet for longer than
  // `idle_timeout`, or than a proxy between allows. Zero or negative: none.
  Duration ping_every{-1};
  // Compresses messages for clients that offer permessage-deflate. Empty, or a build without zlib: for none. Whoever
  // can put text into messages beside a secret, and sees their sizes, can guess the secret: do not compress both
  // together.
  std::optional<DeflateOptions> deflate{};
  WebSocketLimits limits{};
  SessionLimits session = websocket_limits();
};

// Closes the connection with that status, after all queued bytes. Statuses for programs are 4000 to 4999. An invalid
// status is sent as 1011. Session::close() has the status 1000, a stop of the server 1001. send() takes no close frame.
inline void close(WebSocketSession& session, std::uint16_t status, std::string_view reason = {}) {
  if (!net::ws::is_close_status(status)) {
    status = static_cast<std::uint16_t>(CloseStatus::failure);
  }
  std::uint8_t body[net::ws::kControlBodyMax];
  const std::size_t size = write_close_body(body, status, reason);
  session.codec().set_close_status(status);
  if (session.is_open()) {
    session.codec().set_close_sent(true);
    session.codec().set_close_sent(session.send(Opcode::close, Bytes(body, size)).has_value());
  }
  session.close();
}

}  // namespace weft::serve::web
