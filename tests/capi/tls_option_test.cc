// SPDX-License-Identifier: MIT
// tls+tcp by the numbers of the C interface.
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/capi/capi_test.h"
#ifdef WEFT_HAVE_OPENSSL
#include "weft/net/test_certificates.h"
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

#else

TEST_F(TlsOptions, WithoutOpenSslTheEndpointIsRefusedAndNotInTheClear) {
  void* const pull = open(ZMQ_PULL);
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_bind(pull, "tls+tcp://127.0.0.1:*"));
  EXPECT_ERRNO(EPROTONOSUPPORT, zmq_connect(pull, "tls+tcp://127.0.0.1:5555"));
}

#endif

}  // namespace
}  // namespace weft::capi
