// SPDX-License-Identifier: MIT
// Handshakes of TLS that do not end count as memory of the server.
#include "weft/net/tls/tls.h"

#ifdef WEFT_HAVE_OPENSSL

#include <deque>

#include "weft/net/tls/test_certificates.h"
#include "weft/serve/server/test_client.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

using test::Client;
using test::kLong;

class TlsMemory : public test::ServerTest {};

TEST_F(TlsMemory, HandshakesThatDoNotEndTakeMemoryOfTheServerAndGiveItBack) {
  start_runtime(1);
  constexpr std::size_t kFit = 4;
  ServerOptions server_options;
  server_options.memory_max = server_options.core_memory_max = kFit * Session::kHandshakeBytes + 20'000;
  make_server(server_options);
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  ListenerOptions options;
  options.limits.handshake_timeout = kLong;
  options.tls = *net::TlsServer::make({.certificate_file = files.certificate, .key_file = files.key});
  script_.on_frame = test::echo;
  const std::string endpoint = listen(options);
  std::deque<Client> silent;
  for (std::size_t i = 0; i < kFit + 1; ++i) {
    silent.emplace_back(endpoint);
  }
  EXPECT_EQ(silent.back().read_to_end(), "");  // was refused
  until([this](const CounterValues& counters) {
    return counters.rejected_for(Rejection::no_memory) == 1 && server_->sessions() == kFit;
  });
  silent.clear();
  until([this](const CounterValues&) { return server_->sessions() == 0; });
  const auto connector = *net::TlsClient::make({.ca_file = authority.file()});
  std::deque<Client> good;
  for (std::size_t i = 0; i < 2 * kFit; ++i) {  // each returns the memory of its handshake
    good.emplace_back(endpoint);
    ASSERT_TRUE(good.back().start_tls(*connector)) << good.back().failure();
    good.back().send(1, "in");
    ASSERT_EQ(good.back().receive(), "in");
  }
}

}  // namespace
}  // namespace weft::serve

#endif
