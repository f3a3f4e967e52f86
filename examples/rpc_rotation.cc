// SPDX-License-Identifier: MIT
// Calls and a stream over TLS, with deadlines, while the server gets another certificate: the stream continues, no call
// fails, and a client that trusts the new certificate alone connects. The demonstration lets `openssl` make both.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "weft/net/tls/tls.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/rpc/rpc_client.h"
#include "weft/serve/rpc/rpc_service.h"
#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"

using namespace weft;
using namespace std::chrono_literals;
namespace rpc = serve::rpc;
using Count = rpc::ServerStream<"count", rpc::Empty, std::int64_t>;
using Nap = rpc::Method<"nap", std::int64_t, rpc::Empty>;

rpc::Methods methods() {
  rpc::Methods all;
  (void)all.add<Nap>([](std::int64_t ms) -> rt::Task<Result<void>> {
    co_return co_await rt::sleep(std::chrono::milliseconds(ms));  // fails at the deadline of the call
  });
  (void)all.add<Count>([](const rpc::Empty&, rpc::Writer<std::int64_t>& out) -> rt::Task<Result<void>> {
    for (std::int64_t i = 0;; ++i) {
      WEFT_CO_TRY(co_await out.send(i));  // waits for the reader; fails when it goes
    }
  });
  return all;
}

struct Demo {
  std::string folder{}, endpoint{};
  std::shared_ptr<net::TlsServer> tls{};
  std::atomic<bool> streams{false}, rotated{false};
};

// A client on this core that trusts the certificates of the file.
rt::Task<Result<std::unique_ptr<rpc::Client>>> connect(const Demo* demo, const char* trusted) {
  rpc::ClientOptions options;
  WEFT_CO_TRY(options.connection.tls, net::TlsClient::make({demo->folder + trusted}));
  auto host = std::make_shared<serve::ClientHost>(*rt::Core::current());
  WEFT_CO_TRY(auto client, rpc::Client::open(std::move(host), demo->endpoint, options));
  WEFT_CO_TRY(co_await client->connected(sys::now() + 10s));
  co_return std::move(client);
}

// One connection, and one stream on it, from before the rotation until after it.
rt::Task<Result<void>> stream(Demo* demo) {
  WEFT_CO_TRY(const auto client, co_await connect(demo, "/old.pem"));
  WEFT_CO_TRY(const auto numbers, client->stream<Count>());
  std::int64_t count = 0;
  bool right = true;
  for (int after = 0; after < 1000; after += demo->rotated ? 1 : 0) {
    WEFT_CO_TRY(const auto number, co_await numbers->next());
    right = right && number && *number == count++;
    demo->streams = true;
  }
  std::printf("a stream of %lld numbers, and calls beside it; ", static_cast<long long>(count));
  co_return right ? Result<void>() : Error(Errc::protocol_error, "the stream lost a number");
}

// A connection of its own, with a call that is answered and one that has too little time.
rt::Task<Result<void>> call_once(Demo* demo, const char* trusted) {
  WEFT_CO_TRY(const auto client, co_await connect(demo, trusted));
  WEFT_CO_TRY(co_await client->call<Nap>(std::int64_t{1}));
  const rpc::CallOptions hurry{.timeout = 2ms};
  const auto late = co_await client->call<Nap>(std::int64_t{3'600'000}, hurry);
  co_return late.error() == Errc::timed_out ? Result<void>() : Error(Errc::other, "a call had too much time");
}

rt::Task<Result<void>> call_and_rotate(Demo* demo) {
  for (int i = 0; i < 10 || (!demo->rotated && i < 1000); ++i) {
    if (demo->streams && i >= 5 && !demo->rotated) {  // two small files; a larger program reloads in another thread
      std::filesystem::rename(demo->folder + "/new.key", demo->folder + "/key.pem");
      std::filesystem::rename(demo->folder + "/new.pem", demo->folder + "/cert.pem");
      WEFT_CO_TRY(demo->tls->reload());  // keeps the old certificate if the new one cannot be used
      demo->rotated = true;
    }
    WEFT_CO_TRY(co_await call_once(demo, "/both.pem"));
  }
  co_return co_await call_once(demo, "/trusted.pem");
}

Result<void> run(const std::string& folder) {
  const std::string command =
      "cd " + folder + R"( && for n in old new; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 \
      -nodes -days 1 -subj /CN=$n -addext subjectAltName=IP:127.0.0.1 -keyout $n.key -out $n.pem 2> log || exit 1; done
      cp new.pem trusted.pem; cp old.pem cert.pem; cp old.key key.pem; cat old.pem new.pem > both.pem)";
  if (std::system(command.c_str()) != 0) {
    return Error(Errc::not_supported, "without the program openssl there is no certificate to show");
  }
  Demo demo{.folder = folder};
  serve::ListenerOptions options;
  options.tls = demo.tls = WEFT_TRY(net::TlsServer::make({folder + "/cert.pem", folder + "/key.pem"}));
  const auto runtime = WEFT_TRY(rt::Runtime::start());
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  demo.endpoint = WEFT_TRY(rpc::listen(*server, "tcp://127.0.0.1:0", rpc::Service(methods()), options));
  auto streaming = WEFT_TRY(rt::spawn(runtime->core(0), stream(&demo)));
  auto calling = WEFT_TRY(rt::spawn(runtime->core(runtime->size() - 1), call_and_rotate(&demo)));
  const auto called = calling.get();
  demo.rotated = true;  // in any case, so that the stream ends
  const auto streamed = streaming.get();
  return called ? streamed : called;
}

int main() {
  char folder[] = "/tmp/weft-rotation-XXXXXX";
  const auto result = ::mkdtemp(folder) != nullptr ? run(folder) : Error(Errc::system, "make a directory");
  std::filesystem::remove_all(folder);
  std::printf("rpc_rotation: %s\n", result ? "no call was lost" : result.error().message().c_str());
  return result || result.error() == Errc::not_supported ? 0 : 1;
}
