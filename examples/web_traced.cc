// SPDX-License-Identifier: MIT
// A web server whose requests are spans of traces. `web_traced http://127.0.0.1:4318/v1/traces 8080` serves, and sends
// the spans to that collector, until its input ends. Without arguments it is its own collector and asks itself once.
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/server/server.h"
#include "weft/serve/trace/trace_exporter.h"
#include "weft/serve/trace/traced.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/sys/clock.h"
#include "weft/trace/tracer.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

// [site]
Result<web::Site> make_site(const std::shared_ptr<trace::Tracer>& tracer) {
  web::Router router;
  router.use(web::traced(tracer));  // around the routes that are added from now on
  WEFT_TRY(router.get("/orders/{id}", [](const web::Request& request) {
    trace::Span query = request.span().child("SELECT orders", trace::SpanKind::client);
    query.set("db.system.name", "postgresql");
    return "order " + request.param("id");  // here the span of the query ends
  }));
  return web::Site(std::move(router));
}
// [site]

// [exporter]
rt::Task<Result<std::unique_ptr<serve::TraceExporter>>> open_exporter(std::shared_ptr<trace::Tracer> tracer,
                                                                      std::string url) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  serve::TraceExporterOptions options;
  options.url = std::move(url);
  co_return serve::TraceExporter::open(host, std::move(tracer), std::move(options));
}
// [exporter]

// [client]
rt::Task<Result<std::string>> buy(std::shared_ptr<trace::Tracer> tracer, std::string url) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto http, web::HttpClient::open(host));
  const trace::Span span = tracer->start("buy");
  WEFT_CO_TRY(auto answer, co_await web::traced_request(*http, span, web::ClientRequest::get(url + "/orders/7")));
  co_return std::string(answer.body());
}
// [client]

// Counts the spans that come.
Result<web::Site> make_collector(std::atomic<int>& spans) {
  web::Router router;
  WEFT_TRY(router.post("/v1/traces", [&spans](const web::Request& request) {
    const std::string_view body = request.body();
    for (std::size_t at = body.find("\"spanId\""); at != std::string_view::npos; at = body.find("\"spanId\"", at + 1)) {
      ++spans;
    }
    return web::Response("{}", "application/json");
  }));
  return web::Site(std::move(router));
}

Result<std::string> listen(serve::Server& server, const web::Site& site, const std::string& port) {
  serve::ListenerOptions options;
  options.limits = web::session_limits();
  return server.listen<web::HttpCodec>("tcp://127.0.0.1:" + port, options, site.services(), site.codec());
}

Result<void> run(const char* collector, const std::string& port) {
  // [tracer]
  trace::TracerOptions options;
  options.service = "orders";
  options.resource = {{"service.version", "1.2"}};
  options.ratio = 1.0;  // of the traces that begin here: 0.01 in production
  const auto tracer = WEFT_TRY(trace::Tracer::make(options));
  // [tracer]
  std::atomic<int> spans{0};
  const web::Site site = WEFT_TRY(make_site(tracer));
  const web::Site counting = WEFT_TRY(make_collector(spans));
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string bound = WEFT_TRY(listen(*server, site, port));
  const std::string counts = WEFT_TRY(listen(*server, counting, "0"));
  const std::string url = collector != nullptr ? collector : "http" + counts.substr(3) + "/v1/traces";
  // [run]
  auto opening = WEFT_TRY(rt::spawn(runtime->core(0), open_exporter(tracer, url)));
  const auto exporter = WEFT_TRY(opening.get());
  // [run]
  std::printf("serving at %s\n", bound.c_str());
  std::fflush(stdout);
  if (collector != nullptr) {
    while (std::getchar() != EOF) {
    }
  } else {
    auto buying = WEFT_TRY(rt::spawn(runtime->core(0), buy(tracer, "http" + bound.substr(3))));
    std::printf("%s\n", WEFT_TRY(buying.get()).c_str());
  }
  // [stop]
  auto stopping = WEFT_TRY(rt::spawn(runtime->core(0), exporter->stop(sys::now() + 30s)));
  WEFT_TRY(stopping.get());  // sends the finished spans; timed_out: the rest is dropped
  // [stop]
  if (collector == nullptr) {
    std::printf("%d spans\n", spans.load());  // buy, its request, the request at the server, the query
  }
  return server->stop(sys::now() + 5s);
}

int main(int count, char** arguments) {
  if (const auto result = run(count > 1 ? arguments[1] : nullptr, count > 2 ? arguments[2] : "0"); !result) {
    std::fprintf(stderr, "web_traced: %s\n", result.error().message().c_str());
    return 1;
  }
}
