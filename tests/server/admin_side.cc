// SPDX-License-Identifier: MIT
// An echo server with an admin port, for admin_test.py: prints both endpoints, drains on a line of input.
#include <cstdio>

#include "weft/serve/frame/delimiter_codec.h"
#include "weft/serve/server/admin.h"
#include "weft/sys/clock.h"

namespace {

using namespace weft;

struct Lines {
  void on_frame(serve::SessionOf<serve::DelimiterCodec>& session, const serve::DelimiterCodec::Frame& frame) {
    (void)session.send({}, frame.body);
  }
};

Result<void> run() {
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string lines =
      WEFT_TRY(server->listen<serve::DelimiterCodec>("tcp://127.0.0.1:0", {}, [] { return Lines(); }));
  serve::AdminOptions options;
  options.servers.push_back({"lines", server.get()});
  options.health_timeout = options.request_timeout = std::chrono::seconds(30);  // a busy machine may need that long
  const auto admin = WEFT_TRY(serve::Admin::make(*runtime, std::move(options)));
  std::printf("%s\n%s\n", lines.c_str(), admin->endpoint().c_str());
  std::fflush(stdout);
  // A line of input begins the drain; the end of the input ends the program.
  if (std::getchar() != EOF) {
    server->begin_stop(sys::now() + std::chrono::minutes(1));
    std::printf("draining\n");
    std::fflush(stdout);
  }
  while (std::getchar() != EOF) {
  }
  (void)server->stop(Instant());
  return admin->stop(Instant());
}

}  // namespace

int main() {
  if (const auto result = run(); !result && !(result.error() == Errc::timed_out)) {
    std::fprintf(stderr, "admin_side: %s\n", result.error().message().c_str());
    return result.error() == Errc::not_supported ? 77 : 1;
  }
}
