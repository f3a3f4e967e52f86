// SPDX-License-Identifier: MIT
#include "weft/net/socks5.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

using namespace std::string_literals;

Socks5Proxy proxy_with(const std::string& username = {}, const std::string& password = {}) {
  return *parse_socks5_proxy("127.0.0.1:1080", username, password);
}

// The client's bytes, flight by flight, and the end.
struct Talk {
  std::vector<std::string> said;
  std::string end;  // "done", "waiting", or the fault
  int os_errno = 0;
  std::size_t taken = 0;  // bytes of the proxy's that were taken
};

std::string take_output(Socks5& client) {
  std::string said;
  while (!client.pending_output().empty()) {
    said += static_cast<char>(client.pending_output()[0]);
    client.consume_output(1);
  }
  return said;
}

// Feeds `replies` as far as the client takes them, at most `piece` bytes at a time.
Talk talk(Socks5& client, const Socks5Proxy& proxy, std::string_view host, std::uint16_t port, std::string_view replies,
          std::size_t piece) {
  client.start(proxy, host, port);
  Talk result;
  result.said.push_back(take_output(client));
  while (client.wanted() > 0 && !replies.empty()) {
    const std::size_t size = std::min({piece, client.wanted(), replies.size()});
    client.handle_input(as_bytes(replies.substr(0, size)));
    replies.remove_prefix(size);
    result.taken += size;
    if (std::string said = take_output(client); !said.empty()) {
      result.said.push_back(std::move(said));
    }
  }
  result.end = client.done() ? "done" : client.fault() ? client.fault()->text() : "waiting";
  result.os_errno = client.fault() ? client.fault()->os_errno() : 0;
  return result;
}

Talk talk(const Socks5Proxy& proxy, std::string_view host, std::uint16_t port, std::string_view replies) {
  Socks5 client;
  Talk whole = talk(client, proxy, host, port, replies, 1000);
  for (std::size_t piece = 1; piece <= std::min<std::size_t>(replies.size(), 24); ++piece) {
    const Talk cut = talk(client, proxy, host, port, replies, piece);
    EXPECT_EQ(cut.said, whole.said) << piece;
    EXPECT_EQ(cut.end, whole.end) << piece;
    EXPECT_EQ(cut.os_errno, whole.os_errno) << piece;
    EXPECT_LE(cut.taken, whole.taken) << piece;
  }
  return whole;
}

const std::string kMethod = "\5\0"s;
const std::string kReply = "\5\0\0\1\1\2\3\4\x11\x12"s;

TEST(Socks5, AsksForAnAddressWithoutALogin) {
  const Talk result = talk(proxy_with(), "192.0.2.1", 5555, kMethod + kReply);
  EXPECT_EQ(result.said, (std::vector{"\5\1\0"s, "\5\1\0\1\xC0\0\2\1\x15\xB3"s}));
  EXPECT_EQ(result.end, "done");
}

TEST(Socks5, AsksForAnIpv6Address) {
  const Talk result = talk(proxy_with(), "2001:db8::1", 80, kMethod + kReply);
  EXPECT_EQ(result.said[1], "\5\1\0\4\x20\x01\x0D\xB8\0\0\0\0\0\0\0\0\0\0\0\1\0\x50"s);
  EXPECT_EQ(result.end, "done");
}

TEST(Socks5, LeavesANameToTheProxy) {
  const Talk result = talk(proxy_with(), "host.example", 1, kMethod + kReply);
  EXPECT_EQ(result.said[1], "\5\1\0\3\x0Chost.example\0\1"s);
  const std::string longest(253, 'h');
  EXPECT_EQ(talk(proxy_with(), longest, 1, kMethod + kReply).said[1], "\5\1\0\3\xFD"s + longest + "\0\1"s);
}

TEST(Socks5, TellsNameAndPasswordWhenTheProxyAsks) {
  const Talk result = talk(proxy_with("me", "secret"), "h", 1, "\5\2\1\0"s + kReply);
  EXPECT_EQ(result.said, (std::vector{"\5\2\0\2"s, "\1\2me\6secret"s, "\5\1\0\3\1h\0\1"s}));
  EXPECT_EQ(result.end, "done");
  const std::string longest(255, 'x');
  EXPECT_EQ(talk(proxy_with(longest, longest), "h", 1, "\5\2\1\0"s).said[1], "\1\xFF"s + longest + "\xFF"s + longest);
  EXPECT_EQ(talk(proxy_with("me"), "h", 1, "\5\2\1\0"s).said[1], "\1\2me\0"s);
}

TEST(Socks5, KeepsNameAndPasswordWhenTheProxyDoesNotAsk) {
  const Talk result = talk(proxy_with("me", "secret"), "h", 1, kMethod + kReply);
  EXPECT_EQ(result.said.size(), 2u);
  EXPECT_EQ(result.end, "done");
}

TEST(Socks5, NeverTakesAByteBehindTheReply) {
  const std::string replies[] = {
      kReply,
      "\5\0\0\4"s + std::string(16, 'a') + "\0\1"s,
      "\5\0\0\3\0\0\1"s,
      "\5\0\0\3\5where\0\1"s,
      "\5\0\0\3\xFF"s + std::string(255, 'w') + "\0\1"s,
  };
  for (const std::string& reply : replies) {
    const Talk result = talk(proxy_with(), "h", 1, kMethod + reply + "\xFF\0\0 from behind"s);
    EXPECT_EQ(result.end, "done");
    EXPECT_EQ(result.taken, kMethod.size() + reply.size());
    for (std::size_t size = 0; size < kMethod.size() + reply.size(); ++size) {
      EXPECT_EQ(talk(proxy_with(), "h", 1, (kMethod + reply).substr(0, size)).end, "waiting");
    }
  }
}

TEST(Socks5, SaysWhyTheProxyRefuses) {
  const std::pair<char, std::pair<const char*, int>> cases[] = {
      {'\1', {"SOCKS proxy: general failure", 0}},
      {'\2', {"SOCKS proxy: not allowed by its rules", EACCES}},
      {'\3', {"SOCKS proxy: network unreachable", ENETUNREACH}},
      {'\4', {"SOCKS proxy: host unreachable", EHOSTUNREACH}},
      {'\5', {"SOCKS proxy: connection refused", ECONNREFUSED}},
      {'\6', {"SOCKS proxy: time to live expired", ETIMEDOUT}},
      {'\7', {"SOCKS proxy: it does not connect", 0}},
      {'\10', {"SOCKS proxy: it does not take this kind of address", 0}},
      {'\11', {"SOCKS proxy: refused for a reason unknown here", 0}},
      {'\xFF', {"SOCKS proxy: refused for a reason unknown here", 0}},
  };
  for (const auto& [outcome, expected] : cases) {
    const Talk result = talk(proxy_with(), "h", 1, kMethod + "\5"s + outcome);
    EXPECT_EQ(result.end, expected.first);
    EXPECT_EQ(result.os_errno, expected.second);
  }
}

TEST(Socks5, RefusesWhatNoProxySays) {
  const Socks5Proxy named = proxy_with("me", "secret");
  EXPECT_EQ(talk(proxy_with(), "h", 1, "\4"s).end, "SOCKS proxy: it does not speak SOCKS5");
  EXPECT_EQ(talk(proxy_with(), "h", 1, "HTTP/1.0 400"s).end, "SOCKS proxy: it does not speak SOCKS5");
  EXPECT_EQ(talk(proxy_with(), "h", 1, "\5\xFF"s).end, "SOCKS proxy: it wants a name and a password");
  EXPECT_EQ(talk(proxy_with(), "h", 1, "\5\2"s).end, "SOCKS proxy: it wants a name and a password");
  EXPECT_EQ(talk(named, "h", 1, "\5\xFF"s).end, "SOCKS proxy: no common login");
  EXPECT_EQ(talk(named, "h", 1, "\5\1"s).end, "SOCKS proxy: it chose a login that was not offered");
  EXPECT_EQ(talk(named, "h", 1, "\5\2\5"s).end, "SOCKS proxy: malformed answer to the password");
  EXPECT_EQ(talk(named, "h", 1, "\5\2\1\1"s).end, "SOCKS proxy: name or password refused");
  EXPECT_EQ(talk(proxy_with(), "h", 1, kMethod + "\4"s).end, "SOCKS proxy: it does not speak SOCKS5");
  EXPECT_EQ(talk(proxy_with(), "h", 1, kMethod + "\5\0\0\2\0"s).end, "SOCKS proxy: malformed reply");
}

TEST(Socks5, AnyBytesEndTheSameWayHoweverTheyAreCut) {
  std::uint32_t random = 1;
  const auto next = [&random] { return (random = random * 1'664'525U + 1'013'904'223U) >> 24; };
  for (int round = 0; round < 3000; ++round) {
    // Mostly correct bytes, so that every step is reached.
    std::string replies = round % 2 == 0 ? kMethod + "\5\0\0"s : "\5\2\1\0\5\0\0"s;
    replies.resize(next() % (replies.size() + 1));
    for (std::size_t left = next() % 40; left > 0; --left) {
      replies += static_cast<char>(next() % 4 == 0 ? next() : next() % 6);
    }
    const Talk result = talk(proxy_with("me", "secret"), "h", 1, replies);
    EXPECT_LE(result.taken, replies.size());
  }
}

TEST(Socks5, AProxyIsAHostAndAPort) {
  EXPECT_EQ(parse_socks5_proxy("proxy.example:1080", {}, {})->endpoint.host, "proxy.example");
  EXPECT_EQ(parse_socks5_proxy("[::1]:1080", {}, {})->endpoint.port, 1080);
  EXPECT_EQ(parse_socks5_proxy("127.0.0.2:0;host:1080", {}, {})->endpoint.source_host, "127.0.0.2");
  for (const char* text : {"", "host", "host:", ":1080", "host:*", "*:1080", "host:0", "a:1;b", "host:99999"}) {
    EXPECT_EQ(parse_socks5_proxy(text, {}, {}).error(), Errc::malformed_endpoint) << text;
  }
}

// All of the memory of the client, and of its output up to its capacity.
bool holds(const Socks5& client, const std::uint8_t* output, std::size_t capacity, std::string_view secret) {
  const std::string_view inside(reinterpret_cast<const char*>(&client), sizeof client);
  const std::string_view outside(reinterpret_cast<const char*>(output), capacity);
  return inside.find(secret) != std::string_view::npos || outside.find(secret) != std::string_view::npos;
}

TEST(Socks5, ThePasswordLeavesTheMemoryOnceItWasSent) {
  Socks5 client;
  client.start(proxy_with("me", "my secret"), "example.org", 5555);
  take_output(client);
  client.handle_input(as_bytes("\5\2"s));
  const std::uint8_t* const output = client.pending_output().data();
  const std::size_t size = client.pending_output().size();
  ASSERT_TRUE(holds(client, output, size, "my secret"));
  client.consume_output(size - 1);
  ASSERT_TRUE(holds(client, output, size, "my secret"));
  client.consume_output(1);
  EXPECT_FALSE(holds(client, output, size, "secret"));
  client.handle_input(as_bytes("\1\0"s));
  EXPECT_GT(take_output(client).size(), 0U);  // the request
  client.handle_input(as_bytes(kReply).first(5));
  client.handle_input(as_bytes(kReply).subspan(5));
  EXPECT_TRUE(client.done());
}

TEST(Socks5, APasswordThatTheProxyDoesNotWantIsForgotten) {
  Socks5 client;
  client.start(proxy_with("me", "my secret"), "example.org", 5555);
  take_output(client);
  ASSERT_TRUE(holds(client, nullptr, 0, "my secret"));
  client.handle_input(as_bytes(kMethod));
  EXPECT_FALSE(holds(client, nullptr, 0, "secret"));
}

}  // namespace
}  // namespace weft::net
