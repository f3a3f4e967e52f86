// SPDX-License-Identifier: MIT
// A web server over TLS beside the TLS of others: tls_peers_test.py reads its log.
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "weft/net/tls/tls.h"
#include "weft/serve/server/server.h"
#include "weft/serve/web/site.h"
#include "weft/sys/clock.h"

namespace {

using weft::Result;
namespace net = weft::net;
namespace serve = weft::serve;

void print(std::string_view word, std::string_view rest) {
  std::printf("%.*s %.*s\n", static_cast<int>(word.size()), word.data(), static_cast<int>(rest.size()), rest.data());
  std::fflush(stdout);
}

void print_record(const serve::LogRecord& record) {
  std::string line(record.reason);
  if (const char* const text = record.error.text(); text != nullptr) {
    line.append(": ").append(text);
  }
  print("ended", line);
}

Result<void> run(const net::TlsServerOptions& files) {
  serve::web::Router router;
  WEFT_TRY(router.get("/", [] { return "hello"; }));
  const serve::web::Site site(std::move(router));
  const auto runtime = WEFT_TRY(weft::rt::Runtime::start());
  serve::ServerOptions with_log;
  with_log.log = print_record;
  const auto server = WEFT_TRY(serve::Server::make(*runtime, with_log));
  serve::ListenerOptions options;
  options.limits = serve::web::session_limits();
  options.tls = WEFT_TRY(net::TlsServer::make(files));
  print("endpoint",
        WEFT_TRY(server->listen<serve::web::HttpCodec>("tcp://127.0.0.1:0", options, site.services(), site.codec())));
  for (std::string line; std::getline(std::cin, line);) {
    const auto reloaded = options.tls->reload();
    print("reloaded", reloaded ? std::string("all") : reloaded.error().message());
  }
  return server->stop(weft::sys::now());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::puts("usage: tls_side CERTIFICATE KEY [AUTHORITIES]: prints how connections end; a line reloads");
    return 2;
  }
  net::TlsServerOptions files;
  files.certificate_file = argv[1];
  files.key_file = argv[2];
  files.client_ca_file = argc > 3 ? argv[3] : "";
  if (const auto result = run(files); !result) {
    print("failed", result.error().message());
    return 1;
  }
  return 0;
}
