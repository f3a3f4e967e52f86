// SPDX-License-Identifier: MIT
// Remote calls over TLS 1.3, without a schema: a frame's id names the call, its body is text. (rpc.cc has FlatBuffers.)
// The demonstration lets `openssl` make a certificate for 127.0.0.1, which the client trusts and nothing else.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "weft/net/tls/tls.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/dispatch/dispatcher.h"
#include "weft/serve/frame/numbered_codec.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
using Codec = serve::NumberedCodec;
using Session = serve::SessionOf<Codec>;

constexpr std::uint32_t kReverse = 1, kLater = 2;  // the ids of calls

struct Calls {
  serve::Dispatcher<Session> dispatcher;

  Calls() {
    (void)dispatcher.on(kReverse, [](Session& session, const Codec::Frame& frame) -> Result<void> {
      if (frame.body.empty()) {
        return Error(Errc::invalid_argument, "nothing to reverse");  // the caller gets an error frame
      }
      std::string text(as_text(frame.body));
      std::reverse(text.begin(), text.end());
      return session.send(frame.header, as_bytes(text));
    });
    (void)dispatcher.on(kLater, [](Session& session, const Codec::Frame& frame) -> rt::Task<Result<void>> {
      WEFT_CO_TRY(co_await rt::sleep(1h));  // longer than the caller waits; ends with the session
      co_return session.send(frame.header, frame.body);
    });
  }
  void on_frame(Session& session, const Codec::Frame& frame) { dispatcher.dispatch(session, frame); }
};

rt::Task<Result<void>> ask(std::string endpoint, std::shared_ptr<net::TlsClient> tls) {
  const auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  serve::ClientOptions options;
  options.tls = std::move(tls);
  WEFT_CO_TRY(const auto client, serve::Client<Codec>::open(host, endpoint, options));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));  // after the handshake

  WEFT_CO_TRY(const auto reply, co_await client->request({kReverse, 0}, as_bytes("weft"), sys::now() + 10s));
  const auto refusal = co_await client->request({kReverse, 0}, {}, sys::now() + 10s);  // the error frame is an error
  const auto late = co_await client->request({kLater, 0}, as_bytes("?"), sys::now() + 10ms);
  std::printf("%.*s; %s; %s\n", int(reply.body().size()), as_text(reply.body()).data(), refusal.error().text(),
              late.error().message().c_str());
  co_return as_text(reply.body()) == "tfew" && !refusal && late.error() == Errc::timed_out
      ? Result<void>()
      : Error(Errc::protocol_error, "a wrong answer");
}

Result<void> run(const std::string& folder) {
  const std::string command =
      "cd " + folder +
      " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
      " -nodes -days 1 -subj /CN=demo -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out cert.pem 2> log";
  if (std::system(command.c_str()) != 0) {
    return Error(Errc::not_supported, "without the program openssl there is no certificate to show");
  }
  serve::ListenerOptions listening;
  listening.tls = WEFT_TRY(net::TlsServer::make({folder + "/cert.pem", folder + "/key.pem"}));
  const auto trust = WEFT_TRY(net::TlsClient::make({folder + "/cert.pem"}));

  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  const std::string endpoint = WEFT_TRY(server->listen<Codec>("tcp://127.0.0.1:0", listening, [] { return Calls(); }));
  auto asking = WEFT_TRY(rt::spawn(runtime->core(0), ask(endpoint, trust)));
  return asking.get();
}

int main() {
  char folder[] = "/tmp/weft-rpc-XXXXXX";
  const auto result = ::mkdtemp(folder) != nullptr ? run(folder) : Error(Errc::system, "make a directory", errno);
  std::filesystem::remove_all(folder);
  if (!result) {
    std::fprintf(stderr, "secure_rpc: %s\n", result.error().message().c_str());
  }
  return result || result.error() == Errc::not_supported ? 0 : 1;
}
