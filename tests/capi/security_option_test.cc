// SPDX-License-Identifier: MIT
// Options of security: their defaults, the values that they refuse, and their effects.
#include <vector>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

using Parts = std::vector<std::string>;

class SecurityOptions : public CapiTest {
 protected:
  SecurityOptions() { EXPECT_EQ(zmq_setsockopt(socket_, ZMQ_LINGER, "\0\0\0", 4), 0); }
  ~SecurityOptions() override { zmq_close(socket_); }

  int set(int option, int value) const { return zmq_setsockopt(socket_, option, &value, sizeof value); }
  int set(int option, const std::string& value) const {
    return zmq_setsockopt(socket_, option, value.data(), value.size());
  }
  [[nodiscard]] int number(int option) const {
    int value = -1;
    std::size_t size = sizeof value;
    EXPECT_EQ(zmq_getsockopt(socket_, option, &value, &size), 0);
    return value;
  }
  [[nodiscard]] std::string bytes(int option, std::size_t room = 256) const {
    std::string value(room, '?');
    EXPECT_EQ(zmq_getsockopt(socket_, option, value.data(), &room), 0) << room;
    return value.substr(0, room);
  }

  void* const socket_ = zmq_socket(context_, ZMQ_DEALER);
};

TEST_F(SecurityOptions, TheServerRolesAreOnOrOff) {
  for (const int option : {ZMQ_PLAIN_SERVER, ZMQ_CURVE_SERVER}) {
    if (option == ZMQ_CURVE_SERVER && zmq_has("curve") == 0) {
      continue;
    }
    EXPECT_EQ(number(option), 0);
    for (const int wrong : {-1, 2}) {
      EXPECT_ERRNO(EINVAL, set(option, wrong));
    }
    for (const std::size_t size : {0, 1, 3, 5, 8}) {
      EXPECT_ERRNO(EINVAL, zmq_setsockopt(socket_, option, "\1\0\0\0\0\0\0\0", size));
      std::size_t room = size;
      char answer[8];
      EXPECT_ERRNO(EINVAL, zmq_getsockopt(socket_, option, answer, &room));
    }
    EXPECT_EQ(number(ZMQ_MECHANISM), ZMQ_NULL);
    EXPECT_EQ(set(option, 1), 0);
    EXPECT_EQ(number(option), 1);
    EXPECT_EQ(number(ZMQ_MECHANISM), option == ZMQ_PLAIN_SERVER ? ZMQ_PLAIN : ZMQ_CURVE);
    EXPECT_EQ(set(option, 0), 0);
    EXPECT_EQ(number(ZMQ_MECHANISM), ZMQ_NULL);
  }
}

TEST_F(SecurityOptions, NameAndPasswordAreTextsOfUpTo255Bytes) {
  for (const int option : {ZMQ_PLAIN_USERNAME, ZMQ_PLAIN_PASSWORD, ZMQ_ZAP_DOMAIN}) {
    EXPECT_EQ(bytes(option), "\0"s);
    EXPECT_ERRNO(EINVAL, set(option, ""s));
    EXPECT_ERRNO(EINVAL, set(option, std::string(256, 'x')));
    EXPECT_ERRNO(EINVAL, zmq_setsockopt(socket_, option, nullptr, 3));
    EXPECT_EQ(bytes(option), "\0"s);
    EXPECT_EQ(number(ZMQ_MECHANISM), ZMQ_NULL);
    EXPECT_EQ(set(option, std::string(255, 'x')), 0);
    EXPECT_EQ(bytes(option), std::string(255, 'x') + '\0');
    char room[255];
    std::size_t size = sizeof room;
    EXPECT_ERRNO(EINVAL, zmq_getsockopt(socket_, option, room, &size));
    EXPECT_EQ(number(ZMQ_MECHANISM), option == ZMQ_ZAP_DOMAIN ? ZMQ_NULL : ZMQ_PLAIN);
    EXPECT_EQ(zmq_setsockopt(socket_, option, nullptr, 0), 0);
    EXPECT_EQ(number(ZMQ_MECHANISM), ZMQ_NULL);
  }
}

TEST_F(SecurityOptions, KeysAreBytesOrZ85) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  const std::string text = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";  // of RFC 26
  for (const int option : {ZMQ_CURVE_PUBLICKEY, ZMQ_CURVE_SECRETKEY, ZMQ_CURVE_SERVERKEY}) {
    EXPECT_EQ(bytes(option, 32), std::string(32, '\0'));
    EXPECT_EQ(bytes(option, 41), std::string(40, '0') + '\0');
    for (const std::size_t size : {0, 31, 33, 39, 42}) {
      EXPECT_ERRNO(EINVAL, set(option, std::string(size, '0')));
      char answer[42];
      std::size_t room = size;
      EXPECT_ERRNO(EINVAL, zmq_getsockopt(socket_, option, answer, &room));
    }
    EXPECT_ERRNO(EINVAL, set(option, std::string(41, '0'))) << "no zero at its end";
    EXPECT_ERRNO(EINVAL, set(option, std::string(40, ' '))) << "no Z85";
    EXPECT_ERRNO(EINVAL, zmq_setsockopt(socket_, option, nullptr, 32));
    EXPECT_EQ(set(option, text), 0);
    EXPECT_EQ(bytes(option, 41), text + '\0');
    const std::string raw = bytes(option, 32);
    EXPECT_EQ(set(option, std::string(32, 'k')), 0);
    EXPECT_EQ(set(option, text + '\0'), 0);
    EXPECT_EQ(bytes(option, 32), raw);
    EXPECT_EQ(number(ZMQ_MECHANISM), ZMQ_CURVE);
  }
}

TEST_F(SecurityOptions, TheMechanismIsSaidInTheGreeting) {
  Plain first;
  Plain second;
  const Watched null(context_, ZMQ_PULL);
  const Watched plain(context_, ZMQ_PULL);
  plain.set(ZMQ_PLAIN_SERVER, 1);
  ASSERT_EQ(first.connect(null.bind()), 0);
  ASSERT_EQ(second.connect(plain.bind()), 0);
  first.send(greeting("NULL"));
  second.send(greeting("PLAIN"));
  (void)first.receive_until("NULL\0"s);
  (void)second.receive_until("PLAIN\0"s);
}

TEST_F(SecurityOptions, NameAndPasswordAreSaidToTheServer) {
  Plain server;
  const Watched client(context_, ZMQ_PUSH);
  client.set(ZMQ_PLAIN_USERNAME, "admin"s);
  client.set(ZMQ_PLAIN_PASSWORD, "secret"s);
  client.connect(server.listen());
  const Plain connection(server.accept());
  connection.send(greeting("PLAIN"));
  (void)connection.receive_until(command("HELLO", "\5admin\6secret"));
}

TEST_F(SecurityOptions, WithAnEnforcedDomainNoClientComesInWithoutAnAuthenticator) {
  for (const int enforced : {0, 1}) {
    const Watched server(context_, ZMQ_PULL);
    server.set(ZMQ_ZAP_DOMAIN, "here"s);
    server.set(ZMQ_ZAP_ENFORCE_DOMAIN, enforced);
    Plain client;
    ASSERT_EQ(client.connect(server.bind()), 0);
    client.send(greeting("NULL") + command("READY", property("Socket-Type", "PUSH")));
    server.expect(ZMQ_EVENT_ACCEPTED);
    server.expect(enforced != 0 ? ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL : ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
  }
}

// The ZAP request that the authenticator gets: version, id, domain, address, identity, mechanism, credentials.
Parts receive_request(void* handler) {
  Parts parts;
  int more = 1;
  for (std::size_t size = sizeof more; more != 0;) {
    char part[256];
    const int length = zmq_recv(handler, part, sizeof part, 0);
    if (length < 0) {
      ADD_FAILURE() << "no request";
      return Parts(8);
    }
    parts.emplace_back(part, static_cast<std::size_t>(length));
    EXPECT_EQ(zmq_getsockopt(handler, ZMQ_RCVMORE, &more, &size), 0);
  }
  parts.resize(8);
  return parts;
}

TEST_F(SecurityOptions, TheAuthenticatorIsToldTheDomainAndTheKeyThatTheClientProved) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  const Watched authenticator(context_, ZMQ_REP);
  void* const handler = authenticator.get();
  ASSERT_EQ(zmq_bind(handler, "inproc://zeromq.zap.01"), 0);
  char server_key[41];
  char server_secret[41];
  char client_key[41];
  char client_secret[41];
  ASSERT_EQ(zmq_curve_keypair(server_key, server_secret), 0);
  ASSERT_EQ(zmq_curve_keypair(client_key, client_secret), 0);
  const Watched server(context_, ZMQ_PULL);
  server.set(ZMQ_CURVE_SERVER, 1);
  server.set(ZMQ_CURVE_SECRETKEY, std::string(server_secret));
  server.set(ZMQ_ZAP_DOMAIN, "here"s);
  const Watched client(context_, ZMQ_PUSH);
  client.set(ZMQ_CURVE_SERVERKEY, std::string(server_key));
  client.set(ZMQ_CURVE_PUBLICKEY, std::string(client_key));
  client.set(ZMQ_CURVE_SECRETKEY, std::string(client_secret));
  client.connect(server.bind());
  const Parts request = receive_request(handler);
  std::uint8_t key[32];
  ASSERT_NE(zmq_z85_decode(key, client_key), nullptr);
  EXPECT_EQ(request[2], "here");
  EXPECT_EQ(request[5], "CURVE");
  EXPECT_EQ(request[6], std::string(reinterpret_cast<const char*>(key), sizeof key));
  for (const std::string& part : {"1.0"s, request[1], "200"s, "OK"s, "somebody"s}) {
    ASSERT_GE(zmq_send(handler, part.data(), part.size(), ZMQ_SNDMORE), 0);
  }
  ASSERT_EQ(zmq_send(handler, "", 0, 0), 0);
  ASSERT_EQ(zmq_send(client.get(), "sealed", 6, 0), 6);
  char bytes[8];
  EXPECT_EQ(zmq_recv(server.get(), bytes, sizeof bytes, 0), 6);
}

}  // namespace
}  // namespace weft::capi
