// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/serve/web/web_counts.h"
#include "weft/sync/counter_block.h"

namespace weft::serve::web {

// clang-format off
#define WEFT_WEBSOCKET_CLIENT_COUNTERS(ROW)                                                                           \
  ROW(messages, counter, "messages_total", "", "", "messages",                                                        \
      "Messages that came.", "serve/web/websocket_service.cc")                                                        \
  ROW(pings, counter, "pings_total", "", "", "frames",                                                                \
      "Pings that came, which are answered.", "serve/web/websocket_service.cc")                                       \
  ROW(protocol, counter, "refused_total", "reason", "protocol", "connections",                                        \
      "Connections that ended because of their server: a broken rule of RFC 6455.",                                   \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(text, counter, "refused_total", "reason", "text", "connections",                                                \
      "Connections that ended because of their server: a text that is not UTF-8.",                                    \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(size, counter, "refused_total", "reason", "size", "connections",                                                \
      "Connections that ended because of their server: a message of more than `message_max`.",                        \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(expanded, counter, "refused_total", "reason", "expanded", "connections",                                        \
      "Connections that ended because of their server: more than `message_max` in a compressed message.",             \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(deflate, counter, "refused_total", "reason", "deflate", "connections",                                          \
      "Connections that ended because of their server: a compressed message that is not a deflate stream.",           \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(messages_late, counter, "refused_total", "reason", "late", "connections",                                       \
      "Connections that ended because of their server: a frame or a message that was not whole in time.",             \
      "serve/web/websocket_service.cc")
// clang-format on

// The numbers of a WebSocketClient: the part of the counters of WebSocketBase that concerns a client.
struct WebSocketClientReading {
  using Number = std::uint64_t;
  WEFT_COUNTER_BLOCK(WEFT_WEBSOCKET_CLIENT_COUNTERS)

  [[nodiscard]] static WebSocketClientReading of(const WebCounters& counts) noexcept {
    WebSocketClientReading reading;
#define WEFT_READ_COUNTER(member, ...) reading.member = counts.member.value();
    WEFT_WEBSOCKET_CLIENT_COUNTERS(WEFT_READ_COUNTER)
#undef WEFT_READ_COUNTER
    return reading;
  }
};
inline constexpr CounterRow kWebSocketClientRows[] = {WEFT_WEBSOCKET_CLIENT_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kWebSocketClientTable = {
    "websocket_client", "A `serve::web::WebSocketClient`: `admin->add(name, *websocket)`.", kWebSocketClientRows};

}  // namespace weft::serve::web
