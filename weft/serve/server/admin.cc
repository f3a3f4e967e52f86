// SPDX-License-Identifier: MIT
#include "weft/serve/server/admin.h"

#include <utility>

#include "weft/net/admit/ip_prefix.h"
#include "weft/net/endpoint.h"
#include "weft/serve/server/http_codec.h"
#include "weft/sys/address.h"

namespace weft::serve {

namespace {

// True: only this machine can reach the endpoint.
bool is_local(const net::Endpoint& endpoint) {
  if (endpoint.transport != net::Transport::tcp) {
    return true;
  }
  if (endpoint.wildcard) {
    return false;
  }
  const auto address = sys::SocketAddress::parse_numeric(endpoint.host, 0);
  return address ? net::IpPrefix::parse("127.0.0.0/8")->contains(address->ip_bytes()) ||
                       net::IpPrefix::parse("::1")->contains(address->ip_bytes())
                 : endpoint.host == "localhost";
}

// Shared by the services of all cores.
struct Shared {
  std::shared_ptr<const MetricSources> sources;
  AdminOptions options;
};

class AdminService {
 public:
  using HttpSession = SessionOf<HttpCodec>;

  AdminService(std::shared_ptr<const Shared> shared, rt::Core& core) : shared_(std::move(shared)), core_(core) {}

  void on_frame(HttpSession& session, const HttpFrame& frame) {
    const HttpRequest& request = frame.header;
    HttpResponse response = request;
    body_.clear();
    fill(request, response);
    if (body_.empty()) {
      body_ = std::to_string(response.status) + "\n";
    }
    Bytes body = as_bytes(body_);
    if (request.head()) {
      response.content_length = body.size();
      body = {};
    }
    if (!session.send(response, body) || !response.keep_alive) {
      session.close();
    }
  }

 private:
  void fill(const HttpRequest& request, HttpResponse& response) {
    const bool known = request.path == "/metrics" || request.path == "/healthz" || request.path == "/readyz";
    if (request.refusal != 0) {
      return;
    }
    if (!known) {
      response.status = 404;
    } else if (request.method != "GET" && !request.head()) {
      response.status = 405;
      response.allow = "GET, HEAD";
    } else if (request.path == "/healthz") {
      body_ = "alive\n";
    } else {
      try {
        request.path == "/metrics" ? metrics(response) : readiness(response);
      } catch (...) {  // a function of the program threw, or no memory
        response.status = 500;
        body_.clear();
      }
    }
  }

  void metrics(HttpResponse& response) {
    if (!scrapes_.try_take(shared_->options.scrapes, core_.loop().now())) {
      response.status = 429;
      return;
    }
    PrometheusWriter writer;
    shared_->sources->write(writer);
    if (shared_->options.metrics) {
      shared_->options.metrics(writer);
    }
    response.content_type = PrometheusWriter::kContentType;
    body_ = writer.text();
  }

  void readiness(HttpResponse& response) {
    for (const NamedServer& named : shared_->options.servers) {
      add_reason(named.name, named.server->ready());
    }
    if (shared_->options.ready) {
      add_reason("", shared_->options.ready());
    }
    if (body_.empty()) {
      body_ = "ready\n";
    } else {
      response.status = 503;
      body_ = "not ready\n" + body_;
    }
  }
  void add_reason(const std::string& name, const Result<void>& ready) {
    if (!ready) {
      body_ += name.empty() ? name : name + ": ";
      body_ += ready.error().message() + "\n";
    }
  }

  std::shared_ptr<const Shared> shared_;
  rt::Core& core_;
  net::TokenBucket scrapes_;
  std::string body_;
};

}  // namespace

Result<std::unique_ptr<Admin>> Admin::make(rt::Runtime& runtime, AdminOptions options) {
  if (!HttpCodec::supported()) {
    return Error(Errc::not_supported, "an admin port needs a build with the library http_parser");
  }
  if (!is_local(WEFT_TRY(net::parse_endpoint(options.endpoint, true))) && !options.remote) {
    return Error(Errc::invalid_argument, "an admin port that other machines reach needs AdminOptions::remote");
  }
  for (const NamedServer& named : options.servers) {
    if (named.server == nullptr) {
      return Error(Errc::invalid_argument, "a server of the admin port is null");
    }
  }
  ServerOptions server_options;
  server_options.sessions_max = options.connections_max;
  server_options.memory_max = server_options.core_memory_max = 64u * 1024 * 1024;
  auto server = WEFT_TRY(Server::make(runtime, server_options));
  ListenerOptions listener;
  listener.accept = AcceptMode::hand_off;
  listener.limits.handshake_timeout = options.request_timeout;
  listener.limits.idle_timeout = options.idle_timeout;
  listener.limits.message_rate = {100, 32};  // pipelined requests do not occupy a core
  const HttpCodec codec(options.head_max, 8 * 1024);
  const std::string endpoint = options.endpoint;
  const auto sources = std::make_shared<MetricSources>();
  for (const NamedServer& named : options.servers) {
    sources->add(named.name, *named.server);
  }
  sources->add("", runtime);
  const auto shared = std::make_shared<const Shared>(Shared{sources, std::move(options)});
  std::string bound = WEFT_TRY(server->listen<HttpCodec>(
      endpoint, listener, [shared](rt::Core& core) { return AdminService(shared, core); }, codec));
  return std::unique_ptr<Admin>(new Admin(sources, std::move(server), std::move(bound)));
}

}  // namespace weft::serve
