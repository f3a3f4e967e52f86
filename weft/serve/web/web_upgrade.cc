// SPDX-License-Identifier: MIT
// Requests that begin a WebSocket.
#include <algorithm>
#include <optional>
#include <string>

#include "weft/net/http/chars.h"
#include "weft/net/http/field.h"
#include "weft/serve/web/web_service.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;
namespace ws = net::ws;

// The first of the client's sub-protocols that the route has; empty: none. A view into the route.
std::string_view choose_protocol(const ws::HandshakeFields& fields, const WebSocketOptions& options) {
  std::string_view chosen;
  http::any_element(fields.text(ws::HandshakeFields::kProtocols), [&](std::string_view offered) {
    const auto at = std::find(options.protocols.begin(), options.protocols.end(), offered);
    if (at != options.protocols.end()) {
      chosen = *at;
    }
    return !chosen.empty();
  });
  return chosen;
}

// One Origin that the route has. A request with two could mean another one to a proxy in front.
bool takes_origin(const WebSocketOptions& options, std::string_view fields) {
  std::size_t count = 0;
  std::string_view origin;
  http::any_field(fields, [&](const http::Field& field) {
    if (http::same_text(field.name, "origin")) {
      origin = field.value;
      ++count;
    }
    return false;
  });
  return options.origins.empty() ||
         (count == 1 && std::any_of(options.origins.begin(), options.origins.end(),
                                    [origin](std::string_view taken) { return http::same_text(taken, origin); }));
}

}  // namespace

void WebService::upgrade(HttpSession& session, const Incoming& incoming, const Router::Match& match) {
  const WebSocketRoute& route = *match.handler->websocket;
  ws::HandshakeFields fields;
  ws::HandshakeRefusal refusal{400, {}};
  if (fields.take(incoming.head.fields)) {
    refusal = ws::check_request(incoming.head, fields);
  }
  if (refusal.status != 0) {
    counts_.upgrade_request.add();
    Response response = status_response(refusal.status);
    Answer answer = incoming.answer;
    answer.upgrade = refusal.status == 426;
    if (answer.upgrade) {
      response.set("Sec-WebSocket-Version", "13");
    }
    return send(session, answer, response);
  }
  if (!takes_origin(route.options, incoming.head.fields)) {
    counts_.upgrade_origin.add();
    return send(session, incoming.answer, status_response(403));
  }
  if (!refuse_upgrade(session, incoming, match)) {
    begin_websocket(session, incoming, route, fields);
  }
}

// Whether the program's function refuses; then the answer is sent.
bool WebService::refuse_upgrade(HttpSession& session, const Incoming& incoming, const Router::Match& match) {
  const auto& refuse = match.handler->websocket->options.refuse;
  if (!refuse) {
    return false;
  }
  std::optional<Response> response;
  try {
    response = refuse(Request(incoming.head, {}, match.params, &session));
  } catch (...) {
    fail(session, incoming.answer);
    return true;
  }
  if (response) {
    counts_.upgrade_route.add();
    send(session, incoming.answer, *response);
  }
  return response.has_value();
}

void WebService::begin_websocket(HttpSession& session, const Incoming& incoming, const WebSocketRoute& route,
                                 const ws::HandshakeFields& fields) {
  WebSocketBase& websocket = *websockets_[route.index];
  const std::string_view protocol = choose_protocol(fields, route.options);
  Answer last = incoming.answer;
  last.keep_alive = false;
  std::optional<std::string> extensions;
  if (!draining_ && !session.has_tasks()) {
    extensions = websocket.expect(session, incoming.text, protocol, fields.text(ws::HandshakeFields::kExtensions));
  }
  if (!extensions) {
    counts_.upgrade_busy.add();
    return send(session, last, status_response(503));
  }
  if (!session.send_bytes(as_bytes(ws::accept_head(fields, protocol, *extensions))) ||
      !session.switch_to(websocket.slot(session.slot().layered))) {
    session.close();
  }
}

}  // namespace weft::serve::web
