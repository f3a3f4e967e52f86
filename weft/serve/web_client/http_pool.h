// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/http/url.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/web_client/http_client_counts.h"
#include "weft/serve/web_client/http_client_options.h"
#include "weft/serve/web_client/http_exchange.h"
#include "weft/serve/web_client/http_link.h"

namespace weft::serve::web {

// HttpPool: the connections of an HttpClient to the origins of its requests, and their service.
// Owner: the client, its requests and the coroutines that make connections. Affinity: its core, except counts().
// Cost: an idle connection has a session, a timer and no buffer. A request compares nothing: it takes the idle
// connection that was used last.
// Invariants:
//   (1) An origin never has more than connections_max connections, those that are being made included.
//   (2) Requests of an origin get connections in the order in which they came, and at most waiting_max wait.
//   (3) A connection that is idle reads: bytes that answer no request end it, and so does its peer's end.
class HttpPool : public std::enable_shared_from_this<HttpPool> {
 public:
  HttpPool(std::shared_ptr<ClientHost> host, HttpClientOptions options);
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  // A connection to the origin of the URL. `fresh`: one that served no request. Errors, each with the fate not_sent:
  // those of connect_web(), and timed_out (connect_timeout), with the origin in the text; timed_out (the deadline);
  // resource_exhausted (waiting_max); closed; kCancelled.
  [[nodiscard]] static rt::Task<Result<std::unique_ptr<HttpExchange>>> take(std::shared_ptr<HttpPool> self,
                                                                            const net::http::Url* url, Instant deadline,
                                                                            bool fresh);
  // Takes no more requests, waits until those under way have ended, and ends all connections.
  [[nodiscard]] static rt::Task<Result<void>> close(std::shared_ptr<HttpPool> self, Instant deadline);
  void shut_down() noexcept;  // ends all at once; idempotent

  [[nodiscard]] ClientHost& host() noexcept { return *host_; }
  [[nodiscard]] const HttpClientOptions& options() const noexcept { return options_; }
  [[nodiscard]] HttpClientCounts& counts() noexcept { return *counts_; }
  [[nodiscard]] std::shared_ptr<const HttpClientCounts> shared_counts() const noexcept { return counts_; }
  [[nodiscard]] Instant now() noexcept { return host_->core().loop().now(); }
  [[nodiscard]] bool is_closed() const noexcept { return closing_; }
  [[nodiscard]] Error used_elsewhere() const noexcept;

  // --- from exchanges ---
  void release(const std::shared_ptr<HttpLink>& link) noexcept;  // it may take the next request
  void give_back(std::size_t bytes) noexcept { host_->shard().budget().give_back(bytes); }
  void note_exchange(int change) noexcept;

  // --- the service of the connections ---
  void on_open(AnswerSession& session) noexcept;
  void on_frame(AnswerSession& session, const AnswerFrame& frame);
  void on_end(AnswerSession& session);
  void on_close(AnswerSession& session, const Error& why) noexcept;

  Farewell<HttpPool> farewell;

 private:
  [[nodiscard]] HttpOrigin& origin_of(const net::http::Url& url);
  void serve_line(HttpOrigin& origin) noexcept;
  [[nodiscard]] std::shared_ptr<HttpLink> pick(HttpOrigin& origin, bool fresh);
  [[nodiscard]] static bool has_news(const HttpLink& link) noexcept;
  [[nodiscard]] std::shared_ptr<HttpLink> make_link(HttpOrigin& origin);
  void make_idle(HttpLink& link) noexcept;
  void leave_idle(HttpLink& link) noexcept;
  void drop(HttpOrigin& origin, HttpLink& link) noexcept;
  void forget_if_empty(HttpOrigin& origin) noexcept;
  [[nodiscard]] static rt::Task<Result<void>> wait_in_line(HttpPool* self, HttpOrigin* origin, HttpCaller* caller);
  [[nodiscard]] static rt::Task<Result<void>> wait_connected(HttpLink* link);
  [[nodiscard]] static rt::Task<Result<void>> wait_quiet(HttpPool* self);
  static rt::Task<void> run(std::shared_ptr<HttpPool> self, std::shared_ptr<HttpLink> link);
  [[nodiscard]] Result<void> open(HttpLink& link, std::unique_ptr<net::ByteStream> stream);
  void refuse_all() noexcept;
  void refuse(AnswerSession& session, HttpLink& link, const AnswerHeader& header);

  const std::shared_ptr<ClientHost> host_;
  const HttpClientOptions options_;
  const std::shared_ptr<HttpClientCounts> counts_ = std::make_shared<HttpClientCounts>();
  const AnswerCodec codec_;
  ServiceSlot plain_;
  ServiceSlot layered_;
  std::shared_ptr<net::TlsClient> tls_;  // null: none was needed yet
  std::unordered_map<std::string, std::unique_ptr<HttpOrigin>> origins_;
  HttpLink* opening_ = nullptr;  // inside open()
  std::size_t exchanges_ = 0;
  bool closing_ = false;
  rt::AsyncEvent quiet_;  // pulsed when the last exchange has ended
  rt::TaskScope scope_;   // run() of each connection
};

}  // namespace weft::serve::web
