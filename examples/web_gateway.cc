// SPDX-License-Identifier: MIT
// From message sockets and topics to browsers, and back.
// `web_gateway 8080 tcp://127.0.0.1:5556 examples/web_chat` serves http://127.0.0.1:8080/ until its input ends.
// Publishers connect to the endpoint; their messages, a topic and a text, and those of the topics web.* of this host go
// to each page. A page's lines are messages of the topic web.lines. Without arguments the program starts and stops.
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "weft/serve/server/server.h"
#include "weft/serve/web/files.h"
#include "weft/serve/web/site.h"
#include "weft/sys/clock.h"
#include "weft/topic/topics.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

constexpr serve::GroupId kPages{1};

// Sends a line to the pages of all cores. It is encoded once.
void show(serve::Server& server, std::string_view topic, std::string_view text) {
  const std::string line = std::string(topic).append(": ").append(text);
  if (const auto frame = serve::SharedFrame::encode(web::WebSocketCodec(), web::Opcode::text, as_bytes(line))) {
    (void)server.publish(kPages, *frame);  // fails while the server stops
  }  // otherwise the line is not UTF-8
}

struct Page {
  Publisher* lines;

  static void on_open(web::WebSocketSession& session) {
    if (!session.join(kPages)) {
      web::close(session, 1013, "no memory");
    }
  }
  void on_message(web::WebSocketSession& session, const web::Message& message) const {
    if (message.kind != web::Opcode::text || !lines->publish(message.text())) {
      web::close(session, 1003, "texts only");
    }
  }
};

Result<web::Site> make_site(Publisher& lines, const std::string& pages) {
  web::WebSocketOptions options;
  options.limits.message_max = 4 * 1024;
  options.ping_every = 1min;  // a page that only listens is not idle
  options.session.slow_consumer = serve::SlowConsumer::drop_oldest;
  web::Router router;
  WEFT_TRY(router.websocket("/chat", [&lines] { return Page{&lines}; }, options));
  if (!pages.empty()) {
    WEFT_TRY(router.get("/{path...}", WEFT_TRY(web::Files::open(pages))));
  }
  return web::Site(std::move(router));
}

Result<void> run(const std::string& port, const std::string& endpoint, const std::string& pages) {
  Context context;
  Socket sub = WEFT_TRY(context.socket(SocketType::sub));
  WEFT_TRY(sub.subscribe(""));
  const std::string bound_sub = WEFT_TRY(sub.bind(endpoint));
  Topics topics = WEFT_TRY(Topics::open(context, {.fleet = pages.empty() ? "inproc:demonstration" : "local"}));
  Subscription heard = WEFT_TRY(topics.subscribe("web.*"));
  Publisher lines = WEFT_TRY(topics.publisher("web.lines"));

  const auto runtime = WEFT_TRY(rt::Runtime::start());  // a thread for each core
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const web::Site site = WEFT_TRY(make_site(lines, pages));
  serve::ListenerOptions options;
  options.limits = web::session_limits();
  const std::string at = "tcp://127.0.0.1:" + port;
  const std::string bound = WEFT_TRY(server->listen<web::HttpCodec>(at, options, site.services(), site.codec()));
  std::jthread from_sockets([&] {
    for (auto parts = sub.recv_all(); parts; parts = sub.recv_all()) {
      show(*server, parts->front().text(), parts->back().text());
    }
  });
  std::jthread from_topics([&] {
    for (auto message = heard.next(); message; message = heard.next()) {
      show(*server, message->topic(), message->text());
    }
  });
  std::printf("serving at %s\n%s\n", bound.c_str(), bound_sub.c_str());
  std::fflush(stdout);
  while (!pages.empty() && std::getchar() != EOF) {
  }
  const auto stopped = server->stop(sys::now() + 5s);
  topics.close();       // ends from_topics
  context.shut_down();  // ends from_sockets
  return stopped;
}

int main(int count, char** arguments) {
  const bool serves = count > 3;
  const auto result = serves ? run(arguments[1], arguments[2], arguments[3]) : run("0", "tcp://127.0.0.1:*", "");
  if (!result) {
    std::fprintf(stderr, "web_gateway: %s\n", result.error().message().c_str());
    return 1;
  }
}
