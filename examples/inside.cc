// SPDX-License-Identifier: MIT
// A web server with an admin port that shows its insides. `inside 8080 9100` serves on these ports until its input
// ends: open http://127.0.0.1:9100/debug. Without arguments it asks itself, and prints the page of its handlers.
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/server/admin.h"
#include "weft/serve/server/server.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

// [frames]
struct Echo {
  using Session = serve::SessionOf<serve::HeaderCodec>;
  serve::Dispatcher<Session> dispatcher;

  Echo() {
    dispatcher.time_handlers();  // those that are added from now on
    (void)dispatcher.on(1, [](Session& session, const serve::HeaderCodec::Frame& frame) {
      (void)session.send(frame.header, frame.body);
    });
  }
  void on_frame(Session& session, const serve::HeaderCodec::Frame& frame) { dispatcher.dispatch(session, frame); }
};
// [frames]

rt::Task<std::string> report(const web::Request& /*request*/) {
  (void)co_await rt::sleep(20ms);
  co_return "done";
}

Result<web::Site> make_site() {
  web::Router router;
  WEFT_TRY(router.get("/orders/{id}", [](const web::Request& request) { return "order " + request.param("id"); }));
  WEFT_TRY(router.get("/report", report));
  return web::Site(std::move(router));
}

// Two requests to the site, then the page of handlers of the admin port.
rt::Task<Result<std::string>> look(std::string site, std::string admin) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto http, web::HttpClient::open(host));
  WEFT_CO_TRY(const auto order, co_await http->get(site + "/orders/7"));
  WEFT_CO_TRY(const auto report, co_await http->get(site + "/report"));
  WEFT_CO_TRY(const auto page, co_await http->get(admin + "/debug/handlers"));
  co_return std::string(order.body()) + "\n" + std::string(report.body()) + "\n" + std::string(page.body());
}

// [remote]
serve::AdminOptions remote_port(std::shared_ptr<net::TlsServer> tls, std::string token) {
  serve::AdminOptions options;
  options.endpoint = "tcp://*:9100";
  options.remote = true;
  options.tls = std::move(tls);
  options.token = std::move(token);  // 16 to 256 characters, from a file or a vault
  return options;
}
// [remote]

Result<void> run(const std::string& port, const std::string& admin_port, bool stays) {
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const web::Site site = WEFT_TRY(make_site());
  serve::ListenerOptions listener;
  listener.limits = web::session_limits();
  const std::string bound =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:" + port, listener, site.services(), site.codec()));
  WEFT_TRY(server->listen<serve::HeaderCodec>("tcp://127.0.0.1:0", {}, [] { return Echo(); }));
  // [admin]
  serve::AdminOptions options;
  options.endpoint = "tcp://127.0.0.1:" + admin_port;
  options.servers.push_back({"shop", server.get()});
  const auto admin = WEFT_TRY(serve::Admin::make(*runtime, options));
  admin->add("shop", site);  // its counters, and a histogram for each route
  // [admin]
  if (const auto open = serve::Admin::make(*runtime, remote_port(nullptr, "")); !open) {
    std::printf("%s\n", open.error().message().c_str());
  }
  std::printf("serving at %s, and http%s/debug\n", bound.c_str(), admin->endpoint().c_str() + 3);
  std::fflush(stdout);
  if (stays) {
    while (std::getchar() != EOF) {
    }
  } else {
    auto looking =
        WEFT_TRY(rt::spawn(runtime->core(0), look("http" + bound.substr(3), "http" + admin->endpoint().substr(3))));
    std::printf("%s\n", WEFT_TRY(looking.get()).c_str());
  }
  return server->stop(sys::now() + 5s);
}

int main(int count, char** arguments) {
  if (const auto result = run(count > 2 ? arguments[1] : "0", count > 2 ? arguments[2] : "0", count > 2); !result) {
    std::fprintf(stderr, "inside: %s\n", result.error().message().c_str());
    return 1;
  }
}
