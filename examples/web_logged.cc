// SPDX-License-Identifier: MIT
// A web server with a log: a line of each request and of each connection that ends, and lines of the program.
// `web_logged 8080` serves, and writes to standard error, until its input ends. Without arguments it asks itself twice,
// and prints the lines of its log.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "weft/logging/log.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/server/server.h"
#include "weft/serve/session/record_log.h"
#include "weft/serve/trace/logged.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

// [site]
Result<web::Site> make_site(logging::Log& log) {
  const logging::Logger orders = WEFT_TRY(log.logger("shop.orders"));
  web::Router router;
  router.use(web::logged(WEFT_TRY(log.logger("web"))));  // a line of each request of the routes from now on
  WEFT_TRY(router.get("/orders/{id}", [orders](const web::Request& request) {
    const std::string id = request.param("id");
    orders.debug("order read", {{"order", id}, {"peer", request.session().peer_address()}});
    return "order " + id;
  }));
  return web::Site(std::move(router));
}
// [site]

rt::Task<Result<std::string>> ask(std::string url) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto http, web::HttpClient::open(host));
  WEFT_CO_TRY(auto answer, co_await http->get(url));
  co_return std::string(answer.body());
}

// Asks for two orders. Between them the level of a component changes.
Result<void> demonstrate(rt::Runtime& runtime, logging::Log& log, const std::string& url) {
  auto first = WEFT_TRY(rt::spawn(runtime.core(0), ask(url + "/orders/7")));
  std::printf("%s\n", WEFT_TRY(first.get()).c_str());
  // [level]
  WEFT_TRY(log.set_level("shop", logging::Level::debug));  // of shop.orders, too; any thread, at any time
  // [level]
  auto second = WEFT_TRY(rt::spawn(runtime.core(0), ask(url + "/orders/8")));
  std::printf("%s\n", WEFT_TRY(second.get()).c_str());
  return {};
}

Result<void> run(const std::string& port, const std::string& file) {
  // [log]
  logging::LogOptions options;
  options.settings.level = logging::Level::info;
  options.settings.levels = {"serve.session=warning"};       // of a component and of those below it
  options.settings.format = logging::Format::json;           // or text: logfmt
  options.settings.file = file;                              // empty: standard error, or the journal
  options.settings.rotation = {std::uint64_t{64} << 20, 5};  // 64 MiB in FILE, and five older ones
  const auto log = WEFT_TRY(logging::Log::make(options));
  // [log]
  const web::Site site = WEFT_TRY(make_site(*log));
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  // [server]
  serve::ServerOptions server_options;
  server_options.log = WEFT_TRY(serve::log_records(*log));
  const auto server = WEFT_TRY(serve::Server::make(*runtime, server_options));
  // [server]
  serve::ListenerOptions listener;
  listener.limits = web::session_limits();
  const std::string bound =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:" + port, listener, site.services(), site.codec()));
  std::printf("serving at %s\n", bound.c_str());
  std::fflush(stdout);
  if (file.empty()) {
    while (std::getchar() != EOF) {
    }
  } else {
    WEFT_TRY(demonstrate(*runtime, *log, "http" + bound.substr(3)));
  }
  WEFT_TRY(server->stop(sys::now() + 5s));
  // [stop]
  log->stop(sys::now() + 5s);  // writes the lines that wait; the destructor does the same
  // [stop]
  return {};
}

// Whether the file has a line of each request, and of the order that was read after the change of the level.
bool print_lines(const std::string& file) {
  int requests = 0;
  int orders = 0;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::printf("%s\n", line.c_str());
    requests += line.find(R"("component":"web","event":"request","method":"GET")") != std::string::npos ? 1 : 0;
    orders += line.find(R"("component":"shop.orders","event":"order read","order":"8")") != std::string::npos ? 1 : 0;
  }
  return requests == 2 && orders == 1;
}

int main(int count, char** arguments) {
  if (count > 1) {
    const auto result = run(arguments[1], "");
    if (!result) {
      std::fprintf(stderr, "web_logged: %s\n", result.error().message().c_str());
    }
    return result ? 0 : 1;
  }
  const auto directory = sys::make_private_directory();
  const auto result = directory ? run("0", *directory + "/log") : directory.error();
  const bool complete = result && print_lines(*directory + "/log");
  if (directory) {
    std::filesystem::remove_all(*directory);
  }
  if (!complete) {
    std::fprintf(stderr, "web_logged: %s\n", result ? "a line is missing" : result.error().message().c_str());
    return 1;
  }
}
