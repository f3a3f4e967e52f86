// SPDX-License-Identifier: MIT
// A server of remote calls, for tools/weft/weft_call_test.py: `rpc_side [CERTIFICATE KEY]`. It prints its endpoint, and
// ends with its standard input.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "weft/net/tls/tls.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/task/task_time.h"
#include "weft/serve/rpc/rpc_service.h"

namespace {

using namespace weft;
namespace rpc = serve::rpc;

using Echo = rpc::Method<"bytes.echo", Bytes, serve::OwnedBytes, 7>;
using Refuse = rpc::Method<"text.refuse", std::string, rpc::Empty>;
using Wait = rpc::Method<"wait", rpc::Empty, rpc::Empty>;

rpc::Methods methods() {
  rpc::Methods methods;
  const bool added = methods.add<Echo>([](Bytes bytes) -> Result<serve::OwnedBytes> {
    serve::OwnedBytes answer;
    if (!answer.assign_parts({bytes, Bytes(), Bytes()})) {
      return Error(Errc::resource_exhausted, "no memory");
    }
    return answer;
  }) && methods.add<Refuse>([](const std::string& text, rpc::Call& call) -> Result<rpc::Empty> {
    return call.refuse(42, text);
  }) && methods.add<Wait>([]() -> rt::Task<Result<rpc::Empty>> {
    const Result<void> slept = co_await rt::sleep(std::chrono::hours(1));
    co_return slept.error();
  });
  return added ? std::move(methods) : rpc::Methods();
}

Result<void> serve_until_input_ends(const char* certificate, const char* key) {
  rt::RuntimeOptions cores;
  cores.cores = 1;
  const auto runtime = WEFT_TRY(rt::Runtime::start(cores));
  const auto server = WEFT_TRY(serve::Server::make(*runtime));
  serve::ListenerOptions options;
  if (certificate != nullptr) {
    net::TlsServerOptions tls;
    tls.certificate_file = certificate;
    tls.key_file = key;
    options.tls = WEFT_TRY(net::TlsServer::make(tls));
  }
  const rpc::Service service(methods());
  const std::string bound = WEFT_TRY(rpc::listen(*server, "tcp://127.0.0.1:0", service, options));
  std::printf("%s%s\n", certificate != nullptr ? "tls+" : "", bound.c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return server->stop(sys::now() + std::chrono::seconds(5));
}

}  // namespace

int main(int argc, char** argv) {
  const Result<void> served = serve_until_input_ends(argc > 2 ? argv[1] : nullptr, argc > 2 ? argv[2] : nullptr);
  if (!served) {
    std::fprintf(stderr, "rpc_side: %s\n", served.error().message().c_str());
    return 1;
  }
  return 0;
}
