// SPDX-License-Identifier: MIT
#include "weft/net/admit/accept_filter.h"

#include <string>

#include "weft/sys/poll.h"
#include "weft/sys/socket.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

// Both ends of a connection from `source`.
struct Pair {
  sys::Fd listener;
  sys::Connecting client;
  sys::Fd server;
};
Pair connect_from(const std::string& listen, const std::string& source) {
  const auto at = *sys::SocketAddress::parse_numeric(listen, 0);
  const sys::SocketOptions options{.ipv6 = true};
  Pair pair;
  pair.listener = std::move(sys::open_tcp_listener(at, options)).value();
  const auto from = *sys::SocketAddress::parse_numeric(source, 0);
  const auto to = *sys::SocketAddress::parse_numeric(source == "::1" ? "::1" : "127.0.0.1",
                                                     sys::local_address(pair.listener.fd())->port());
  pair.client = std::move(sys::open_tcp_connection(to, &from, options)).value();
  sys::PollFd waits{pair.listener.fd(), sys::Interest::readable};
  (void)sys::poll_fds({&waits, 1}, std::chrono::seconds(10));
  pair.server = std::move(sys::accept_connection(pair.listener.fd())).value();
  return pair;
}

bool admits(std::string_view networks, const Pair& pair) {
  const auto filter = AcceptFilter::parse(networks, "uid:4294967000");
  EXPECT_TRUE(filter) << networks;
  return filter && filter->admits(pair.server.fd());
}

TEST(AcceptFilter, ANetworkIsAnAddressAndTheBitsThatCount) {
  const Pair pair = connect_from("127.0.0.1", "127.9.8.7");
  for (const char* networks : {"", "127.9.8.7", "127.9.8.7/32", "127.0.0.0/8", "127.8.0.0/15", "0.0.0.0/0",
                               "127.9.8.6/31", "1.2.3.4,127.9.8.7", "::1,127.0.0.0/8", "127.9.8.7,"}) {
    EXPECT_TRUE(admits(networks, pair)) << networks;
  }
  for (const char* networks : {"127.9.8.6", "127.128.0.0/9,1.2.3.4", "127.9.8.4/31", "::/0", "127.10.0.0/16"}) {
    EXPECT_FALSE(admits(networks, pair)) << networks;
  }
}

TEST(AcceptFilter, AnIpv4PeerOfAnIpv6ListenerIsIpv4) {
  const auto listener = sys::open_tcp_listener(sys::SocketAddress::any(true, 0), {.ipv6 = true});
  if (!listener) {
    GTEST_SKIP() << "no IPv6 here";
  }
  const Pair pair = connect_from("::", "127.0.0.5");
  EXPECT_TRUE(admits("127.0.0.5", pair));
  EXPECT_FALSE(admits("::1", pair));
}

TEST(AcceptFilter, ATextThatIsNoListIsRefused) {
  for (const char* networks : {"x", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/", "127.0.0.1/8x", "::1/129", "/8", ",",
                               "localhost", "127.0.0.1,,::1"}) {
    EXPECT_EQ(AcceptFilter::parse(networks, "").error(), Errc::invalid_argument) << networks;
  }
  for (const char* processes : {"1", "uid:", "uid:-1", "uid:x", "tid:1", "uid:4294967296", "uid:1,gid"}) {
    EXPECT_EQ(AcceptFilter::parse("", processes).error(), Errc::invalid_argument) << processes;
  }
  EXPECT_TRUE(AcceptFilter::parse("::1/128,fe80::/10", "uid:0,gid:4294967295,pid:1,"));
}

}  // namespace
}  // namespace weft::net
