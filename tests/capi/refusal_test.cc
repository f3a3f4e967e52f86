// SPDX-License-Identifier: MIT
// Handshakes that fail: the events of both sides' monitors, and that a refused client does not connect again.
#include <poll.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/capi/plain_peer.h"

namespace weft::capi {
namespace {

class CapiRefusalTest : public CapiTest {
 protected:
  CapiRefusalTest() {
    EXPECT_EQ(zmq_setsockopt(handler_, ZMQ_RCVTIMEO, &kLong, sizeof kLong), 0);
    EXPECT_EQ(zmq_bind(handler_, "inproc://zeromq.zap.01"), 0);
  }
  ~CapiRefusalTest() override { zmq_close(handler_); }

  void answer(const std::string& status) const {
    std::vector<std::string> request;
    int more = 1;
    for (std::size_t size = sizeof more; more != 0 && !HasFailure();) {
      char part[256];
      const int length = zmq_recv(handler_, part, sizeof part, 0);
      ASSERT_GE(length, 0);
      request.emplace_back(part, static_cast<std::size_t>(length));
      ASSERT_EQ(zmq_getsockopt(handler_, ZMQ_RCVMORE, &more, &size), 0);
    }
    for (const std::string& part : {"1.0"s, request[1], status, "why"s, "somebody"s}) {
      ASSERT_GE(zmq_send(handler_, part.data(), part.size(), ZMQ_SNDMORE), 0);
    }
    ASSERT_EQ(zmq_send(handler_, "", 0, 0), 0);
  }

  void* const handler_ = zmq_socket(context_, ZMQ_REP);
};

TEST_F(CapiRefusalTest, AClientThatWasRefusedDoesNotComeAgain) {
  for (const int status : {400, 500}) {
    const Watched server(context_, ZMQ_PULL);
    const Watched client(context_, ZMQ_PUSH);
    server.set(ZMQ_ZAP_DOMAIN, "here");
    client.set(ZMQ_LINGER, -1);  // and yet the undelivered message does not delay the end
    const int port = server.bind();
    client.connect(port);
    ASSERT_EQ(zmq_send(client.get(), "lost", 4, 0), 4);
    answer(std::to_string(status));
    server.expect(ZMQ_EVENT_ACCEPTED);
    server.expect(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, status);
    server.expect(ZMQ_EVENT_DISCONNECTED);
    client.expect(ZMQ_EVENT_CONNECTED);
    client.expect(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, status);
    client.expect(ZMQ_EVENT_DISCONNECTED);
    client.expect_silence();
    EXPECT_ERRNO(EAGAIN, zmq_send(client.get(), "x", 1, ZMQ_DONTWAIT));
    const std::string endpoint = "tcp://127.0.0.1:" + std::to_string(port);
    EXPECT_EQ(zmq_disconnect(client.get(), endpoint.c_str()), 0) << "its name is still known";
    EXPECT_ERRNO(ENOENT, zmq_disconnect(client.get(), endpoint.c_str()));
  }
}

TEST_F(CapiRefusalTest, AClientThatIsRefusedForNowIsLeftWaiting) {
  const Watched server(context_, ZMQ_PULL);
  const Watched client(context_, ZMQ_PUSH);
  server.set(ZMQ_ZAP_DOMAIN, "here");
  const int port = server.bind();
  client.connect(port);
  answer("300");
  server.expect(ZMQ_EVENT_ACCEPTED);
  server.expect(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, 300);
  client.expect(ZMQ_EVENT_CONNECTED);
  client.expect_silence();
  EXPECT_EQ(zmq_disconnect(client.get(), ("tcp://127.0.0.1:" + std::to_string(port)).c_str()), 0);
  server.expect(ZMQ_EVENT_DISCONNECTED);
}

TEST_F(CapiRefusalTest, APlainServerWithoutAnAuthenticatorRefusesClientsAndTheyRetry) {
  zmq_unbind(handler_, "inproc://zeromq.zap.01");
  const Watched server(context_, ZMQ_PULL);
  const Watched client(context_, ZMQ_PUSH);
  server.set(ZMQ_PLAIN_SERVER, 1);
  client.set(ZMQ_PLAIN_USERNAME, "admin");
  client.connect(server.bind());
  server.expect(ZMQ_EVENT_ACCEPTED);
  server.expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL, EFAULT);
  server.expect(ZMQ_EVENT_DISCONNECTED);
  client.expect(ZMQ_EVENT_CONNECTED);
  client.expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
  client.expect(ZMQ_EVENT_DISCONNECTED);
  client.expect(ZMQ_EVENT_CONNECT_RETRIED);
}

TEST_F(CapiRefusalTest, ClosingOverWhatALostPeerLeftEndsTheMonitor) {
  void* const reader = zmq_socket(context_, ZMQ_PAIR);
  ASSERT_EQ(zmq_setsockopt(reader, ZMQ_RCVTIMEO, &kLong, sizeof kLong), 0);
  {
    const Watched pull(context_, ZMQ_PULL);
    const int port = pull.bind();
    {
      const Watched push(context_, ZMQ_PUSH);
      push.set(ZMQ_LINGER, kLong);
      push.connect(port);
      ASSERT_EQ(zmq_send(push.get(), "unread", 6, 0), 6);
    }
    pull.expect(ZMQ_EVENT_ACCEPTED);
    pull.expect(ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    pull.expect(ZMQ_EVENT_DISCONNECTED);
    ASSERT_EQ(zmq_socket_monitor(pull.get(), "inproc://last", ZMQ_EVENT_ALL), 0);
    ASSERT_EQ(zmq_connect(reader, "inproc://last"), 0);
  }
  char part[64];
  ASSERT_EQ(zmq_recv(reader, part, sizeof part, 0), 6);
  while (part[0] == static_cast<char>(ZMQ_EVENT_CLOSED) && part[1] == 0) {
    ASSERT_GE(zmq_recv(reader, part, sizeof part, 0), 0);
    ASSERT_EQ(zmq_recv(reader, part, sizeof part, 0), 6);
  }
  EXPECT_EQ(static_cast<std::uint8_t>(part[1]), ZMQ_EVENT_MONITOR_STOPPED >> 8);
  zmq_close(reader);
}

// Breach: bytes by which a peer breaks the protocol, and libzmq's events for them.
struct Breach {
  const char* what;
  std::string bytes;
  int number;  // 0: the only event is the end of the connection
  int value;
};

const int kProtocol = ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;
const int kAuth = ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

std::vector<Breach> null_breaches(const std::string& type) {
  const std::string good = property("Socket-Type", type);
  const std::string null = greeting("NULL");
  return {
      {"another mechanism", greeting("PLAIN"), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH},
      {"an unknown mechanism", greeting("FOO"), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH},
      {"a message", null + frame(0, "hello"), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND},
      {"an unknown command", null + command("FOO"), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND},
      {"a command without a name", null + frame(4, ""), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND},
      {"malformed metadata", null + command("READY", good + "\5ab"), 0, 0},
      {"a type that does not fit", null + command("READY", property("Socket-Type", "SUB")), 0, 0},
      {"a malformed refusal", null + command("ERROR", "\x09"s + "400"), kProtocol,
       ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR},
      {"a refusal", null + command("ERROR", "\3"s + "400"), kAuth, 400},
      {"a refusal in words", null + command("ERROR", "\5"s + "go on"), 0, 0},
  };
}

std::vector<Breach> plain_breaches() {
  const std::string plain = greeting("PLAIN");
  const int unexpected = ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND;
  const int hello = ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO;
  return {
      {"an unknown command", plain + command("FOO"), kProtocol, unexpected},
      {"an empty command", plain + frame(4, ""), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED},
      {"HELLO without a password", plain + command("HELLO", "\1u"), kProtocol, hello},
      {"HELLO with more", plain + command("HELLO", "\1u\1pmore"), kProtocol, hello},
      {"INITIATE too early", plain + command("INITIATE"), kProtocol, unexpected},
      {"a refusal, which is the server's to say", plain + command("ERROR", "\3"s + "400"), kProtocol, unexpected},
  };
}

std::vector<Breach> curve_breaches() {
  const std::string curve = greeting("CURVE");
  const std::string start = "\1\0"s + std::string(72, '\0') + std::string(31, 'k') + "k" + "\0\0\0\0\0\0\0\1"s;
  return {
      {"an unknown command", curve + command("FOO"), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND},
      {"a short HELLO", curve + command("HELLO", start), kProtocol, ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_HELLO},
      {"a HELLO that cannot be opened", curve + command("HELLO", start + std::string(80, 'b')), kProtocol,
       ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC},
  };
}

void expect_breach(const Watched& watched, const Breach& breach) {
  SCOPED_TRACE(breach.what);
  if (breach.number != 0) {
    watched.expect(breach.number, breach.value);
  }
  watched.expect(ZMQ_EVENT_DISCONNECTED);
}

TEST_F(CapiRefusalTest, AServerTellsWhichRuleAClientBroke) {
  const Watched null(context_, ZMQ_PULL);
  const Watched plain(context_, ZMQ_PULL);
  const Watched curve(context_, ZMQ_PULL);
  plain.set(ZMQ_PLAIN_SERVER, 1);
  struct Table {
    const Watched* server;
    std::vector<Breach> breaches;
  };
  std::vector<Table> tables = {{&null, null_breaches("PUSH")}, {&plain, plain_breaches()}};
  if (zmq_has("curve") != 0) {
    curve.set(ZMQ_CURVE_SERVER, 1);
    curve.set(ZMQ_CURVE_SECRETKEY, std::string(32, 's'));
    tables.push_back({&curve, curve_breaches()});
  }
  for (const Table& table : tables) {
    const int port = table.server->bind();
    for (const Breach& breach : table.breaches) {
      Plain client;
      ASSERT_EQ(client.connect(port), 0);
      client.send(breach.bytes);
      table.server->expect(ZMQ_EVENT_ACCEPTED);
      expect_breach(*table.server, breach);
    }
  }
}

TEST_F(CapiRefusalTest, AClientTellsWhichRuleAServerBrokeAndDoesNotComeAgain) {
  for (const Breach& breach : null_breaches("PULL")) {
    const Watched client(context_, ZMQ_PUSH);
    Plain listener;
    client.connect(listener.listen());
    const Plain server(listener.accept());
    server.send(breach.bytes);
    client.expect(ZMQ_EVENT_CONNECTED);
    expect_breach(client, breach);
    client.expect_silence();
  }
}

TEST_F(CapiRefusalTest, AClientComesAgainAfterAServerThatHungUp) {
  const Watched client(context_, ZMQ_PUSH);
  Plain listener;
  client.connect(listener.listen());
  {
    const Plain server(listener.accept());
  }
  client.expect(ZMQ_EVENT_CONNECTED);
  client.expect(ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
  client.expect(ZMQ_EVENT_DISCONNECTED);
  client.expect(ZMQ_EVENT_CONNECT_RETRIED);
}

// Between: a relay between a client and a server, which passes each of the client's frames through `change`.
class Between {
 public:
  using Change = std::function<std::string(int number, std::string frame)>;

  Between(int server_port, Change change) : change_(std::move(change)) {
    port_ = listener_.listen();
    thread_ = std::thread([this, server_port] { run(server_port); });
  }
  Between(const Between&) = delete;
  Between& operator=(const Between&) = delete;
  ~Between() { thread_.join(); }
  [[nodiscard]] int port() const { return port_; }

 private:
  static constexpr std::size_t kGreeting = 64;

  void run(int server_port) {
    const Plain client(listener_.accept());
    Plain server;
    EXPECT_EQ(server.connect(server_port), 0);
    for (;;) {
      pollfd ready[] = {{client.fd(), POLLIN, 0}, {server.fd(), POLLIN, 0}};
      EXPECT_GT(::poll(ready, 2, kLong), 0);
      const Plain& from = ready[0].revents != 0 ? client : server;
      const std::string bytes = from.receive();
      if (bytes.empty()) {
        return;
      }
      if (&from == &server) {
        client.send(bytes);
      } else {
        waiting_ += bytes;
        server.send(take_frames());
      }
    }
  }
  std::string take_frames() {
    std::string out;
    for (std::size_t size = 0; (size = frame_size()) != 0; waiting_.erase(0, size)) {
      out += taken_++ == 0 ? waiting_.substr(0, size) : change_(taken_ - 1, waiting_.substr(0, size));
    }
    return out;
  }
  [[nodiscard]] std::size_t frame_size() const {  // the first frame is the greeting; 0: the frame is not whole yet
    std::size_t size = kGreeting;
    if (taken_ > 0) {
      size = waiting_.size() < 2 ? 2 : std::size_t{2} + static_cast<std::uint8_t>(waiting_[1]);
      if (!waiting_.empty() && (waiting_[0] & 2) != 0) {  // below 64 KiB
        size = waiting_.size() < 9 ? 9
                                   : std::size_t{9} + static_cast<std::uint8_t>(waiting_[7]) * std::size_t{256} +
                                         static_cast<std::uint8_t>(waiting_[8]);
      }
    }
    return waiting_.size() < size ? 0 : size;
  }

  Plain listener_;
  int port_ = 0;
  const Change change_;
  std::string waiting_;
  int taken_ = 0;
  std::thread thread_;
};

TEST_F(CapiRefusalTest, ASealThatIsBrokenIsToldWhenItIsAndEndsTheConnection) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  constexpr int kMessage = 3;  // after HELLO and INITIATE
  struct Row {
    int value;
    std::string (*change)(std::string frame);
  };
  const Row rows[] = {
      {ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC,
       [](std::string frame) {
         frame.back() = static_cast<char>(frame.back() ^ 1);
         return frame;
       }},
      {ZMQ_PROTOCOL_ERROR_ZMTP_INVALID_SEQUENCE, [](std::string frame) { return frame + frame; }},
      {ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_MESSAGE,
       [](std::string frame) { return "\0\x0C"s + frame.substr(2, 12); }},
      {ZMQ_PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND,
       [](std::string frame) {
         frame[3] = 'm';
         return frame;
       }},
      {ZMQ_PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED, [](std::string) { return "\0\2hi"s; }},
  };
  // Without an authenticator the server admits any client that has its key.
  zmq_unbind(handler_, "inproc://zeromq.zap.01");
  char key[41];
  char secret[41];
  ASSERT_EQ(zmq_curve_keypair(key, secret), 0);
  for (const Row& row : rows) {
    const Watched server(context_, ZMQ_PULL);
    server.set(ZMQ_CURVE_SERVER, 1);
    server.set(ZMQ_CURVE_SECRETKEY, std::string(secret));
    const Between between(server.bind(), [&](int number, std::string frame) {
      return number == kMessage ? row.change(std::move(frame)) : frame;
    });
    const Watched client(context_, ZMQ_PUSH);
    client.set(ZMQ_RECONNECT_IVL, -1);
    client.set(ZMQ_CURVE_SERVERKEY, std::string(key));
    client.set(ZMQ_CURVE_PUBLICKEY, std::string(key));
    client.set(ZMQ_CURVE_SECRETKEY, std::string(secret));
    client.connect(between.port());
    server.expect(ZMQ_EVENT_ACCEPTED);
    server.expect(ZMQ_EVENT_HANDSHAKE_SUCCEEDED);
    ASSERT_EQ(zmq_send(client.get(), "hello", 5, 0), 5);
    server.expect(kProtocol, row.value);
    server.expect(ZMQ_EVENT_DISCONNECTED);
  }
}

}  // namespace
}  // namespace weft::capi
