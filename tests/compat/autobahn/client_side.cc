// SPDX-License-Identifier: MIT
// client_side URL [CASE...]: the client of Autobahn's fuzzingserver at that URL, such as ws://127.0.0.1:9001: it echoes
// the messages of each case, or of those with these numbers, then asks for the report of the agent "websocket_client".
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/web_client/websocket_client.h"
#include "weft/sys/clock.h"

namespace {

using namespace weft;                  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
namespace web = serve::web;

const std::string kAgent = "agent=websocket_client";
constexpr auto kPatience = 300s;  // for a message: the suite compresses slowly

web::WebSocketClientOptions options_of_suite() {
  web::WebSocketClientOptions options;
  options.limits.message_max = 64 * 1024 * 1024;
  options.session.write_budget = 64 * 1024 * 1024;
  options.inbox_max = 64 * 1024 * 1024;
  options.deflate.emplace();
  options.deflate->message_min = 0;
  return options;
}

rt::Task<Result<void>> echo_all(std::shared_ptr<serve::ClientHost> host, std::string url) {
  const web::WebSocketClientOptions options = options_of_suite();
  WEFT_CO_TRY(const auto socket, co_await web::WebSocketClient::connect(host, url, options));
  for (;;) {
    const auto message = co_await socket->receive(sys::now() + kPatience);
    if (!message) {
      break;  // the suite has ended the case
    }
    const auto sent = co_await socket->send(message->kind, as_bytes(message->body));
    if (!sent) {
      break;
    }
  }
  (void)co_await socket->close();
  co_return Result<void>();
}

rt::Task<Result<int>> count_cases(std::shared_ptr<serve::ClientHost> host, std::string url) {
  WEFT_CO_TRY(const auto socket, co_await web::WebSocketClient::connect(host, url + "/getCaseCount"));
  WEFT_CO_TRY(const auto count, co_await socket->receive(sys::now() + kPatience));
  co_return std::atoi(count.body.c_str());
}

rt::Task<Result<void>> run_cases(std::string url, std::vector<int> cases) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  if (cases.empty()) {
    WEFT_CO_TRY(const int count, co_await count_cases(host, url));
    for (int i = 1; i <= count; ++i) {
      cases.push_back(i);
    }
  }
  for (const int number : cases) {
    const std::string at = url + "/runCase?case=" + std::to_string(number) + "&" + kAgent;
    const Result<void> ran = co_await echo_all(host, at);
    if (!ran) {
      std::fprintf(stderr, "case %d: %s\n", number, ran.error().message().c_str());
    }
  }
  co_return co_await echo_all(host, url + "/updateReports?" + kAgent);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<int> cases;
  for (int i = 2; i < count; ++i) {
    cases.push_back(std::atoi(arguments[i]));
  }
  rt::RuntimeOptions one;
  one.cores = 1;
  const auto runtime = rt::Runtime::start(one);
  if (count < 2 || !runtime) {
    (void)std::fprintf(stderr, "usage: client_side URL [CASE...]\n");
    return 2;
  }
  auto ran = rt::spawn((*runtime)->core(0).loop(), run_cases(arguments[1], cases));
  if (const auto ended = ran.get(); !ended) {
    (void)std::fprintf(stderr, "client_side: %s\n", ended.error().message().c_str());
    return 1;
  }
}
