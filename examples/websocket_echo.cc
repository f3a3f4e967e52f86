// SPDX-License-Identifier: MIT
// A WebSocket server on every core that sends each message back, text as text and binary as binary.
// `websocket_echo 8080` serves ws://127.0.0.1:8080/ until it is ended; without a port it asks itself once.
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include "weft/net/dialer.h"
#include "weft/serve/server/server.h"
#include "weft/serve/web/site.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace web = serve::web;

// [site]
Result<web::Site> make_site() {
  web::WebSocketOptions options;
  options.limits.message_max = 16 * 1024 * 1024;
  options.deflate.emplace();  // for clients that offer it
  web::Router router;
  WEFT_TRY(router.websocket(
      "/",
      [](web::WebSocketSession& session, const web::Message& message) {
        (void)session.send(message.kind, message.body);  // fails if the client has left
      },
      options));
  return web::Site(std::move(router));
}
// [site]

// Sends the bytes and reads until the answer ends with `end`, or the stream ends.
std::string exchange(net::ByteStream& stream, std::string_view bytes, std::string_view end) {
  const Bytes from = as_bytes(bytes);
  (void)stream.write({&from, 1});
  std::string answer;
  while (!answer.ends_with(end)) {
    std::uint8_t room[256];
    MutableBytes into(room);
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

// A client by hand: the request of the upgrade, then one short text. A client masks its frames; this mask is zero.
Result<std::string> ask(const std::string& endpoint, const std::string& text) {
  net::Dialer dialer(WEFT_TRY(net::parse_endpoint(endpoint, false)), {});
  for (auto progress = WEFT_TRY(dialer.begin()); progress != net::Progress::connected;) {
    std::this_thread::sleep_for(1ms);
    progress = WEFT_TRY(dialer.finish());
  }
  const auto stream = dialer.take_stream();
  const std::string head = exchange(*stream,
                                    "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
                                    "\r\n\r\n");
  std::printf("%s\n", head.substr(0, head.find("\r\n")).c_str());
  const std::string mask(4, '\0');
  const std::string front{static_cast<char>(0x81), static_cast<char>(0x80 + text.size())};
  return exchange(*stream, front + mask + text, text).substr(2);
}

Result<void> run(const char* port) {
  const web::Site site = WEFT_TRY(make_site());
  const auto runtime = WEFT_TRY(rt::Runtime::start());  // a thread for each core
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  serve::ListenerOptions options;
  options.limits = web::session_limits();
  const std::string endpoint = "tcp://127.0.0.1:" + std::string(port != nullptr ? port : "0");
  const std::string bound = WEFT_TRY(server->listen<web::HttpCodec>(endpoint, options, site.services(), site.codec()));
  std::printf("serving at %s\n", bound.c_str());
  std::fflush(stdout);
  while (port != nullptr) {
    std::this_thread::sleep_for(1h);
  }
  std::printf("%s\n", WEFT_TRY(ask(bound, "hello")).c_str());
  return server->stop(sys::now() + 5s);  // announces the end to its clients
}

int main(int count, char** arguments) {
  if (const auto result = run(count > 1 ? arguments[1] : nullptr); !result) {
    std::fprintf(stderr, "websocket_echo: %s\n", result.error().message().c_str());
    return 1;
  }
}
