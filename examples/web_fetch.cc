// SPDX-License-Identifier: MIT
// A client of HTTP and WebSocket. `web_fetch https://example.com/` prints the answer, and follows up to five redirects;
// `web_fetch ws://host/path TEXT` sends the text as a message and prints the one that comes back. Without a URL it asks
// a server of its own.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/server/server.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/serve/web_client/websocket_client.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

// Prints the head and the body as it comes.
rt::Task<Result<void>> fetch(std::string url) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(const auto http, web::HttpClient::open(host));
  web::ClientRequest request = web::ClientRequest::get(std::move(url));
  request.set("User-Agent", "web_fetch").follow_redirects(5);
  WEFT_CO_TRY(auto answer, co_await http->stream(std::move(request)));
  const std::string fields(answer.fields());
  std::printf("%u %s\n%s\n", answer.status(), answer.url().c_str(), fields.c_str());
  for (;;) {
    WEFT_CO_TRY(const Bytes part, co_await answer.reader().read());
    if (part.empty()) {
      std::printf("\n");
      co_return co_await http->close(sys::now() + 5s);
    }
    std::fwrite(part.data(), 1, part.size(), stdout);
  }
}

// Sends a text, and prints the message that comes back.
rt::Task<Result<void>> say(std::string url, std::string text) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  web::WebSocketClientOptions options;
  options.deflate.emplace();
  WEFT_CO_TRY(const auto socket, co_await web::WebSocketClient::connect(host, std::move(url), options));
  WEFT_CO_TRY(co_await socket->send(text));
  WEFT_CO_TRY(const auto message, co_await socket->receive(sys::now() + 30s));
  std::printf("%s\n", message.body.c_str());
  co_return co_await socket->close();
}

rt::Task<Result<void>> use(std::string url, std::string text) {
  if (url.starts_with("ws")) {
    co_return co_await say(std::move(url), std::move(text));
  }
  co_return co_await fetch(std::move(url));
}

// A server of its own, which echoes.
Result<web::Site> make_site() {
  web::Router router;
  WEFT_TRY(router.get("/", [] { return web::Response(302).set("Location", "/hello"); }));
  WEFT_TRY(router.get("/hello", [] { return "hello"; }));
  WEFT_TRY(router.websocket("/echo", [](web::WebSocketSession& session, const web::Message& message) {
    (void)session.send(message.kind, message.body);  // fails if the client has left
  }));
  return web::Site(std::move(router));
}

Result<void> run(const std::string& url, const std::string& text) {
  const web::Site site = WEFT_TRY(make_site());
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  rt::Loop& loop = runtime->core(0).loop();
  if (!url.empty()) {
    return rt::spawn(loop, use(url, text)).get();
  }
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string at =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", {}, site.services(), site.codec()));
  WEFT_TRY(rt::spawn(loop, use("http" + at.substr(3), "")).get());
  WEFT_TRY(rt::spawn(loop, use("ws" + at.substr(3) + "/echo", "hello over WebSocket")).get());
  return server->stop(sys::now() + 5s);
}

int main(int count, char** arguments) {
  if (const auto result = run(count > 1 ? arguments[1] : "", count > 2 ? arguments[2] : "hello"); !result) {
    std::fprintf(stderr, "web_fetch: %s\n", result.error().message().c_str());
    return 1;
  }
}
