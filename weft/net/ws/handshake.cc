// SPDX-License-Identifier: MIT
#include "weft/net/ws/handshake.h"

#include <algorithm>

#include "weft/base/text/utf8.h"
#include "weft/net/ws/accept_key.h"

namespace weft::net::ws {

namespace {

constexpr std::array<std::string_view, HandshakeFields::kNames> kFieldNames = {"upgrade",
                                                                               "connection",
                                                                               "sec-websocket-key",
                                                                               "sec-websocket-version",
                                                                               "sec-websocket-accept",
                                                                               "sec-websocket-protocol",
                                                                               "sec-websocket-extensions"};

}  // namespace

bool HandshakeFields::take(std::string_view fields) {
  return !http::any_field(fields, [this](const http::Field& field) {
    const auto* const at = std::find_if(kFieldNames.begin(), kFieldNames.end(),
                                        [&field](std::string_view name) { return http::same_text(name, field.name); });
    if (at == kFieldNames.end()) {
      return false;
    }
    Value& value = values_[static_cast<std::size_t>(at - kFieldNames.begin())];
    value.text.append(value.times++ == 0 ? "" : ", ").append(field.value);
    return !is_utf8(field.value);
  });
}

HandshakeRefusal check_request(const http::RequestHead& head, const HandshakeFields& fields) {
  if (head.method != "GET" || head.minor == 0) {
    return {400, "the request for a WebSocket is no GET of HTTP/1.1 with a host"};
  }
  if (head.has_body()) {
    return {400, "the request for a WebSocket has a body"};
  }
  if (!fields.has(HandshakeFields::kUpgrade, "websocket") || !fields.has(HandshakeFields::kConnection, "upgrade")) {
    return {426, "the request asks for no WebSocket"};
  }
  if (fields.text(HandshakeFields::kVersion) != "13") {
    return {426, "the request is for another version of WebSocket than 13"};
  }
  if (!is_key(fields.text(HandshakeFields::kKey))) {
    return {400, "the request for a WebSocket has no key"};
  }
  return {};
}

std::string accept_head(const HandshakeFields& fields, std::string_view protocol, std::string_view extensions) {
  std::string head =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
      accept_key(fields.text(HandshakeFields::kKey)) + "\r\n";
  if (!protocol.empty()) {
    head.append("Sec-WebSocket-Protocol: ").append(protocol).append("\r\n");
  }
  if (!extensions.empty()) {
    head.append("Sec-WebSocket-Extensions: ").append(extensions).append("\r\n");
  }
  return head.append("\r\n");
}

StaticText check_answer(const HandshakeFields& fields, std::string_view key) {
  if (!fields.has(HandshakeFields::kUpgrade, "websocket") || !fields.has(HandshakeFields::kConnection, "upgrade")) {
    return "the server's answer does not upgrade to a WebSocket";
  }
  if (fields.times(HandshakeFields::kAccept) != 1 || fields.text(HandshakeFields::kAccept) != accept_key(key)) {
    return "the server's answer does not prove that it read the request";
  }
  return {};
}

}  // namespace weft::net::ws
