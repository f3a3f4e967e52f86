// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/web_client/client_request.h"
#include "weft/serve/web_client/client_response.h"
#include "weft/serve/web_client/http_client_counts.h"
#include "weft/serve/web_client/http_client_options.h"

namespace weft::serve::web {

// HttpClient: requests of HTTP/1.1 to any origins, over connections that it keeps for the next request. Its connections
// are sessions of the host's core.
//   const auto http = WEFT_TRY(web::HttpClient::open(host));
//   const auto answer = co_await http->get("https://example.com/");
// Owner: the program. The destructor ends the client at once: requests under way fail with `closed`. In another thread
// than the core's, the destructor posts this to the core and does not wait. The runtime must outlive the client.
// Affinity: its core's thread, which also awaits the tasks. Any thread may call counts().
// Cost: a request costs a few coroutine frames from the pool, one write, and a copy of the answer.
// Invariants:
//   1. Each request ends once: with its whole answer, or with an error whose fate() is how far it came: not_sent;
//      outcome_unknown; answered (the head of the answer came).
//   2. A request is sent again only where nothing was sent, or where it is repeatable and a connection that had served
//      another request ended before any byte of the answer: once, over a new connection.
//   3. The end of a connection inside an answer is an error. A body is never shorter than the answer announces.
//   4. The fields Authorization, Cookie and Proxy-Authorization never go to another origin than that of the request.
class HttpClient {
 public:
  // Errors: invalid_state (not on that core); resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<HttpClient>> open(std::shared_ptr<ClientHost> host,
                                                                HttpClientOptions options = {});
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  // Sends the request and returns the answer, whatever its status. Errors besides those of HttpPool::take() and
  // HttpExchange::wait(), in invariant 1: invalid_argument (a mistake in the request, or no URL of http or https);
  // invalid_state (the caller is not on the client's core); not_permitted (a redirect that is not followed: more than
  // redirects_max, from https to http, or of a body that a coroutine writes); closed.
  [[nodiscard]] rt::Task<Result<ClientResponse>> request(ClientRequest request);
  [[nodiscard]] rt::Task<Result<ClientResponse>> get(std::string url, Instant deadline = kNever);
  [[nodiscard]] rt::Task<Result<ClientResponse>> post(std::string url, std::string body,
                                                      std::string_view content_type = "application/octet-stream",
                                                      Instant deadline = kNever);
  // The same, but returns as soon as the head of the answer has come: ClientResponse::reader() has the body in pieces.
  // The client reads from the server only while a read waits.
  [[nodiscard]] rt::Task<Result<ClientResponse>> stream(ClientRequest request);

  // Takes no more requests, waits until those under way have ended, and ends all connections. Fails with timed_out if
  // at the deadline the client gave up the rest. Idempotent.
  [[nodiscard]] rt::Task<Result<void>> close(Instant deadline);

  [[nodiscard]] const HttpClientCounts& counts() const noexcept;
  // The same for a page of metrics, as long as the client exists. Any thread.
  [[nodiscard]] CounterSource counter_source() const;

 private:
  explicit HttpClient(std::shared_ptr<HttpPool> pool) noexcept;

  std::shared_ptr<HttpPool> pool_;
};

}  // namespace weft::serve::web
