// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/health/health_checks.h"
#include "weft/serve/inspect/admin_counts.h"
#include "weft/serve/metrics/prometheus.h"
#include "weft/serve/metrics/sources.h"
#include "weft/serve/server/server.h"

namespace weft::serve {

struct NamedServer {
  std::string name;  // the label `server`; each once
  const Server* server = nullptr;
};

struct AdminOptions {
  std::string endpoint = "tcp://127.0.0.1:0";
  bool remote = false;  // true permits an endpoint that other machines reach, with `tls` and `token`
  // Connections use TLS 1.3. Null: without TLS.
  std::shared_ptr<net::TlsServer> tls{};
  // Every request must have it: "Authorization: Bearer <token>"; another one gets 401. 16 to 256 letters, digits, and
  // "-._~+/=". Empty: without a token.
  std::string token{};
  // The hosts by which requests may name the port, besides the addresses of this machine alone and localhost: each
  // without a port, like "admin.internal". A request for another host gets 421, so that a page of a browser whose name
  // resolves to 127.0.0.1 reads nothing. Empty: with a token, or over ipc, every host is taken.
  std::vector<std::string> hosts{};
  // The servers whose metrics and readiness Admin reports. They must outlive it.
  std::vector<NamedServer> servers{};
  std::function<void(PrometheusWriter&)> metrics{};  // adds further metrics; called on the thread of Admin
  // A further condition of /readyz; its error is the reason. Called like `metrics`.
  std::function<Result<void>()> ready{};
  // Checks of the program: a failed one is a reason of /readyz, and of /healthz if it is vital. /metrics shows them.
  std::shared_ptr<const HealthChecks> health{};
  std::size_t connections_max = 16;   // a further one closes the one that has been idle for the longest time
  std::uint32_t head_max = 8 * 1024;  // bytes of a request
  Duration request_timeout = std::chrono::seconds(5);        // until the first request
  Duration idle_timeout = std::chrono::minutes(2);           // between requests
  net::RateLimit scrapes{10, 10};                            // answers of /metrics; beyond, 429
  bool debug_pages = true;                                   // false: /debug and the pages below it get 404
  net::RateLimit looks{20, 20};                              // answers of these; beyond, 429
  Duration health_timeout = std::chrono::milliseconds(500);  // for the answer of each core to /healthz and /debug
  std::size_t spare_descriptors = 4;  // kept for its connections, for a process without any other descriptor
};

// Admin: metrics and health of a server over HTTP/1.1, on a thread of its own.
//   GET /metrics   the counters, for Prometheus: those of servers, cores and added things (docs/metrics.md)
//   GET /healthz   200: every core has answered within health_timeout; 503 with a line for each that has not, and for
//                  each vital check that failed
//   GET /readyz    200, or 503 with a line for each reason: a server is starting, full, draining or stopped, a check
//                  has failed or has not run yet
//   GET /debug     a page for people, which shows the next four as tables, once a second. It needs no network else
//   GET /debug/cores     JSON: the lag and load of each core; a core that has not answered in time is there as such
//   GET /debug/sessions  JSON: the first sessions of each server, and their queues and ages. ?order=queued (the
//                        default), received, age or silent; ?limit=1 to 200 (50); ?server=, the name of one
//   GET /debug/handlers  JSON: the durations of the handlers of added sites and dispatchers, the slowest first
//   GET /debug/traces    JSON: the slowest operations of added tracers in this minute and the one before
// HEAD works like GET. Other requests get 404, 405, 421 (a host that is not the port's), 401 (without the token), or
// the refusals of HTTP (net/http/refusal.h).
// Owner: the program, on a foreign thread; the runtime and the servers must outlive it. The destructor closes
// its port.
// Affinity: that of Server.
// Cost: a thread, and a service on a Server of its own, which answers while the other servers drain and while cores do
// not turn. A scrape takes some tens of microseconds of that thread, and the time of options.metrics. Scrapes per
// second, connections, bytes and times are bounded.
class Admin {
 public:
  // /healthz checks the cores of this runtime and those of the servers. Errors: invalid_argument (an endpoint that
  // other machines reach, without `remote`, `tls` or `token`; a token with a wrong length or character; a name of a
  // host with a wrong form; a null server); those of Server::listen(); resource_exhausted (no thread).
  [[nodiscard]] static Result<std::unique_ptr<Admin>> make(rt::Runtime& runtime, AdminOptions options = {});

  // Shows the counters of an object on /metrics: admin->add("orders", socket). The same as MetricSources::add(). Any
  // thread.
  template <Countable Thing>
  void add(std::string name, Thing& thing) {
    sources_->add(std::move(name), thing);
  }
  std::size_t remove(std::string_view name) { return sources_->remove(name); }

  [[nodiscard]] const std::string& endpoint() const noexcept { return endpoint_; }  // the bound endpoint
  [[nodiscard]] CounterValues counters() const noexcept { return server_->counters(); }
  [[nodiscard]] AdminCounts refusals() const noexcept;
  Result<void> stop(Instant deadline) { return server_->stop(deadline); }

 private:
  Admin(std::shared_ptr<MetricSources> sources, std::shared_ptr<const AdminCounters> counts,
        std::unique_ptr<rt::Runtime> runtime, std::unique_ptr<Server> server, std::string endpoint)
      : sources_(std::move(sources)),
        counts_(std::move(counts)),
        runtime_(std::move(runtime)),
        server_(std::move(server)),
        endpoint_(std::move(endpoint)) {}

  std::shared_ptr<MetricSources> sources_;       // shared with its services
  std::shared_ptr<const AdminCounters> counts_;  // likewise
  std::unique_ptr<rt::Runtime> runtime_;         // one core, for this port alone
  std::unique_ptr<Server> server_;
  std::string endpoint_;
};

}  // namespace weft::serve
