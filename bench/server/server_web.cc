// SPDX-License-Identifier: MIT
// Weft's HTTP and WebSocket, as a user writes it: GET /SIZE answers so many letters, GET /file/SIZE a file, GET /
// upgrades to an echo, and GET /publish to messages for all. The variant `logged` writes a line of each request to a
// file, and `log_off` has the same middleware with its component off.
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "bench/server/host.h"
#include "bench/server/must.h"
#include "bench/server/web_wire.h"
#include "weft/logging/log.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/frame/shared_frame.h"
#include "weft/serve/server/server.h"
#include "weft/serve/trace/logged.h"
#include "weft/serve/trace/trace_exporter.h"
#include "weft/serve/trace/traced.h"
#include "weft/serve/web/files.h"
#include "weft/serve/web/site.h"
#include "weft/sync/counter_block.h"
#include "weft/sys/path.h"

namespace bench {
namespace {

namespace web = weft::serve::web;

// A tally for each core's thread.
Tally& tally_of_thread(std::vector<Tally>& tallies) {
  static std::atomic<std::size_t> next{0};
  thread_local Tally& mine = tallies.at(next++);
  return mine;
}

constexpr weft::serve::GroupId kAll{1};

// Each message of a client goes to all.
struct Publisher {
  weft::serve::Server* server;
  std::vector<Tally>* tallies;

  void on_open(web::WebSocketSession& session) const {
    if (!session.join(kAll)) {
      session.abort();
    }
  }
  void on_message(web::WebSocketSession& session, const web::Message& message) const {
    tally_of_thread(*tallies).add(Tally::messages);
    const auto frame = weft::serve::SharedFrame::encode(session.codec(), message.kind, message.body);
    if (!frame || !server->publish(kAll, *frame)) {
      session.abort();
    }
  }
};

constexpr double kTracedRatio = 0.01;  // of the requests

std::shared_ptr<weft::trace::Tracer> make_tracer() {
  weft::trace::TracerOptions options;
  options.service = "bench";
  options.ratio = kTracedRatio;
  return must(weft::trace::Tracer::make(std::move(options)));
}

using Exporter = weft::Result<std::unique_ptr<weft::serve::TraceExporter>>;

weft::rt::Task<Exporter> open_exporter(std::shared_ptr<weft::trace::Tracer> tracer, std::string url) {
  const auto host = std::make_shared<weft::serve::ClientHost>(*weft::rt::Core::current());
  weft::serve::TraceExporterOptions options;
  options.url = std::move(url);
  co_return weft::serve::TraceExporter::open(host, std::move(tracer), std::move(options));
}

// The log of the requests, in a file that ends with the program.
class RequestLog {
 public:
  explicit RequestLog(weft::logging::Level level) : directory_(must(weft::sys::make_private_directory())) {
    weft::logging::LogOptions options;
    options.settings.level = level;
    options.settings.repeats_max = 0;  // each request has its line
    options.settings.file = directory_ + "/requests.log";
    options.settings.rotation = {std::uint64_t{64} << 20, 1};
    log_ = must(weft::logging::Log::make(std::move(options)));
  }
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;
  ~RequestLog() {
    log_.reset();
    std::filesystem::remove_all(directory_);
  }
  [[nodiscard]] weft::logging::Logger logger() const { return must(log_->logger("web")); }

 private:
  std::string directory_;
  std::shared_ptr<weft::logging::Log> log_;
};

// The counts of refusals, by their reasons.
Json reasons_of(const web::WebCounts& counts) {
  Json reasons = Json::object();
  const std::vector<std::uint64_t> values = weft::sync::read_counters(counts);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const weft::CounterRow& row = web::kWebRows[i];
    if (row.metric.find("refused") != std::string_view::npos) {
      reasons[std::string(row.member)] = values[i];
    }
  }
  return reasons;
}

// Of a listener beside bad peers, and of its WebSockets.
void limit(const HostOptions& options, weft::serve::ListenerOptions& listener, web::WebSocketOptions& socket) {
  const std::chrono::milliseconds patience(options.patience_ms);
  listener.limits.handshake_timeout = listener.limits.frame_timeout = listener.limits.body_timeout = patience;
  socket.session.frame_timeout = patience;
  socket.limits.message_max = 64 * 1024;
  socket.deflate.emplace();
}

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  weft::rt::RuntimeOptions runtime_options;
  runtime_options.cores = options.threads;
  // All live as long as the program.
  auto* const runtime = must(weft::rt::Runtime::start(runtime_options)).release();
  auto* const server = must(weft::serve::Server::make(*runtime)).release();
  web::Router router;
  const auto tracer = options.variant == "traced" ? make_tracer() : nullptr;
  if (tracer != nullptr) {
    router.use(web::traced(tracer));
  } else if (!options.variant.empty()) {
    const bool off = options.variant == "log_off";
    if (!off && options.variant != "logged") {
      give_up("weft: there is no such variant");
    }
    static const RequestLog log(off ? weft::logging::Level::off : weft::logging::Level::info);
    router.use(web::logged(log.logger()));
  }
  const std::string text = letters(kBodyMax);
  auto routed = router.get("/{size}", [&tallies, text](const web::Request& request) -> weft::Result<web::Response> {
    tally_of_thread(tallies).add(Tally::messages);
    const std::string wanted = request.param("size");
    std::size_t size = 0;
    if (std::from_chars(wanted.data(), wanted.data() + wanted.size(), size).ec != std::errc() || size > text.size()) {
      return web::Response(404);
    }
    return web::Response(text.substr(0, size));
  });
  weft::serve::ListenerOptions listener;
  listener.socket.backlog = 4096;
  listener.limits = web::session_limits();
  web::WebSocketOptions socket;
  socket.limits.message_max = kBodyMax;
  if (options.patience_ms > 0) {
    limit(options, listener, socket);
  }
  if (routed) {
    routed = router.websocket(
        "/",
        [&tallies](web::WebSocketSession& session, const web::Message& message) {
          tally_of_thread(tallies).add(Tally::messages);
          (void)session.send(message.kind, message.body);
        },
        socket);
  }
  if (routed) {
    routed = router.websocket("/publish", [server, &tallies] { return Publisher{server, &tallies}; }, socket);
  }
  if (routed && !options.root.empty()) {
    const auto files = must(web::Files::open(options.root));
    routed = router.get("/file/{path...}", [&tallies, files](const web::Request& request) {
      tally_of_thread(tallies).add(Tally::messages);
      return files(request);
    });
  }
  if (routed && tracer != nullptr) {  // the collector
    routed = router.post("/v1/traces", [](const web::Request&) { return web::Response(200); });
  }
  if (!routed) {
    give_up("weft: " + std::string(routed.error().message()));
  }
  web::HttpLimits limits;
  limits.requests_max = std::numeric_limits<std::uint32_t>::max();  // the connections of the generator stay
  auto* const site = new web::Site(std::move(router), limits);
  const std::string endpoint =
      must(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", listener, site->services(), site->codec()));
  const auto port = static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)));
  if (tracer != nullptr) {
    std::string url = "http://127.0.0.1:" + std::to_string(port) + "/v1/traces";
    auto opening = must(must(weft::rt::spawn(runtime->core(0), open_exporter(tracer, std::move(url)))).get());
    (void)opening.release();
  }
  return {"Weft", port, [site] { return reasons_of(site->counts()); }};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "traced, logged, log_off", bench::start); }
