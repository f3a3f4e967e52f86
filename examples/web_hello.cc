// SPDX-License-Identifier: MIT
// A web server on every core: GET / answers "hello", POST /echo answers the body, all else is 404. `web_hello 8080`
// serves until it is ended; without a port it asks itself once.
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

// [routes]
Result<web::Site> make_site() {
  web::Router router;
  WEFT_TRY(router.get("/", [] { return "hello"; }));
  WEFT_TRY(router.post("/echo", [](const web::Request& request) { return std::string(request.body()); }));
  return web::Site(std::move(router));
}
// [routes]

// One request by hand, as any client sends it. Returns the whole answer.
Result<std::string> ask(const std::string& endpoint, std::string_view request) {
  net::Dialer dialer(WEFT_TRY(net::parse_endpoint(endpoint, false)), {});
  for (auto progress = WEFT_TRY(dialer.begin()); progress != net::Progress::connected;) {
    std::this_thread::sleep_for(1ms);
    progress = WEFT_TRY(dialer.finish());
  }
  const auto stream = dialer.take_stream();
  const Bytes bytes = as_bytes(request);
  (void)stream->write({&bytes, 1});
  std::string answer;
  for (;;) {
    std::uint8_t room[4096];
    MutableBytes into(room);
    const sys::IoResult result = stream->read({&into, 1});
    if (result.status == sys::IoResult::Status::would_block) {
      std::this_thread::yield();
    } else if (result.status != sys::IoResult::Status::done) {
      return answer;
    }
    answer += as_text(Bytes(room).first(result.bytes));
  }
}

// [run]
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
  std::printf("%s\n", WEFT_TRY(ask(bound, "GET / HTTP/1.0\r\n\r\n")).c_str());
  return server->stop(sys::now() + 5s);  // delivers queued frames
}
// [run]

int main(int count, char** arguments) {
  if (const auto result = run(count > 1 ? arguments[1] : nullptr); !result) {
    std::fprintf(stderr, "web_hello: %s\n", result.error().message().c_str());
    return 1;
  }
}
