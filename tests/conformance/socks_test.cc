// SPDX-License-Identifier: MIT
// Connections through a SOCKS5 proxy: the requests, the replies, and the peer that the proxy reaches.
#include <thread>

#include "tests/conformance/conformance.h"
#include "tests/conformance/wire.h"

namespace weft::conformance {
namespace {

using namespace std::string_literals;

constexpr std::string_view kTcp = "tcp://";
const std::string kGranted("\5\0\0\1\0\0\0\0\0\0", 10);

// Over every transport that is over tcp.
class SocksRelay : public Conformance {
 protected:
  void SetUp() override {
    auto listener = net::Listener::open(*net::parse_endpoint("tcp://127.0.0.1:*", true), {});
    ASSERT_TRUE(listener) << listener.error().message();
    proxy_ = std::move(listener).value();
  }

  void use_proxy(Socket& socket) {
    ASSERT_TRUE(socket.set(option::socks_proxy, proxy_->bound_endpoint().substr(kTcp.size())));
  }
  // Accepts the next client of the proxy, agrees to no login, and expects the client's request: `wanted`.
  [[nodiscard]] WirePeer take_client(const std::string& wanted) {
    WirePeer client = WirePeer::accept(*proxy_);
    EXPECT_EQ(client.read(3), "\5\1\0"s);
    client.write("\5\0"s);
    EXPECT_EQ(client.read(wanted.size()), wanted);
    return client;
  }
  static void wait_for_failure(Socket& socket, std::string_view text) {
    const MonitorEvent failed = wait_for_event(socket, EventKind::connect_failed);
    ASSERT_NE(failed.reason.text(), nullptr) << "waiting for: " << text;
    EXPECT_EQ(failed.reason.text(), text);
  }
  // Carries bytes both ways until one side ends.
  static void relay(WirePeer& one, WirePeer& other) {
    net::ByteStream* ends[] = {&one.stream(), &other.stream()};
    WirePeer* sinks[] = {&other, &one};
    for (;;) {
      sys::PollFd polled[] = {{.fd = ends[0]->fd(), .want = sys::Interest::readable},
                              {.fd = ends[1]->fd(), .want = sys::Interest::readable}};
      ASSERT_TRUE(sys::poll_fds(polled, kLong));
      for (int i = 0; i < 2; ++i) {
        std::uint8_t bytes[4096];
        MutableBytes into(bytes);
        const sys::IoResult result = ends[i]->read({&into, 1});
        if (result.status == sys::IoResult::Status::done) {
          sinks[i]->write(as_text(Bytes(bytes).first(result.bytes)));
        } else if (result.status != sys::IoResult::Status::would_block) {
          return;
        }
      }
    }
  }

  std::unique_ptr<net::Listener> proxy_;
};
WEFT_TRANSPORTS_WHERE(SocksRelay, over_tcp);

// The proxy's side of the conversation is the same whatever goes through it.
class Socks : public SocksRelay {};
bool without_layers(const Transport& transport) { return std::string_view(transport.endpoint).starts_with(kTcp); }
WEFT_TRANSPORTS_WHERE(Socks, without_layers);
class SocksInTheClear : public Socks {};
bool without_any_layer(const Transport& transport) { return without_layers(transport) && !transport.encrypted; }
WEFT_TRANSPORTS_WHERE(SocksInTheClear, without_any_layer);

TEST_P(SocksRelay, MessagesGoBothWays) {
  Socket rep = make(SocketType::rep);
  const std::string endpoint = bind(rep);
  const int port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  std::thread relaying([&] {
    WirePeer client = take_client("\5\1\0\1\x7F\0\0\1"s + static_cast<char>(port >> 8) + static_cast<char>(port));
    WirePeer server = WirePeer::dial("tcp://127.0.0.1:" + std::to_string(port));
    client.write(kGranted);
    relay(client, server);
  });
  {
    Socket req = make(SocketType::req);
    ASSERT_TRUE(req.set(option::linger, 0ms));
    use_proxy(req);
    connect(req, endpoint);
    for (int i = 0; i < 20; ++i) {
      send(req, {"question", std::string(10'000, 'q')});
      EXPECT_EQ(recv(rep), (Texts{"question", std::string(10'000, 'q')}));
      send(rep, "answer");
      EXPECT_EQ(recv_text(req), "answer");
    }
  }
  relaying.join();
}

TEST_P(SocksInTheClear, TheFirstBytesFromBehindTheProxyMayComeWithItsAnswer) {
  Socket pull = make(SocketType::pull);
  use_proxy(pull);
  connect(pull, "tcp://host.example:5555");
  WirePeer client = take_client("\5\1\0\3\x0Chost.example\x15\xB3"s);
  client.write(kGranted + "\xFF\0\0\0\0\0\0\0\1\x7F\1\10\0\0\0\5hello"s);  // of ZMTP 2.0
  EXPECT_EQ(recv_text(pull), "hello");
}

TEST_P(Socks, NameAndPasswordAreToldAgainAtEveryConnection) {
  Socket pull = make(SocketType::pull);
  use_proxy(pull);
  ASSERT_TRUE(pull.set(option::socks_username, "me"));
  ASSERT_TRUE(pull.set(option::socks_password, "secret"));
  connect(pull, "tcp://host.example:5555");
  for (int i = 0; i < 2; ++i) {
    WirePeer client = WirePeer::accept(*proxy_);
    EXPECT_EQ(client.read(4), "\5\2\0\2"s);
    client.write("\5\2"s);
    EXPECT_EQ(client.read(11), "\1\2me\6secret"s);
    client.write("\1\0"s);
    EXPECT_EQ(client.read(19), "\5\1\0\3\x0Chost.example\x15\xB3"s);
    client.write(kGranted);
    EXPECT_EQ(client.read(1), "\xFF") << "the greeting goes through";
  }
}

TEST_P(Socks, ARefusalIsAnEventWithItsReasonAndTheProxyIsAskedAgain) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  use_proxy(pull);
  connect(pull, "tcp://[::1]:5555");
  const std::string wanted = "\5\1\0\4"s + std::string(15, '\0') + "\1\x15\xB3"s;
  take_client(wanted).write("\5\2\0\1\0\0\0\0\0\0"s);
  wait_for_failure(pull, "SOCKS proxy: not allowed by its rules");
  (void)take_client(wanted);
  wait_for_failure(pull, "SOCKS proxy: it closed the connection");
  WirePeer other = WirePeer::accept(*proxy_);
  EXPECT_EQ(other.read(3), "\5\1\0"s);  // unread bytes would make the end a reset
  other.write("HTTP/1.1 400 Bad Request");
  wait_for_failure(pull, "SOCKS proxy: it does not speak SOCKS5");
}

TEST_P(Socks, ARefusedConnectionStopsOneThatStopsWhenRefused) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  ASSERT_TRUE(pull.set(option::reconnect_stop, 1));
  use_proxy(pull);
  connect(pull, "tcp://h:1");
  take_client("\5\1\0\3\1h\0\1"s).write("\5\5\0\1\0\0\0\0\0\0"s);
  wait_for_failure(pull, "SOCKS proxy: connection refused");
  EXPECT_EQ(pull.next_event(10ms).error(), Errc::timed_out) << "it tried again";
}

TEST_P(Socks, AProxyThatSaysNothingIsGivenUp) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.watch_events());
  ASSERT_TRUE(pull.set(option::connect_timeout, 20ms));
  use_proxy(pull);
  connect(pull, "tcp://host.example:5555");
  WirePeer silent = WirePeer::accept(*proxy_);
  wait_for_failure(pull, "connecting took too long");
}

TEST_P(Socks, OnlyTcpGoesThroughIt) {
  Socket pull = make(SocketType::pull);
  use_proxy(pull);
  Socket push = make(SocketType::push);
  ASSERT_TRUE(push.bind("ipc://" + directory_ + "/s"));
  ASSERT_TRUE(pull.connect("ipc://" + directory_ + "/s"));
  send(push, "straight");
  EXPECT_EQ(recv_text(pull), "straight");
}

TEST_P(Socks, ConnectRefusesAMalformedProxyAddress) {
  Socket pull = make(SocketType::pull);
  ASSERT_TRUE(pull.set(option::socks_proxy, "no port"));
  EXPECT_EQ(pull.connect("tcp://127.0.0.1:5555").error(), Errc::malformed_endpoint);
}

}  // namespace
}  // namespace weft::conformance
