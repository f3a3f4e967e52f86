// SPDX-License-Identifier: MIT
// A chat for browsers on every core: a page, and a WebSocket whose texts go to all. `web_chat 8080 examples/web_chat`
// serves http://127.0.0.1:8080/?name=ada until it is ended; without arguments it starts and stops.
#include <cstdio>
#include <string>
#include <thread>
#include <unordered_map>

#include "weft/serve/server/server.h"
#include "weft/serve/web/files.h"
#include "weft/serve/web/middleware.h"
#include "weft/serve/web/site.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

constexpr serve::GroupId kRoom{1};

// One for each core. A text is encoded once, and sent to the sessions of all cores.
class Chat {
 public:
  explicit Chat(serve::Server& server) : server_(&server) {}

  void on_open(web::WebSocketSession& session, const web::Request& request) {
    if (!session.join(kRoom)) {
      return web::close(session, 1013, "no memory");
    }
    const std::string name = request.query("name").value_or("");
    names_[session.id().value] = name.empty() || name.size() > 40 ? "someone" : name;
    say(session, "joined");
  }
  void on_message(web::WebSocketSession& session, const web::Message& message) {
    if (message.kind != web::Opcode::text) {
      return web::close(session, 1003, "texts only");
    }
    say(session, message.text());
  }
  void on_close(web::WebSocketSession& session, const Error&) {
    say(session, "left");
    names_.erase(session.id().value);
  }

 private:
  void say(web::WebSocketSession& session, std::string_view text) {
    const std::string line = names_[session.id().value] + ": " + std::string(text);
    if (const auto frame = serve::SharedFrame::encode(web::WebSocketCodec(), web::Opcode::text, as_bytes(line))) {
      (void)server_->publish(kRoom, *frame);  // fails while the server stops
    }
  }

  serve::Server* server_;
  std::unordered_map<std::uint64_t, std::string> names_;  // by session
};

Result<web::Site> make_site(serve::Server& server, const std::string& pages) {
  web::WebSocketOptions options;
  options.limits.message_max = 4 * 1024;
  options.ping_every = 1min;  // a page that only listens is not idle
  options.session.slow_consumer = serve::SlowConsumer::drop_oldest;
  options.session.message_rate = {.per_second = 10, .burst = 20};
  web::Router router;
  router.use(web::security_fields());
  WEFT_TRY(router.websocket("/chat", [&server] { return Chat(server); }, options));
  if (!pages.empty()) {
    WEFT_TRY(router.get("/{path...}", WEFT_TRY(web::Files::open(pages))));
  }
  return web::Site(std::move(router));
}

Result<void> serve_at(const std::string& port, const std::string& pages) {
  const auto runtime = WEFT_TRY(rt::Runtime::start());  // a thread for each core
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const web::Site site = WEFT_TRY(make_site(*server, pages));
  serve::ListenerOptions options;
  options.limits = web::session_limits();
  const std::string endpoint = "tcp://127.0.0.1:" + port;
  const std::string bound = WEFT_TRY(server->listen<web::HttpCodec>(endpoint, options, site.services(), site.codec()));
  std::printf("serving at %s\n", bound.c_str());
  std::fflush(stdout);
  while (!pages.empty()) {
    std::this_thread::sleep_for(1h);
  }
  return server->stop(sys::now() + 5s);
}

int main(int count, char** arguments) {
  const bool serves = count > 2;
  if (const auto result = serve_at(serves ? arguments[1] : "0", serves ? arguments[2] : ""); !result) {
    std::fprintf(stderr, "web_chat: %s\n", result.error().message().c_str());
    return 1;
  }
}
