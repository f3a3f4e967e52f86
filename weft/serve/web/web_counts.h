// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/counter_table.h"
#include "weft/net/http/refusal.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"
#include "weft/sync/duration_counts.h"

namespace weft::serve::web {

// clang-format off
#define WEFT_WEB_COUNTERS(ROW)                                                                                        \
  ROW(status_2xx, counter, "responses_total", "class", "2xx", "answers",                                              \
      "Answers by the class of their status: success.",                                                               \
      "serve/web/web_counts.h")                                                                                       \
  ROW(status_3xx, counter, "responses_total", "class", "3xx", "answers",                                              \
      "Answers by the class of their status: redirection.",                                                           \
      "serve/web/web_counts.h")                                                                                       \
  ROW(status_4xx, counter, "responses_total", "class", "4xx", "answers",                                              \
      "Answers by the class of their status: a fault of the client.",                                                 \
      "serve/web/web_counts.h")                                                                                       \
  ROW(status_5xx, counter, "responses_total", "class", "5xx", "answers",                                              \
      "Answers by the class of their status: a fault of the server.",                                                 \
      "serve/web/web_counts.h")                                                                                       \
  ROW(malformed, counter, "requests_refused_total", "reason", "malformed", "requests",                                \
      "Requests that were refused, and ended their connection: not the form of RFC 9112.",                            \
      "net/http/refusal.h")                                                                                           \
  ROW(host, counter, "requests_refused_total", "reason", "host", "requests",                                          \
      "Requests that were refused, and ended their connection: no host, two, or none that is one.",                   \
      "net/http/refusal.h")                                                                                           \
  ROW(framing, counter, "requests_refused_total", "reason", "framing", "requests",                                    \
      "Requests that were refused, and ended their connection: two lengths, a length beside chunks, no number.",      \
      "net/http/refusal.h")                                                                                           \
  ROW(chunk, counter, "requests_refused_total", "reason", "chunk", "requests",                                        \
      "Requests that were refused, and ended their connection: a malformed chunk.",                                   \
      "net/http/refusal.h")                                                                                           \
  ROW(body_large, counter, "requests_refused_total", "reason", "body_large", "requests",                              \
      "Requests that were refused, and ended their connection: more than `body_max`.",                                \
      "net/http/refusal.h")                                                                                           \
  ROW(chunks_large, counter, "requests_refused_total", "reason", "chunks_large", "requests",                          \
      "Requests that were refused, and ended their connection: more than `framing_max`.",                             \
      "net/http/refusal.h")                                                                                           \
  ROW(target_long, counter, "requests_refused_total", "reason", "target_long", "requests",                            \
      "Requests that were refused, and ended their connection: more than `target_max`.",                              \
      "net/http/refusal.h")                                                                                           \
  ROW(expectation, counter, "requests_refused_total", "reason", "expectation", "requests",                            \
      "Requests that were refused, and ended their connection: an unknown expectation.",                              \
      "net/http/refusal.h")                                                                                           \
  ROW(head_large, counter, "requests_refused_total", "reason", "head_large", "requests",                              \
      "Requests that were refused, and ended their connection: more than `head_max`.",                                \
      "net/http/refusal.h")                                                                                           \
  ROW(many_fields, counter, "requests_refused_total", "reason", "many_fields", "requests",                            \
      "Requests that were refused, and ended their connection: more than `fields_max`.",                              \
      "net/http/refusal.h")                                                                                           \
  ROW(coding, counter, "requests_refused_total", "reason", "coding", "requests",                                      \
      "Requests that were refused, and ended their connection: a transfer coding besides chunked.",                   \
      "net/http/refusal.h")                                                                                           \
  ROW(method_unknown, counter, "requests_refused_total", "reason", "method_unknown", "requests",                      \
      "Requests that were refused, and ended their connection: CONNECT.",                                             \
      "net/http/refusal.h")                                                                                           \
  ROW(version, counter, "requests_refused_total", "reason", "version", "requests",                                    \
      "Requests that were refused, and ended their connection: another major version.",                               \
      "net/http/refusal.h")                                                                                           \
  ROW(head_late, counter, "requests_refused_total", "reason", "head_late", "requests",                                \
      "Requests that were refused, and ended their connection: a head that was not whole in time.",                   \
      "serve/web/web_service.cc")                                                                                     \
  ROW(body_late, counter, "requests_refused_total", "reason", "body_late", "requests",                                \
      "Requests that were refused, and ended their connection: a body that was not whole in time.",                   \
      "serve/web/web_service.cc")                                                                                     \
  ROW(no_path, counter, "requests_unrouted_total", "reason", "path", "requests",                                      \
      "Requests that no route took: no route has the path.",                                                          \
      "serve/web/web_service.cc")                                                                                     \
  ROW(no_method, counter, "requests_unrouted_total", "reason", "method", "requests",                                  \
      "Requests that no route took: the path has none of the method.",                                                \
      "serve/web/web_service.cc")                                                                                     \
  ROW(misdirected, counter, "requests_unrouted_total", "reason", "scheme", "requests",                                \
      "Requests that no route took: an https target over a connection without TLS.",                                  \
      "serve/web/web_service.cc")                                                                                     \
  ROW(errors, counter, "handlers_failed_total", "reason", "error", "requests",                                        \
      "Requests whose handler failed: it returned an error.",                                                         \
      "serve/web/web_service.cc")                                                                                     \
  ROW(thrown, counter, "handlers_failed_total", "reason", "exception", "requests",                                    \
      "Requests whose handler failed: an exception came out of it.",                                                  \
      "serve/web/web_service.cc")                                                                                     \
  ROW(unsendable, counter, "handlers_failed_total", "reason", "response", "requests",                                 \
      "Requests whose handler failed: its answer has a wrong status or field, or is too large.",                      \
      "serve/web/web_service.cc")                                                                                     \
  ROW(no_memory, counter, "handlers_failed_total", "reason", "memory", "requests",                                    \
      "Requests whose handler failed: no memory for its coroutine.",                                                  \
      "serve/web/web_service.cc")                                                                                     \
  ROW(files_busy, counter, "handlers_failed_total", "reason", "files", "requests",                                    \
      "Requests whose handler failed: as many files as `open_max` are sent already.",                                 \
      "serve/web/web_service.cc")                                                                                     \
  ROW(broken, counter, "handlers_failed_total", "reason", "body", "requests",                                         \
      "Requests whose handler failed: the body of its answer ended early.",                                           \
      "serve/web/web_stream.cc")                                                                                      \
  ROW(cancelled, counter, "handlers_failed_total", "reason", "cancelled", "requests",                                 \
      "Requests whose handler failed: the connection ended before its coroutine.",                                    \
      "serve/web/web_service.cc")                                                                                     \
  ROW(continues, counter, "continues_total", "", "", "requests",                                                      \
      "Requests whose body was awaited by 100 Continue.",                                                             \
      "serve/web/answer.cc")                                                                                          \
  ROW(worn, counter, "connections_worn_total", "", "", "connections",                                                 \
      "Connections that ended after the last of `requests_max`.",                                                     \
      "serve/web/web_service.cc")                                                                                     \
  ROW(websockets_opened, counter, "websockets_opened_total", "", "", "connections",                                   \
      "Connections that became a WebSocket.",                                                                         \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(websockets_compressed, counter, "websockets_compressed_total", "", "", "connections",                           \
      "Connections that became a WebSocket with permessage-deflate.",                                                 \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(upgrade_request, counter, "upgrades_refused_total", "reason", "request", "requests",                            \
      "Requests of a WebSocket route that were refused: not the form of RFC 6455.",                                   \
      "serve/web/web_upgrade.cc")                                                                                     \
  ROW(upgrade_origin, counter, "upgrades_refused_total", "reason", "origin", "requests",                              \
      "Requests of a WebSocket route that were refused: from an origin that is not taken.",                           \
      "serve/web/web_upgrade.cc")                                                                                     \
  ROW(upgrade_route, counter, "upgrades_refused_total", "reason", "route", "requests",                                \
      "Requests of a WebSocket route that were refused: by the function `refuse`.",                                   \
      "serve/web/web_upgrade.cc")                                                                                     \
  ROW(upgrade_busy, counter, "upgrades_refused_total", "reason", "busy", "requests",                                  \
      "Requests of a WebSocket route that were refused: no memory, coroutines run, or a stop.",                       \
      "serve/web/web_upgrade.cc")                                                                                     \
  ROW(messages, counter, "websocket_messages_total", "", "", "messages",                                              \
      "Messages of WebSocket clients.",                                                                               \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(pings, counter, "websocket_pings_total", "", "", "frames",                                                      \
      "Pings of WebSocket clients, which are answered.",                                                              \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(protocol, counter, "websockets_refused_total", "reason", "protocol", "connections",                             \
      "WebSockets that ended because of their client: a broken rule of RFC 6455.",                                    \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(text, counter, "websockets_refused_total", "reason", "text", "connections",                                     \
      "WebSockets that ended because of their client: a text that is not UTF-8.",                                     \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(size, counter, "websockets_refused_total", "reason", "size", "connections",                                     \
      "WebSockets that ended because of their client: a message of more than `message_max`.",                         \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(expanded, counter, "websockets_refused_total", "reason", "expanded", "connections",                             \
      "WebSockets that ended because of their client: more than `message_max` in a compressed message.",              \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(deflate, counter, "websockets_refused_total", "reason", "deflate", "connections",                               \
      "WebSockets that ended because of their client: a compressed message that is not a deflate stream.",            \
      "serve/web/websocket_service.cc")                                                                               \
  ROW(messages_late, counter, "websockets_refused_total", "reason", "late", "connections",                            \
      "WebSockets that ended because of their client: a frame or a message that was not whole in time.",              \
      "serve/web/websocket_service.cc")
// clang-format on

// The counters of a site on one core: its thread counts, any thread reads; and sums of them, as plain values.
template <typename N>
struct WebCountsOf {
  using Number = N;
  WEFT_COUNTER_BLOCK(WEFT_WEB_COUNTERS)
};
using WebCounters = WebCountsOf<sync::Counter>;
using WebCounts = WebCountsOf<std::uint64_t>;

inline constexpr CounterRow kWebRows[] = {WEFT_WEB_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr sync::DurationRow kHandlerTimesRow = {
    "web", "handler_seconds", "web, handler, method",
    "The time in which a route's handler made its answer, with the waits of a coroutine. A route without a request has "
    "none.",
    "serve/web/web_service.cc"};
inline constexpr CounterTable kWebTable = {
    "web", "The `serve::web::Site`s of one name, summed: `admin->add(name, site)`, `admin->remove(name)`.", kWebRows};

[[nodiscard]] inline sync::Counter& counter_of_status(WebCounters& counts, unsigned status) noexcept {
  return status < 300   ? counts.status_2xx
         : status < 400 ? counts.status_3xx
         : status < 500 ? counts.status_4xx
                        : counts.status_5xx;
}

[[nodiscard]] inline sync::Counter& counter_of(WebCounters& counts, net::http::HttpRefusal refusal) noexcept {
  using net::http::HttpRefusal;
  switch (refusal) {
    case HttpRefusal::none:
    case HttpRefusal::malformed: break;
    case HttpRefusal::host: return counts.host;
    case HttpRefusal::framing: return counts.framing;
    case HttpRefusal::chunk: return counts.chunk;
    case HttpRefusal::body_large: return counts.body_large;
    case HttpRefusal::chunks_large: return counts.chunks_large;
    case HttpRefusal::target_long: return counts.target_long;
    case HttpRefusal::expectation: return counts.expectation;
    case HttpRefusal::head_large: return counts.head_large;
    case HttpRefusal::many_fields: return counts.many_fields;
    case HttpRefusal::coding: return counts.coding;
    case HttpRefusal::method_unknown: return counts.method_unknown;
    case HttpRefusal::version: return counts.version;
  }
  return counts.malformed;
}

}  // namespace weft::serve::web
