// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/counter_table.h"
#include "weft/net/http/refusal.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve::web {

// clang-format off
#define WEFT_HTTP_CLIENT_COUNTERS(ROW)                                                                                \
  ROW(sent, counter, "requests_sent_total", "", "", "requests",                                                       \
      "Requests that were sent, also for a redirect and again.",                                                      \
      "serve/web_client/http_exchange.cc")                                                                            \
  ROW(refused_mistake, counter, "requests_refused_total", "reason", "mistake", "requests",                            \
      "Requests that were not sent: a mistake in the request or its URL, or a closed client.",                        \
      "serve/web_client/http_client.cc")                                                                              \
  ROW(refused_waiting, counter, "requests_refused_total", "reason", "waiting_max", "requests",                        \
      "Requests that were not sent: as many waited for a connection as may.",                                         \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(refused_connect, counter, "requests_refused_total", "reason", "connect", "requests",                            \
      "Requests that were not sent: no connection could be made.",                                                    \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(waited, counter, "waits_total", "", "", "requests",                                                             \
      "Requests that had to wait for a connection of their origin.",                                                  \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(status_2xx, counter, "responses_total", "class", "2xx", "answers",                                              \
      "Answers whose head came, by the class of the status: success.",                                                \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(status_3xx, counter, "responses_total", "class", "3xx", "answers",                                              \
      "Answers whose head came, by the class of the status: redirection.",                                            \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(status_4xx, counter, "responses_total", "class", "4xx", "answers",                                              \
      "Answers whose head came, by the class of the status: a fault of the request.",                                 \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(status_5xx, counter, "responses_total", "class", "5xx", "answers",                                              \
      "Answers whose head came, by the class of the status: a fault of the server.",                                  \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(interims, counter, "responses_interim_total", "", "", "answers",                                                \
      "Interim answers, which are skipped.",                                                                          \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(repeated, counter, "requests_repeated_total", "", "", "requests",                                               \
      "Requests that were sent again: a kept connection ended before any byte of the answer.",                        \
      "serve/web_client/http_client.cc")                                                                              \
  ROW(redirects, counter, "redirects_total", "outcome", "followed", "redirects",                                      \
      "Redirects of requests that follow them: followed.",                                                            \
      "serve/web_client/http_client.cc")                                                                              \
  ROW(redirects_refused, counter, "redirects_total", "outcome", "refused", "redirects",                               \
      "Redirects of requests that follow them: refused, for their number, their target or the body of the request.",  \
      "serve/web_client/http_client.cc")                                                                              \
  ROW(credentials_dropped, counter, "credentials_dropped_total", "", "", "redirects",                                 \
      "Redirects to another origin, to which the request went without its credentials.",                              \
      "serve/web_client/http_client.cc")                                                                              \
  ROW(late_connect, counter, "timeouts_total", "stage", "connect", "requests",                                        \
      "Waits that took too long: for a connection.",                                                                  \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(late_head, counter, "timeouts_total", "stage", "head", "requests",                                              \
      "Waits that took too long: for the head of the answer.",                                                        \
      "serve/web_client/http_exchange.cc")                                                                            \
  ROW(late_body, counter, "timeouts_total", "stage", "body", "requests",                                              \
      "Waits that took too long: for bytes of a body, in either direction.",                                          \
      "serve/web_client/http_exchange.cc")                                                                            \
  ROW(late_total, counter, "timeouts_total", "stage", "total", "requests",                                            \
      "Waits that took too long: the deadline of the request passed.",                                                \
      "serve/web_client/http_exchange.cc")                                                                            \
  ROW(malformed, counter, "responses_refused_total", "reason", "malformed", "answers",                                \
      "Answers that were refused, and ended their connection: not the form of RFC 9112.",                             \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(framing, counter, "responses_refused_total", "reason", "framing", "answers",                                    \
      "Answers that were refused, and ended their connection: two lengths, a length beside chunks, no number.",       \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(chunk, counter, "responses_refused_total", "reason", "chunk", "answers",                                        \
      "Answers that were refused, and ended their connection: a malformed chunk, or too many bytes around chunks.",   \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(body_large, counter, "responses_refused_total", "reason", "body_large", "answers",                              \
      "Answers that were refused, and ended their connection: a body of more than `body_max` or `streamed_max`.",     \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(head_large, counter, "responses_refused_total", "reason", "head_large", "answers",                              \
      "Answers that were refused, and ended their connection: more than `head_max` or `fields_max`.",                 \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(coding, counter, "responses_refused_total", "reason", "coding", "answers",                                      \
      "Answers that were refused, and ended their connection: a transfer coding besides chunked.",                    \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(version, counter, "responses_refused_total", "reason", "version", "answers",                                    \
      "Answers that were refused, and ended their connection: another major version.",                                \
      "serve/web_client/http_client_counts.h")                                                                        \
  ROW(interims_many, counter, "responses_refused_total", "reason", "interims", "answers",                             \
      "Answers that were refused, and ended their connection: too many interim answers, or 101 unasked.",             \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(unasked, counter, "responses_refused_total", "reason", "unasked", "answers",                                    \
      "Answers that were refused, and ended their connection: no request waits for them.",                            \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(no_memory, counter, "responses_refused_total", "reason", "memory", "answers",                                   \
      "Answers that were refused, and ended their connection: the memory of the host is spent.",                      \
      "serve/web_client/http_exchange.cc")                                                                            \
  ROW(cut, counter, "responses_cut_total", "", "", "answers",                                                         \
      "Answers whose connection ended before their last byte.",                                                       \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(given_up, counter, "responses_given_up_total", "", "", "answers",                                               \
      "Answers that were given up before their last byte, which ended their connection.",                             \
      "serve/web_client/http_exchange.cc")                                                                            \
  ROW(attempts, counter, "connect_attempts_total", "", "", "attempts",                                                \
      "Attempts to connect.",                                                                                         \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(connected, counter, "connections_made_total", "", "", "connections",                                            \
      "Attempts that made a connection.",                                                                             \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(reused, counter, "connections_reused_total", "", "", "requests",                                                \
      "Requests that got a connection which had served another one.",                                                 \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(idled, counter, "connections_idled_total", "", "", "connections",                                               \
      "Connections that ended because they were idle for `idle_timeout`.",                                            \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(connections, gauge, "connections", "", "", "connections",                                                       \
      "Connections that there are.",                                                                                  \
      "serve/web_client/http_pool.cc")                                                                                \
  ROW(waiting, gauge, "requests_waiting", "", "", "requests",                                                         \
      "Requests that wait for a connection of their origin.",                                                         \
      "serve/web_client/http_pool.cc")
// clang-format on

// The core counts, any thread reads.
struct HttpClientCounts {
  using Number = sync::Counter;
  WEFT_COUNTER_BLOCK(WEFT_HTTP_CLIENT_COUNTERS)
};
inline constexpr CounterRow kHttpClientRows[] = {WEFT_HTTP_CLIENT_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kHttpClientTable = {
    "http_client", "A `serve::web::HttpClient`: `admin->add(name, *http)`.", kHttpClientRows};

[[nodiscard]] inline sync::Counter& counter_of_answer(HttpClientCounts& counts, unsigned status) noexcept {
  return status < 300   ? counts.status_2xx
         : status < 400 ? counts.status_3xx
         : status < 500 ? counts.status_4xx
                        : counts.status_5xx;
}

[[nodiscard]] inline sync::Counter& counter_of_refused(HttpClientCounts& counts,
                                                       net::http::HttpRefusal refusal) noexcept {
  using net::http::HttpRefusal;
  switch (refusal) {
    case HttpRefusal::framing: return counts.framing;
    case HttpRefusal::chunk:
    case HttpRefusal::chunks_large: return counts.chunk;
    case HttpRefusal::body_large: return counts.body_large;
    case HttpRefusal::target_long:
    case HttpRefusal::head_large:
    case HttpRefusal::many_fields: return counts.head_large;
    case HttpRefusal::coding: return counts.coding;
    case HttpRefusal::version: return counts.version;
    default: return counts.malformed;
  }
}

}  // namespace weft::serve::web
