// SPDX-License-Identifier: MIT
// The memory of a connection of the web server that waits for its next request or message. It counts the bytes that the
// heap holds, and not those of the kernel.
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/stable_array.h"
#include "weft/net/ws/deflate.h"
#include "weft/serve/server/test_client.h"
#include "weft/serve/web/site.h"
#include "weft/sys/fd.h"
#include "weft/sys/limits.h"
#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

constexpr std::size_t kHttpMost = 1536;                     // bytes of a connection
constexpr std::size_t kWebSocketMost = 2048;                // the same
constexpr std::size_t kWarm = 100;                          // connections that fill pools and tables
constexpr std::size_t kCounted = StableArray<int>::kChunk;  // so that each table of one core grows by one chunk

std::size_t heap_bytes() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

// A peer that takes no memory of the heap between its calls, which block.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{30, 0};
    EXPECT_EQ(::setsockopt(fd_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  }

  // Sends the bytes, and reads until the received bytes end with `end`.
  [[nodiscard]] bool ask(std::string_view bytes, std::string_view end) {
    char room[1024];
    std::size_t have = 0;
    if (::send(fd_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
      return false;
    }
    while (!std::string_view(room, have).ends_with(end)) {
      const ssize_t got = ::recv(fd_.fd(), room + have, sizeof room - have, 0);
      if (got <= 0) {
        return false;
      }
      have += static_cast<std::size_t>(got);
    }
    return true;
  }

 private:
  sys::Fd fd_;
};

class IdleMemory : public serve::test::ServerTest {
 protected:
  void SetUp() override {
    const auto before = sys::set_descriptor_limit(2 * (kWarm + kCounted) + 200);
    ASSERT_TRUE(before) << before.error().message();
    start_runtime(1);
    make_server();
    Router router;
    ASSERT_TRUE(router.get("/", [] { return "hello"; }));
    WebSocketOptions options;
    options.deflate.emplace();
    options.session.idle_timeout = Duration(-1);
    ASSERT_TRUE(router.websocket(
        "/echo",
        [](WebSocketSession& session, const Message& message) { (void)session.send(message.kind, message.body); },
        std::move(options)));
    const Site site(std::move(router));
    ListenerOptions listener;
    listener.limits = session_limits();
    listener.limits.idle_timeout = Duration(-1);
    const auto bound = server_->listen<HttpCodec>("tcp://127.0.0.1:0", listener, site.services(), site.codec());
    ASSERT_TRUE(bound) << bound.error().message();
    port_ = static_cast<std::uint16_t>(std::stoi(bound->substr(bound->rfind(':') + 1)));
  }

  // The bytes of a connection after begin(peer), which returns whether the peer got its answers.
  template <typename Begin>
  std::size_t bytes_of_one(Begin begin) {
    std::vector<Peer> peers;
    peers.reserve(kWarm + kCounted);
    std::size_t before = 0;
    for (std::size_t i = 0; i < kWarm + kCounted; ++i) {
      if (i == kWarm) {
        before = heap_bytes();
      }
      EXPECT_TRUE(begin(peers.emplace_back(port_))) << i;
    }
    const std::size_t after = heap_bytes();
    EXPECT_EQ(server_->sessions(), kWarm + kCounted) << "none of them has ended";
    EXPECT_GT(after, before);
    const std::size_t each = after < before ? 0 : (after - before) / kCounted;
    RecordProperty("bytes", std::to_string(each));
    return each;
  }
  std::size_t bytes_of_websocket(const std::string& offer, const std::string& message, const std::string& answer) {
    const std::string request =
        "GET /echo HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n" +
        offer + "\r\n";
    return bytes_of_one([&](Peer& peer) { return peer.ask(request, "\r\n\r\n") && peer.ask(message, answer); });
  }

  std::uint16_t port_ = 0;
};

TEST_F(IdleMemory, OfAConnectionThatSpeaksHttpIsAtMost1536Bytes) {
  EXPECT_LE(bytes_of_one([](Peer& peer) { return peer.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\r\n\r\nhello"); }),
            kHttpMost);
}

TEST_F(IdleMemory, OfAWebSocketIsAtMost2048Bytes) {
  EXPECT_LE(bytes_of_websocket("", std::string("\x82\x85\0\0\0\0hello", 11), "\x82\x05hello"), kWebSocketMost);
}

TEST_F(IdleMemory, OfAWebSocketWithCompressionIsAtMost2048Bytes) {
  if (!net::ws::deflate_available()) {
    GTEST_SKIP() << "this build has no zlib";
  }
  // "hello" as a compressed block: the example of RFC 7692 section 7.2.3.1 in lower case.
  const std::string compressed("\xC2\x87\0\0\0\0\xCA\x48\xCD\xC9\xC9\x07\0", 13);
  EXPECT_LE(bytes_of_websocket("Sec-WebSocket-Extensions: permessage-deflate\r\n", compressed, "\x82\x05hello"),
            kWebSocketMost);
}

}  // namespace
}  // namespace weft::serve::web
