// SPDX-License-Identifier: MIT
// The C++ blocks of docs/web.md about clients. The test docs.web compares them, docs.guides runs them.
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "guides.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/server/server.h"
#include "weft/serve/web/site.h"
#include "weft/serve/web_client/http_client.h"
#include "weft/serve/web_client/websocket_client.h"
#include "weft/sys/clock.h"

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using namespace weft;                  // NOLINT(google-build-using-namespace)
using guides::expect;
namespace web = serve::web;

rt::Task<Result<void>> fetch(std::string url) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());  // one for all clients of this core
  WEFT_CO_TRY(const auto http, web::HttpClient::open(host));
  WEFT_CO_TRY(const auto hello, co_await http->get(url + "/hello"));
  WEFT_CO_TRY(expect(hello.body(), "hello"));
  WEFT_CO_TRY(expect(hello["Content-Type"], "text/plain; charset=utf-8"));
  const auto none = co_await http->get(url + "/none");
  if (none && none->status() != 404) {  // an answer, too
    co_return Error(Errc::protocol_error, "there is no such page");
  }
  web::ClientRequest request = web::ClientRequest::post(url + "/echo", "text", "text/plain");
  request.set("Authorization", "Bearer secret").set_deadline(sys::now() + 10s).follow_redirects(3);
  WEFT_CO_TRY(const auto echo, co_await http->request(request));
  WEFT_CO_TRY(expect(echo.body(), "text"));
  co_return co_await http->close(sys::now() + 10s);
}

rt::Task<Result<std::size_t>> copy_pieces(web::HttpClient& http, std::string url) {
  web::ClientRequest request("POST", url + "/echo");
  request.stream_body([](web::BodyWriter& out) -> rt::Task<Result<>> {
    for (int i = 0; i < 1000; ++i) {
      if (const auto sent = co_await out.write(std::string(1000, 'x')); !sent) {
        co_return sent.error();  // the server has left, or answered already
      }
    }
    co_return Result<void>();
  });
  WEFT_CO_TRY(auto answer, co_await http.stream(std::move(request)));
  std::size_t size = 0;
  for (;;) {
    WEFT_CO_TRY(const Bytes part, co_await answer.reader().read());  // valid until the next call
    if (part.empty()) {
      co_return size;
    }
    size += part.size();
  }
}

rt::Task<Result<void>> chat(std::shared_ptr<serve::ClientHost> host, std::string url) {
  web::WebSocketClientOptions options;
  options.deflate.emplace();  // if the server takes it
  WEFT_CO_TRY(const auto socket, co_await web::WebSocketClient::connect(host, url + "/chat", options));
  WEFT_CO_TRY(co_await socket->send("hello"));
  WEFT_CO_TRY(const auto message, co_await socket->receive(sys::now() + 10s));
  WEFT_CO_TRY(expect(message.body, "hello"));
  co_return co_await socket->close(1000, "enough");
}

rt::Task<Result<void>> use_all(std::string authority) {
  WEFT_CO_TRY(co_await fetch("http://" + authority));
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  {
    WEFT_CO_TRY(const auto http, web::HttpClient::open(host));
    WEFT_CO_TRY(const std::size_t size, co_await copy_pieces(*http, "http://" + authority));
    WEFT_CO_TRY(expect(std::to_string(size), "1000000"));
  }
  co_return co_await chat(host, "ws://" + authority);
}

}  // namespace

Result<void> guides::web_clients() {
  web::Router router;
  WEFT_TRY(router.get("/hello", [] { return "hello"; }));
  WEFT_TRY(router.post("/echo", [](const web::Request& request) { return std::string(request.body()); }));
  WEFT_TRY(router.websocket("/chat", [](web::WebSocketSession& session, const web::Message& message) {
    (void)session.send(message.kind, message.body);
  }));
  const web::Site site(std::move(router));
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string at =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", {}, site.services(), site.codec()));
  WEFT_TRY(rt::spawn(runtime->core(0).loop(), use_all(at.substr(6))).get());
  return server->stop(sys::now() + 5s);
}
