// SPDX-License-Identifier: MIT
// The C++ blocks of docs/web.md that are not of examples. The test docs.web compares them, docs.guides
// runs them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "guides.h"
#include "weft/net/dialer.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/server/server.h"
#include "weft/serve/web/body_stream.h"
#include "weft/serve/web/files.h"
#include "weft/serve/web/middleware.h"
#include "weft/serve/web/site.h"
#include "weft/sys/clock.h"
#include "weft/sys/path.h"

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using namespace weft;                  // NOLINT(google-build-using-namespace)
using guides::expect;
namespace web = serve::web;

web::Response greet(const web::Request& request) {
  const std::string name = request.param("name");                  // decoded: may have any character
  const std::string times = request.query("times").value_or("1");  // of "?times=2"
  const std::string_view agent = request["User-Agent"];            // a field; empty: there is none
  web::Response response(name + " " + times + " " + std::string(agent));
  response.set("Cache-Control", "no-store");
  return response;
}

Result<web::Response> find_user(const web::Request& request) {
  if (request.param("id") != "7") {
    return Error(Errc::not_found, "no such user");
  }
  return web::Response("{\"name\":\"Ada\"}", "application/json");
}

rt::Task<web::Response> slowly(const web::Request& request) {
  const Result<void> slept = co_await rt::sleep(1ms);
  if (!slept) {
    co_return web::Response(503);  // the connection ended: no peer gets this
  }
  co_return web::Response(std::string(request.body()));
}

Result<web::Site> make_users() {
  web::Router router;
  WEFT_TRY(router.get("/hello/{name}", greet));
  WEFT_TRY(router.get("/users/{id}", find_user));
  WEFT_TRY(router.post("/slowly", slowly));
  web::HttpLimits limits;
  limits.body_max = 64 * 1024;
  return web::Site(std::move(router), limits);
}

web::Response count_to(const web::Request& request) {
  const int last = std::atoi(request.param("last").c_str());
  return web::Response::stream(
      [last](web::BodyWriter& out) -> rt::Task<Result<>> {
        for (int i = 1; i <= last; ++i) {
          if (const auto sent = co_await out.write(std::to_string(i) + "\n"); !sent) {
            co_return sent.error();  // the peer has left
          }
        }
        co_return Result<void>();
      },
      "text/plain");
}

rt::Task<Result<web::Response>> size_of(const web::Request&, web::BodyReader& body) {
  std::size_t size = 0;
  for (;;) {
    const Result<Bytes> part = co_await body.read();  // valid until the next call
    if (!part) {
      co_return part.error();  // late, or the peer has left
    }
    if (part->empty()) {
      co_return web::Response(std::to_string(size) + " bytes");
    }
    size += part->size();
  }
}

Result<web::Site> make_files(const std::string& directory) {
  web::Router router;
  WEFT_TRY(router.get("/files/{path...}", WEFT_TRY(web::Files::open(directory))));
  WEFT_TRY(router.get("/count/{last}", count_to));
  WEFT_TRY(router.post("/size", size_of));
  return web::Site(std::move(router));
}

Result<web::Site> make_guarded() {
  web::Router router;
  web::CorsOptions shop;
  shop.origins = {"https://shop.example"};
  router.use(web::cors(shop));         // for the pages of other sites that may call this one
  router.use(web::security_fields());  // X-Content-Type-Options, X-Frame-Options, Content-Security-Policy, …
  router.use(web::hsts(24h * 365));    // over TLS alone
  router.use(web::compress());         // texts, for clients that take gzip
  router.use(web::filter([](const web::Request& request) -> std::optional<web::Response> {
    return request["Authorization"] == "Bearer secret" ? std::nullopt : std::optional(web::Response(401));
  }));
  WEFT_TRY(router.get("/orders", [] { return "none"; }));
  WEFT_TRY(router.options("/orders", web::preflight(shop)));
  return web::Site(std::move(router));
}

Result<void> say_to_all(serve::Server& server, std::string_view text) {
  const auto frame = WEFT_TRY(serve::SharedFrame::encode(web::WebSocketCodec(), web::Opcode::text, as_bytes(text)));
  return server.publish(serve::GroupId{7}, frame);
}

struct Chat {
  void on_open(web::WebSocketSession& session, const web::Request& request) {
    (void)session.join(serve::GroupId{7});  // fails only for lack of memory
    const std::string hello = "hello " + request.param("name");
    (void)session.send(web::Opcode::text, as_bytes(hello));
  }
  void on_message(web::WebSocketSession& session, const web::Message& message) {
    if (message.kind != web::Opcode::text) {
      return web::close(session, 1003, "texts only");
    }
    (void)say_to_all(*server, message.text());
  }
  serve::Server* server;
};

web::WebSocketOptions compressed() {
  web::WebSocketOptions options;
  options.deflate.emplace();          // both ends forget each message
  options.deflate->message_min = 64;  // bytes; shorter ones are sent as they are
  return options;
}

Result<std::unique_ptr<net::ByteStream>> connect(const std::string& endpoint) {
  net::Dialer dialer(WEFT_TRY(net::parse_endpoint(endpoint, false)), {});
  for (auto progress = WEFT_TRY(dialer.begin()); progress != net::Progress::connected;) {
    std::this_thread::sleep_for(1ms);
    progress = WEFT_TRY(dialer.finish());
  }
  return dialer.take_stream();
}

// Writes the bytes and reads `size` bytes, or to the end of the stream.
std::string exchange(net::ByteStream& stream, const std::string& text, std::size_t size) {
  if (const Bytes bytes = as_bytes(text); !bytes.empty()) {
    (void)stream.write({&bytes, 1});
  }
  std::string answer;
  while (answer.size() < size) {
    std::uint8_t room[4096];
    MutableBytes into(room, std::min(sizeof room, size - answer.size()));
    const sys::IoResult result = stream.read({&into, 1});
    if (result.status == sys::IoResult::Status::would_block) {
      std::this_thread::yield();
    } else if (result.status != sys::IoResult::Status::done) {
      break;
    }
    answer += as_text(Bytes(room).first(result.bytes));
  }
  return answer;
}

// The status and the body of the answer to a request, over a connection of its own.
Result<std::string> ask(const std::string& endpoint, const std::string& line, const std::string& rest = "\r\n") {
  const auto stream = WEFT_TRY(connect(endpoint));
  const std::string request = line + " HTTP/1.1\r\nHost: x\r\nUser-Agent: test\r\nConnection: close\r\n" + rest;
  const std::string answer = exchange(*stream, request, SIZE_MAX);
  return answer.substr(9, 4) + answer.substr(answer.find("\r\n\r\n") + 4);
}

// The texts that a WebSocket server sends to a client that comes, and as the answer to a short text. The mask is zero.
Result<std::string> say(const std::string& endpoint, const std::string& path, const std::string& text) {
  const auto stream = WEFT_TRY(connect(endpoint));
  const std::string request = "GET " + path +
                              " HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  std::string head = exchange(*stream, request, 1);
  while (!head.ends_with("\r\n\r\n")) {
    head += exchange(*stream, "", 1);
  }
  const std::string hello = exchange(*stream, "", 11).substr(2);
  const std::string front{static_cast<char>(0x81), static_cast<char>(0x80 + text.size())};
  const std::string said = exchange(*stream, front + std::string(4, '\0') + text, 2 + text.size()).substr(2);
  return hello + ", " + said;
}

}  // namespace

Result<void> guides::web_servers() {
  const web::Site site = WEFT_TRY(make_users());
  rt::RuntimeOptions cores;
  cores.cores = 2;
  const auto runtime = WEFT_TRY(rt::Runtime::start(cores));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  serve::ListenerOptions options;
  options.limits = web::session_limits();
  const std::string at =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", options, site.services(), site.codec()));
  WEFT_TRY(expect(WEFT_TRY(ask(at, "GET /hello/Ada%20L?times=2")), "200 Ada L 2 test"));
  WEFT_TRY(expect(WEFT_TRY(ask(at, "GET /users/7")), "200 {\"name\":\"Ada\"}"));
  WEFT_TRY(expect(WEFT_TRY(ask(at, "GET /users/8")), "404 404 Not Found\n"));
  WEFT_TRY(expect(WEFT_TRY(ask(at, "POST /slowly", "Content-Length: 4\r\n\r\ntext")), "200 text"));
  const std::string folder = WEFT_TRY(sys::make_private_directory());
  std::ofstream(folder + "/a.txt") << "a file";
  const web::Site files = WEFT_TRY(make_files(folder));
  const std::string there =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", options, files.services(), files.codec()));
  WEFT_TRY(expect(WEFT_TRY(ask(there, "GET /files/a.txt")), "200 a file"));
  WEFT_TRY(expect(WEFT_TRY(ask(there, "GET /count/2")), "200 2\r\n1\n\r\n2\r\n2\n\r\n0\r\n\r\n"));
  WEFT_TRY(expect(WEFT_TRY(ask(there, "POST /size", "Content-Length: 4\r\n\r\ntext")), "200 4 bytes"));
  std::filesystem::remove_all(folder);
  const web::Site guarded = WEFT_TRY(make_guarded());
  const std::string orders =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", options, guarded.services(), guarded.codec()));
  WEFT_TRY(expect(WEFT_TRY(ask(orders, "GET /orders", "Authorization: Bearer secret\r\n\r\n")), "200 none"));
  WEFT_TRY(expect(WEFT_TRY(ask(orders, "GET /orders")), "401 "));
  web::Router rooms;
  WEFT_TRY(rooms.websocket("/chat/{name}", [&server] { return Chat{server.get()}; }, compressed()));
  const web::Site chat(std::move(rooms));
  const std::string room =
      WEFT_TRY(server->listen<web::HttpCodec>("tcp://127.0.0.1:0", options, chat.services(), chat.codec()));
  WEFT_TRY(expect(WEFT_TRY(say(room, "/chat/Ada", "hi")), "hello Ada, hi"));
  return server->stop(sys::now() + 5s);
}
