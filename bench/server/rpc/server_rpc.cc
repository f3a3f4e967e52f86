// SPDX-License-Identifier: MIT
// Weft's rpc, as a user writes it: a plain handler for calls, and a coroutine for each stream.
#include "bench/server/host.h"
#include "bench/server/must.h"
#include "bench/server/rpc/rpc_methods.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/rpc/rpc_service.h"
#include "weft/serve/server/server.h"

namespace bench {
namespace {

using weft::Result;
using weft::rt::Task;

struct PushHandler {
  Task<Result<OwnedBytes>> operator()(rpc::Reader<OwnedBytes>& messages) const {
    StreamCheck check;
    for (;;) {
      WEFT_CO_TRY(const auto message, co_await messages.next());
      if (!message) {
        break;
      }
      tally->add(Tally::messages);
      check.take(message->bytes());
    }
    tally->add(Tally::messages);
    OwnedBytes report;
    if (!report.assign(check.report())) {
      co_return weft::Error(weft::Errc::resource_exhausted, "no memory for a report");
    }
    co_return report;
  }
  Tally* tally;
};

rpc::Methods methods_of(Tally& tally) {
  rpc::Methods methods;
  (void)methods.add<ServedEcho>([&tally](const weft::Bytes& body) {
    tally.add(Tally::messages);
    return body;
  });
  (void)methods.add<ServedPush>(PushHandler{&tally});
  return methods;
}

HostedServer start(const HostOptions& options, std::vector<Tally>& tallies) {
  weft::rt::RuntimeOptions runtime_options;
  runtime_options.cores = options.threads;
  // All of these live as long as the program.
  auto* const runtime = must(weft::rt::Runtime::start(runtime_options)).release();
  auto* const server = must(weft::serve::Server::make(*runtime)).release();
  auto* const service = new rpc::Service(
      rpc::Service::of_cores([&tallies](weft::rt::Core& core) { return methods_of(tallies[core.index()]); }));
  weft::serve::ListenerOptions listener;
  listener.socket.backlog = 4096;
  const std::string endpoint = must(rpc::listen(*server, "tcp://127.0.0.1:0", *service, listener));
  return {"Weft's rpc", static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))), {}};
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run_host(argc, argv, "none", bench::start); }
