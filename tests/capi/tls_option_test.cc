// SPDX-License-Identifier: MIT
// tls+tcp and wss by the numbers of the C interface.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/capi/capi_test.h"
#ifdef WEFT_HAVE_OPENSSL
#include "weft/net/tls/test_certificates.h"
#endif

namespace weft::capi {
namespace {

class TlsOptions : public CapiTest {
 protected:
  ~TlsOptions() override {
    for (void* const socket : sockets_) {
      zmq_close(socket);
    }
  }

  [[nodiscard]] void* open(int type) {
    void* const socket = zmq_socket(context_, type);
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_RCVTIMEO, 20'000);
    *(type == ZMQ_PULL ? &sockets_[0] : &sockets_[sockets_[1] == nullptr ? 1 : 2]) = socket;
    return socket;
  }
  static void set(void* socket, int option, int value) {
    EXPECT_EQ(zmq_setsockopt(socket, option, &value, sizeof value), 0) << option;
  }
  static void set(void* socket, int option, const std::string& value) {
    EXPECT_EQ(zmq_setsockopt(socket, option, value.data(), value.size()), 0) << option;
  }
  [[nodiscard]] static std::string endpoint_of(void* socket) {
    char text[256];
    size_t size = sizeof text;
    EXPECT_EQ(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, text, &size), 0);
    return text;
  }

  void* sockets_[3] = {};
};

#ifdef WEFT_HAVE_OPENSSL

TEST_F(TlsOptions, EachSideHasWhatItAskedFor) {
  net::test::TestAuthority authority;
  const auto server = authority.issue("server");
  const auto client = authority.issue("client");
  void* const pull = open(ZMQ_PULL);
  EXPECT_ERRNO(EINVAL, zmq_bind(pull, "tls+tcp://127.0.0.1:*"));  // no certificate
  set(pull, WEFT_TLS_CERTIFICATE, server.certificate);
  set(pull, WEFT_TLS_KEY, server.key);
  set(pull, WEFT_TLS_AUTHORITIES, authority.file());
  set(pull, WEFT_TLS_CLIENT_REQUIRED, 1);
  ASSERT_EQ(zmq_bind(pull, "tls+tcp://127.0.0.1:*"), 0);
  const std::string endpoint = endpoint_of(pull);
  EXPECT_TRUE(endpoint.starts_with("tls+tcp://127.0.0.1:")) << endpoint;
  set(pull, WEFT_TLS_RELOAD, 1);

  void* const push = open(ZMQ_PUSH);
  set(push, WEFT_TLS_CERTIFICATE, client.certificate);
  set(push, WEFT_TLS_KEY, client.key);
  set(push, WEFT_TLS_AUTHORITIES, authority.file());
  set(push, WEFT_TLS_SERVER_NAME, "localhost");
  set(push, WEFT_TLS_VERIFY, 1);
  ASSERT_EQ(zmq_connect(push, endpoint.c_str()), 0);
  ASSERT_EQ(zmq_send(push, "hello", 5, 0), 5);
  zmq_msg_t got;
  zmq_msg_init(&got);
  ASSERT_EQ(zmq_msg_recv(&got, pull, 0), 5);
  EXPECT_STREQ(zmq_msg_gets(&got, ZMQ_MSG_PROPERTY_USER_ID), "CN=client");
  zmq_msg_close(&got);
  EXPECT_EQ(zmq_unbind(pull, endpoint.c_str()), 0);
}

TEST_F(TlsOptions, AMonitorIsToldOfABrokenHandshake) {
  net::test::TestAuthority authority;
  net::test::TestAuthority other("other");
  const auto server = other.issue("server");
  void* const pull = open(ZMQ_PULL);
  set(pull, WEFT_TLS_CERTIFICATE, server.certificate);
  set(pull, WEFT_TLS_KEY, server.key);
  ASSERT_EQ(zmq_bind(pull, "tls+tcp://127.0.0.1:*"), 0);
  void* const push = open(ZMQ_PUSH);
  ASSERT_EQ(zmq_socket_monitor(push, "inproc://events", ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL), 0);
  void* const events = open(ZMQ_PAIR);
  ASSERT_EQ(zmq_connect(events, "inproc://events"), 0);
  set(push, WEFT_TLS_AUTHORITIES, authority.file());
  ASSERT_EQ(zmq_connect(push, endpoint_of(pull).c_str()), 0);
  std::uint8_t event[6];
  ASSERT_EQ(zmq_recv(events, event, sizeof event, 0), 6);
  std::uint16_t number = 0;
  std::uint32_t value = 0;
  std::memcpy(&number, event, sizeof number);
  std::memcpy(&value, event + sizeof number, sizeof value);
  EXPECT_EQ(number, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  EXPECT_EQ(value, static_cast<std::uint32_t>(ZMQ_PROTOCOL_ERROR_ZMTP_UNSPECIFIED));
  EXPECT_EQ(zmq_socket_monitor(push, nullptr, 0), 0);
}

TEST_F(TlsOptions, AClientComesBackWhenTheServersCertificateIsValidAgain) {
  net::test::TestAuthority authority;
  const auto server = authority.issue("server", -1);
  void* const pull = open(ZMQ_PULL);
  set(pull, WEFT_TLS_CERTIFICATE, server.certificate);
  set(pull, WEFT_TLS_KEY, server.key);
  ASSERT_EQ(zmq_bind(pull, "tls+tcp://127.0.0.1:*"), 0);
  void* const push = open(ZMQ_PUSH);
  ASSERT_EQ(zmq_socket_monitor(push, "inproc://events", ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL), 0);
  void* const events = open(ZMQ_PAIR);
  ASSERT_EQ(zmq_connect(events, "inproc://events"), 0);
  set(push, WEFT_TLS_AUTHORITIES, authority.file());
  ASSERT_EQ(zmq_connect(push, endpoint_of(pull).c_str()), 0);
  char event[6];
  ASSERT_EQ(zmq_recv(events, event, sizeof event, 0), 6);
  (void)authority.issue("server");  // the same files
  set(pull, WEFT_TLS_RELOAD, 1);
  ASSERT_EQ(zmq_send(push, "hello", 5, 0), 5);
  char got[5];
  EXPECT_EQ(zmq_recv(pull, got, sizeof got, 0), 5);
  EXPECT_EQ(zmq_socket_monitor(push, nullptr, 0), 0);
}

// wss:// by the options of libzmq's draft, whose values are PEM texts.
class WssOptions : public TlsOptions {
 protected:
  void SetUp() override {
    if (zmq_has("wss") == 0) {
      GTEST_SKIP() << "no WebSocket";
    }
  }
  static std::string text_of(const std::string& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  // A socket at wss:// with a certificate for localhost and 127.0.0.1, and the port of its endpoint.
  [[nodiscard]] void* serve(const net::test::CertificateFiles& files) {
    void* const pull = open(ZMQ_PULL);
    set(pull, ZMQ_WSS_CERT_PEM, text_of(files.certificate));
    set(pull, ZMQ_WSS_KEY_PEM, text_of(files.key));
    EXPECT_EQ(zmq_bind(pull, "wss://*:*/path"), 0);
    const std::string endpoint = endpoint_of(pull);
    port_ = endpoint.substr(endpoint.rfind(':'));
    return pull;
  }
  [[nodiscard]] void* client(const std::string& trust, const std::string& hostname) {
    void* const push = open(ZMQ_PUSH);
    set(push, ZMQ_WSS_TRUST_PEM, trust);
    set(push, ZMQ_WSS_HOSTNAME, hostname);
    return push;
  }
  // Connects, and returns the event of the monitor with which the handshake ends.
  [[nodiscard]] int attempt(void* push, const std::string& host) {
    void* const events = zmq_socket(context_, ZMQ_PAIR);
    EXPECT_EQ(zmq_socket_monitor(push, "inproc://attempt",
                                 ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                                     ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL),
              0);
    set(events, ZMQ_LINGER, 0);
    set(events, ZMQ_RCVTIMEO, 20'000);
    EXPECT_EQ(zmq_connect(events, "inproc://attempt"), 0);
    EXPECT_EQ(zmq_connect(push, ("wss://" + host + port_).c_str()), 0);
    std::uint8_t event[6];
    EXPECT_EQ(zmq_recv(events, event, sizeof event, 0), 6);
    std::uint16_t number = 0;
    std::memcpy(&number, event, sizeof number);
    EXPECT_EQ(zmq_socket_monitor(push, nullptr, 0), 0);
    zmq_close(events);
    zmq_close(push);
    sockets_[1] = nullptr;
    return number;
  }

  std::string port_;
};

TEST_F(WssOptions, AreTextsThatAreNotReadBack) {
  void* const socket = open(ZMQ_PULL);
  for (const int id : {ZMQ_WSS_KEY_PEM, ZMQ_WSS_CERT_PEM, ZMQ_WSS_TRUST_PEM, ZMQ_WSS_HOSTNAME}) {
    const bool name = id == ZMQ_WSS_HOSTNAME;
    set(socket, id, name ? "any.name" : "any text");
    set(socket, id, "");
    set(socket, id, std::string(name ? 253 : 4096, 'x'));
    EXPECT_EQ(zmq_setsockopt(socket, id, nullptr, 0), 0);
    const std::string large(1 << 20, 'x');
    EXPECT_ERRNO(EINVAL, zmq_setsockopt(socket, id, large.data(), large.size()));
    char text[10];
    std::size_t size = sizeof text;
    EXPECT_ERRNO(EINVAL, zmq_getsockopt(socket, id, text, &size));
  }
}

TEST_F(WssOptions, TheCertificateAndItsAuthorityAreTexts) {
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  void* const pull = open(ZMQ_PULL);
  set(pull, ZMQ_WSS_CERT_PEM, text_of(files.certificate));
  set(pull, ZMQ_WSS_KEY_PEM, text_of(files.key));
  ASSERT_EQ(zmq_bind(pull, "wss://127.0.0.1:*"), 0);
  const std::string endpoint = endpoint_of(pull);
  port_ = endpoint.substr(endpoint.rfind(':'));
  void* const push = open(ZMQ_PUSH);
  set(push, ZMQ_WSS_TRUST_PEM, text_of(authority.file()));
  ASSERT_EQ(zmq_connect(push, ("wss://127.0.0.1" + port_).c_str()), 0);
  ASSERT_EQ(zmq_send(push, "hello", 5, 0), 5);
  char got[5];
  EXPECT_EQ(zmq_recv(pull, got, sizeof got, 0), 5);
}

TEST_F(WssOptions, TheNameIsCheckedWhenThereIsOne) {
  net::test::TestAuthority authority;
  void* const pull = serve(authority.issue("server"));
  const std::string trust = text_of(authority.file());
  EXPECT_EQ(attempt(client(trust, "localhost"), "127.0.0.2"), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  EXPECT_EQ(attempt(client(trust, "another"), "127.0.0.1"), ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  void* const unnamed = client(trust, "another");
  set(unnamed, ZMQ_WSS_HOSTNAME, "");
  EXPECT_EQ(attempt(unnamed, "127.0.0.2"), ZMQ_EVENT_HANDSHAKE_SUCCEEDED);  // as in libzmq
  static_cast<void>(pull);
}

// libzmq takes a certificate for any name of any of the system's authorities.
TEST_F(WssOptions, WithTheSystemsAuthoritiesTheNameIsThatOfTheEndpointUnlessOneIsSet) {
  net::test::TestAuthority authority;
  void* const pull = serve(authority.issue("server"));
  for (const auto& [host, expected] : {std::pair("127.0.0.1", ZMQ_EVENT_HANDSHAKE_SUCCEEDED),
                                       std::pair("127.0.0.2", ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)}) {
    void* const push = client(text_of(authority.file()), "");
    set(push, ZMQ_WSS_TRUST_SYSTEM, 1);
    EXPECT_EQ(attempt(push, host), expected) << host;
  }
  static_cast<void>(pull);
}

TEST_F(WssOptions, AnotherAuthorityOrNoneIsRefused) {
  net::test::TestAuthority authority;
  net::test::TestAuthority other("other");
  void* const pull = serve(authority.issue("server"));
  EXPECT_EQ(attempt(client(text_of(other.file()), "localhost"), "127.0.0.1"), ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  void* const trusting = client("", "localhost");
  set(trusting, ZMQ_WSS_TRUST_SYSTEM, 1);
  EXPECT_EQ(attempt(trusting, "127.0.0.1"), ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  EXPECT_EQ(attempt(client("", ""), "127.0.0.1"), ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  static_cast<void>(pull);
}

TEST_F(WssOptions, ATextThatCannotBeUsedIsRefusedByBindAndConnect) {
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  const auto others = authority.issue("other");
  const std::string certificate = text_of(files.certificate);
  void* const pull = open(ZMQ_PULL);
  const struct {
    std::string certificate;
    std::string key;
  } cases[] = {{"", text_of(files.key)},
               {certificate, ""},
               {certificate, "nonsense"},
               {"nonsense", text_of(files.key)},
               {certificate, text_of(others.key)},
               {certificate.substr(0, certificate.size() / 2), text_of(files.key)},
               {certificate + certificate.substr(0, certificate.size() / 2), text_of(files.key)}};
  for (const auto& row : cases) {
    set(pull, ZMQ_WSS_CERT_PEM, row.certificate);
    set(pull, ZMQ_WSS_KEY_PEM, row.key);
    EXPECT_ERRNO(EINVAL, zmq_bind(pull, "wss://127.0.0.1:*"));
  }
  void* const push = open(ZMQ_PUSH);
  for (const std::string& trust : {std::string("nonsense"), certificate.substr(0, 100), text_of(files.key)}) {
    set(push, ZMQ_WSS_TRUST_PEM, trust);
    EXPECT_ERRNO(EINVAL, zmq_connect(push, "wss://127.0.0.1:5555"));
  }
}

TEST_F(WssOptions, AreForWssAlone) {
  net::test::TestAuthority authority;
  const auto files = authority.issue("server");
  void* const pull = open(ZMQ_PULL);
  set(pull, ZMQ_WSS_CERT_PEM, text_of(files.certificate));
  set(pull, ZMQ_WSS_KEY_PEM, text_of(files.key));
  EXPECT_ERRNO(EINVAL, zmq_bind(pull, "tls+tcp://127.0.0.1:*"));  // has no certificate
}

#else

TEST_F(TlsOptions, WithoutOpenSslTheEndpointIsRefusedAndNotInTheClear) {
  void* const pull = open(ZMQ_PULL);
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_bind(pull, "tls+tcp://127.0.0.1:*"));
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_connect(pull, "tls+tcp://127.0.0.1:5555"));
}

#endif

}  // namespace
}  // namespace weft::capi
