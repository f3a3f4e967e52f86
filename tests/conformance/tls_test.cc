// SPDX-License-Identifier: MIT
// tls+tcp between sockets: certificates, authentication, and the state of a connection.
#ifdef WEFT_HAVE_OPENSSL

#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/test_tls_sockets.h"
#include "weft/zmtp/curve.h"

namespace weft::conformance {
namespace {

// --- certificates ---

TEST_F(Tls, BothSidesKnowTheAuthorityAndMessagesArrive) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  EXPECT_TRUE(endpoint.starts_with("tls+tcp://127.0.0.1:")) << endpoint;
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  exchange(push, pull);
  exchange(push, pull, std::string(3 << 20, 'x'));
  EXPECT_TRUE(pull.unbind(endpoint));
}

TEST_F(Tls, AnIpv6AddressIsAName) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::ipv6, true));
  ASSERT_TRUE(pull.set(option::tls_certificate, certificate().certificate));
  ASSERT_TRUE(pull.set(option::tls_key, certificate().key));
  const auto endpoint = pull.bind("tls+tcp://[::1]:*");
  if (!endpoint) {
    GTEST_SKIP() << "no IPv6 here";
  }
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::ipv6, true));
  ASSERT_TRUE(push.set(option::tls_server_name, "localhost"));  // the certificate does not name [::1]
  connect(push, *endpoint);
  exchange(push, pull);
}

TEST_F(Tls, ASourceAddressAndAHostNameWork) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  connect(push, "tls+tcp://127.0.0.1:0;localhost:" + endpoint.substr(endpoint.rfind(':') + 1));
  exchange(push, pull);
}

TEST_F(Tls, AServerOfAnotherAuthorityIsRefused) {
  TestAuthority other("other");
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull, other.issue("server")));
  expect_refused(push, "unable to get local issuer certificate");
  expect_refused(pull, "tlsv1 alert unknown ca");
}

TEST_F(Tls, AServerOfAnotherNameIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::tls_server_name, "example.org"));
  connect(push, endpoint);
  expect_refused(push, "hostname mismatch");
}

TEST_F(Tls, ANameThatIsNoneIsAnErrorOfSetAndOfConnect) {
  Socket push = make(SocketType::push);
  EXPECT_EQ(push.set(option::tls_server_name, ".example.org").error(), Errc::invalid_argument);
  EXPECT_EQ(push.set(option::tls_server_name, std::string("localhost\0.evil", 15)).error(), Errc::invalid_argument);
  EXPECT_EQ(push.connect("tls+tcp://.example.org:5555").error(), Errc::invalid_argument);
}

TEST_F(Tls, AnExpiredServerIsRefused) {
  Socket pull = make(SocketType::pull);
  Socket push = make(SocketType::push);
  connect(push, bind(pull, authority().issue("expired", -1)));
  expect_refused(push, "certificate has expired");
}

TEST_F(Tls, WithoutVerificationAnyServerIsTaken) {
  TestAuthority other("other");
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull, other.issue("server"));
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::tls_verify, false));
  ASSERT_TRUE(push.connect(endpoint));
  exchange(push, pull);
}

TEST_F(Tls, AClientWithoutACertificateIsRefused) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  expect_refused(pull, "peer did not return a certificate");
  (void)wait_for(push, EventKind::handshake_failed);
  expect_serves(pull, endpoint);
}

TEST_F(Tls, AClientOfAnotherAuthorityIsRefused) {
  TestAuthority other("other");
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  give_certificate(push, other.issue("client"));
  connect(push, endpoint);
  expect_refused(pull, "unable to get local issuer certificate");
}

TEST_F(Tls, AClientMayHaveNoCertificateWhereItIsNotRequired) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::tls_client_required, false));
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  ASSERT_TRUE(push.send("hello"));
  auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->peer_property("User-Id"), nullptr);
}

TEST_F(Tls, TheSubjectOfTheClientsCertificateIsTheUserIdOfItsMessages) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  give_certificate(push, authority().issue("worker 7"));
  connect(push, endpoint);
  ASSERT_TRUE(push.send("hello"));
  auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_STREQ(got->peer_property("User-Id"), "CN=worker 7");
}

TEST_F(Tls, AReloadedCertificateIsForLaterConnections) {
  const CertificateFiles files = authority().issue("renewed", -1);
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull, files);
  Socket push = make(SocketType::push);
  connect(push, endpoint);
  expect_refused(push, "certificate has expired");
  (void)authority().issue("renewed");  // the same files
  ASSERT_TRUE(pull.reload_certificates());
  exchange(push, pull);
  ASSERT_EQ(std::remove(files.key.c_str()), 0);
  EXPECT_EQ(pull.reload_certificates().error(), Errc::invalid_argument);
  expect_serves(pull, endpoint);  // the certificate in use stays in use
}

TEST_F(Tls, FilesThatCannotBeUsedAreAnErrorOfBindAndConnect) {
  Socket pull = make(SocketType::pull);
  EXPECT_EQ(pull.bind(kPlace).error(), Errc::invalid_argument);
  (void)wait_for(pull, EventKind::bind_failed);
  ASSERT_TRUE(pull.set(option::tls_certificate, "/no/such/file"));
  ASSERT_TRUE(pull.set(option::tls_key, certificate().key));
  EXPECT_EQ(pull.bind(kPlace).error(), Errc::invalid_argument);
  EXPECT_EQ(pull.connect("tls+tcp://127.0.0.1:5555").error(), Errc::invalid_argument);
  EXPECT_EQ(pull.statistics()->binds_failed, 2u);
}

// --- authentication ---

TEST_F(Tls, AnAuthenticatorIsAskedWithTheMechanismTlsAndTheSubject) {
  Socket handler = make(SocketType::rep);
  ASSERT_TRUE(handler.bind("inproc://zeromq.zap.01"));
  std::vector<std::string> request;
  std::thread authenticator([&] {
    for (const auto& [status, user] : {std::pair("200", "alice"), std::pair("400", "")}) {
      const auto parts = handler.recv_all();
      ASSERT_TRUE(parts);
      request.clear();
      for (const Message& part : *parts) {
        request.emplace_back(part.text());
      }
      const std::vector<std::string> reply = {"1.0", request[1], status, "", user, ""};
      for (std::size_t i = 0; i < reply.size(); ++i) {
        ASSERT_TRUE(handler.send(reply[i], i + 1 < reply.size() ? More::yes : More::no));
      }
    }
  });
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::zap_domain, "home"));
  const std::string endpoint = bind_mutual(pull);
  Socket push = make(SocketType::push);
  give_certificate(push);
  connect(push, endpoint);
  ASSERT_TRUE(push.send("hello"));
  auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_STREQ(got->peer_property("User-Id"), "alice");
  Socket second = make(SocketType::push);
  ASSERT_TRUE(second.set(option::reconnect_interval, Duration(-1)));
  give_certificate(second);
  connect(second, endpoint);
  authenticator.join();
  ASSERT_EQ(request.size(), 7u);
  EXPECT_EQ(request[2], "home");
  EXPECT_EQ(request[3], "127.0.0.1");
  EXPECT_EQ(request[5], "TLS");
  EXPECT_EQ(request[6], "CN=peer");
  expect_refused(pull, "the peer was not authenticated", Errc::handshake_refused);
}

#ifdef WEFT_HAVE_SODIUM
TEST_F(Tls, CurveInsideTlsNeedsBoth) {
  const auto keys = zmtp::make_curve_key_pair().value();
  const auto text = [](const auto& key) { return std::string(as_text(Bytes(key))); };
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::curve_secret_key, text(keys.secret_key)));
  ASSERT_TRUE(pull.set(option::curve_server, true));
  const std::string endpoint = bind_mutual(pull);

  Socket without = make(SocketType::push);
  give_certificate(without);
  connect(without, endpoint);
  expect_refused(pull, "peer's security mechanism is NULL, not ours");

  const auto ours = zmtp::make_curve_key_pair().value();
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::curve_public_key, text(ours.public_key)));
  ASSERT_TRUE(push.set(option::curve_secret_key, text(ours.secret_key)));
  ASSERT_TRUE(push.set(option::curve_server_key, text(keys.public_key)));
  give_certificate(push);
  connect(push, endpoint);
  exchange(push, pull);
}
#endif

TEST_F(Tls, PlainInsideTlsIsAskedForByItsName) {
  Socket handler = make(SocketType::rep);
  ASSERT_TRUE(handler.bind("inproc://zeromq.zap.01"));
  std::vector<std::vector<std::string>> requests;
  std::thread authenticator([&] {
    for (const bool admits : {true, false}) {
      const auto parts = handler.recv_all();
      ASSERT_TRUE(parts);
      std::vector<std::string>& request = requests.emplace_back();
      for (const Message& part : *parts) {
        request.emplace_back(part.text());
      }
      const std::vector<std::string> reply = {"1.0", request[1], admits ? "200" : "400", "", admits ? "alice" : "", ""};
      for (std::size_t i = 0; i < reply.size(); ++i) {
        ASSERT_TRUE(handler.send(reply[i], i + 1 < reply.size() ? More::yes : More::no));
      }
    }
  });
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::plain_server, true));
  ASSERT_TRUE(pull.set(option::zap_domain, "home"));
  const std::string endpoint = bind_mutual(pull);
  Socket without = make(SocketType::push);
  ASSERT_TRUE(without.set(option::reconnect_interval, Duration(-1)));
  give_certificate(without);
  connect(without, endpoint);
  expect_refused(pull, "peer's security mechanism is NULL, not ours");
  const auto join = [&](Socket& push, const char* password) {
    ASSERT_TRUE(push.set(option::plain_username, "me"));
    ASSERT_TRUE(push.set(option::plain_password, password));
    ASSERT_TRUE(push.set(option::reconnect_interval, Duration(-1)));
    give_certificate(push);
    connect(push, endpoint);
  };
  Socket push = make(SocketType::push);
  join(push, "secret");
  ASSERT_TRUE(push.send("hello"));
  const auto got = pull.recv();
  ASSERT_TRUE(got);
  EXPECT_STREQ(got->peer_property("User-Id"), "alice");
  Socket liar = make(SocketType::push);
  join(liar, "guess");
  authenticator.join();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(std::vector(requests[0].begin() + 5, requests[0].end()),
            (std::vector<std::string>{"PLAIN", "me", "secret"}));
  EXPECT_EQ(std::vector(requests[1].begin() + 5, requests[1].end()),
            (std::vector<std::string>{"PLAIN", "me", "guess"}));
  const MonitorEvent refused = wait_for(pull, EventKind::handshake_failed);
  EXPECT_EQ(reason_of(refused), "the peer was not authenticated");
  EXPECT_EQ(wait_for(liar, EventKind::handshake_failed).reason.code(), Errc::handshake_refused);
}

// --- the state of a connection ---

TEST_F(Tls, APeerThatReadsNothingFillsTheQueueAndThenGetsAllInOrder) {
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.set(option::send_high_water_mark, 10));
  ASSERT_TRUE(push.set(option::send_buffer, 16 * 1024));
  const std::string endpoint = bind(push);
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::receive_high_water_mark, 10));
  ASSERT_TRUE(pull.set(option::receive_buffer, 16 * 1024));
  connect(pull, endpoint);
  (void)wait_for(push, EventKind::handshake_succeeded);
  std::size_t sent = 0;
  for (; sent < 20'000; ++sent) {
    std::string text = std::to_string(sent);
    text.resize(1000 + sent % 40'000, 'x');
    if (!push.try_send(as_bytes(text))) {
      break;
    }
  }
  EXPECT_LT(sent, 5000u);
  for (std::size_t i = 0; i < sent; ++i) {
    const auto got = pull.recv();
    ASSERT_TRUE(got) << i << " of " << sent;
    const std::string number = std::to_string(i);
    ASSERT_EQ(got->text().substr(0, number.size()), number);
    ASSERT_EQ(got->size(), 1000 + i % 40'000);
  }
}

TEST_F(Tls, BothDirectionsAtOnceLoseNothing) {
  Socket server = make(SocketType::pair);
  const std::string endpoint = bind(server);
  Socket client = make(SocketType::pair);
  connect(client, endpoint);
  constexpr int kMessages = 3000;
  const auto send_all = [](Socket& socket) {
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(socket.send(std::to_string(i) + std::string(static_cast<std::size_t>(i % 3000), 'x')));
    }
  };
  const auto receive_all = [](Socket& socket) {
    for (int i = 0; i < kMessages; ++i) {
      const auto got = socket.recv();
      ASSERT_TRUE(got);
      const std::string number = std::to_string(i);
      ASSERT_EQ(got->text().substr(0, number.size()), number);
    }
  };
  std::thread threads[] = {std::thread([&] { send_all(server); }), std::thread([&] { send_all(client); }),
                           std::thread([&] { receive_all(server); }), std::thread([&] { receive_all(client); })};
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_F(Tls, WhatLingersArrivesAndTheEndIsAnnounced) {
  Socket pull = make(SocketType::pull);
  const std::string endpoint = bind(pull);
  {
    Socket push = make(SocketType::push);
    ASSERT_TRUE(push.set(option::linger, kLong));
    connect(push, endpoint);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(push.send(std::string(50'000, 'x')));
    }
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pull.recv());
  }
  const MonitorEvent event = wait_for(pull, EventKind::disconnected);
  EXPECT_EQ(event.reason.code(), Errc::connection_closed);
  EXPECT_EQ(reason_of(event), "") << "TLS ended before the stream";
}

TEST_F(Tls, AClientReconnectsToAServerThatComesBack) {
  Socket push = make(SocketType::push);
  std::string endpoint;
  {
    Socket pull = make(SocketType::pull);
    endpoint = bind(pull);
    connect(push, endpoint);
    exchange(push, pull);
    ASSERT_TRUE(pull.unbind(endpoint));
  }
  (void)wait_for(push, EventKind::disconnected);
  Socket again = make(SocketType::pull);
  ASSERT_TRUE(again.set(option::tls_certificate, certificate().certificate));
  ASSERT_TRUE(again.set(option::tls_key, certificate().key));
  ASSERT_TRUE(again.bind(endpoint));
  exchange(push, again, "again");
}

}  // namespace
}  // namespace weft::conformance

#endif
