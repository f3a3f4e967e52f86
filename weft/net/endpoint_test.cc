// SPDX-License-Identifier: MIT
#include "weft/net/stream/endpoint.h"

#include <set>

#include "weft/net/transport/transport.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

enum class Use { bind, connect, both };

bool for_bind(Use use) { return use == Use::bind; }

std::vector<bool> directions(Use use) {
  return use == Use::both ? std::vector{true, false} : std::vector{for_bind(use)};
}

TEST(Endpoint, ParsesAndFormats) {
  const std::string longest_path = "/" + std::string(kMaxIpcPath - 1, 'p');
  const std::string longest_name(kMaxInprocName, 'n');
  const struct {
    Use use;
    std::string text;
    Endpoint expected;
    std::string canonical;  // empty: `text`
  } cases[] = {
      {Use::both, "tcp://127.0.0.1:5555", {.transport = Transport::tcp, .host = "127.0.0.1", .port = 5555}, ""},
      {Use::both, "tcp://localhost:1", {.transport = Transport::tcp, .host = "localhost", .port = 1}, ""},
      {Use::both,
       "tcp://a-b.c_d.example:65535",
       {.transport = Transport::tcp, .host = "a-b.c_d.example", .port = 65535},
       ""},
      {Use::both, "tcp://eth0:80", {.transport = Transport::tcp, .host = "eth0", .port = 80}, ""},
      {Use::both, "tcp://eth0:1:80", {.transport = Transport::tcp, .host = "eth0:1", .port = 80}, "tcp://[eth0:1]:80"},
      {Use::both, "tcp://[::1]:80", {.transport = Transport::tcp, .host = "::1", .port = 80}, ""},
      {Use::both, "tcp://::1:80", {.transport = Transport::tcp, .host = "::1", .port = 80}, "tcp://[::1]:80"},
      {Use::both, "tcp://[fe80::1%lo]:80", {.transport = Transport::tcp, .host = "fe80::1%lo", .port = 80}, ""},
      {Use::both, "tcp://[fe80::1%later]:80", {.transport = Transport::tcp, .host = "fe80::1%later", .port = 80}, ""},
      {Use::both,
       "tcp://[127.0.0.1]:080",
       {.transport = Transport::tcp, .host = "127.0.0.1", .port = 80},
       "tcp://127.0.0.1:80"},
      {Use::bind, "tcp://*:5555", {.transport = Transport::tcp, .port = 5555, .wildcard = true}, ""},
      {Use::bind, "tcp://*:*", {.transport = Transport::tcp, .any_port = true, .wildcard = true}, ""},
      {Use::bind, "tcp://[::]:*", {.transport = Transport::tcp, .host = "::", .any_port = true}, ""},
      {Use::bind,
       "tcp://127.0.0.1:0",
       {.transport = Transport::tcp, .host = "127.0.0.1", .any_port = true},
       "tcp://127.0.0.1:*"},
      {Use::connect,
       "tcp://192.0.2.1:7;example.org:80",
       {.transport = Transport::tcp,
        .host = "example.org",
        .port = 80,
        .has_source = true,
        .source_host = "192.0.2.1",
        .source_port = 7},
       ""},
      {Use::connect,
       "tcp://[::1]:0;[::2]:80",
       {.transport = Transport::tcp, .host = "::2", .port = 80, .has_source = true, .source_host = "::1"},
       ""},
      {Use::connect,
       "tcp://*:*;h:80",
       {.transport = Transport::tcp, .host = "h", .port = 80, .has_source = true},
       "tcp://*:0;h:80"},
      {Use::both, "ws://h:80/a/b?c", {.transport = Transport::ws, .host = "h", .port = 80, .path = "/a/b?c"}, ""},
      {Use::both,
       "wss://[::1]:80",
       {.transport = Transport::wss, .host = "::1", .port = 80, .path = "/"},
       "wss://[::1]:80/"},
      {Use::bind, "ws://*:*/a", {.transport = Transport::ws, .any_port = true, .path = "/a", .wildcard = true}, ""},
      {Use::both, "ipc:///tmp/x.sock", {.transport = Transport::ipc, .path = "/tmp/x.sock"}, ""},
      {Use::both, "ipc://relative name", {.transport = Transport::ipc, .path = "relative name"}, ""},
      {Use::both, "ipc://" + longest_path, {.transport = Transport::ipc, .path = longest_path}, ""},
      {Use::both, "ipc://@name", {.transport = Transport::ipc, .path = "name", .abstract = true}, ""},
      {Use::bind, "ipc://*", {.transport = Transport::ipc, .wildcard = true}, ""},
      {Use::both, "udp://127.0.0.1:5555", {.transport = Transport::udp, .host = "127.0.0.1", .port = 5555}, ""},
      {Use::both, "udp://[ff02::1]:5555", {.transport = Transport::udp, .host = "ff02::1", .port = 5555}, ""},
      {Use::bind, "udp://*:5555", {.transport = Transport::udp, .port = 5555, .wildcard = true}, ""},
      {Use::bind, "udp://eth1:0", {.transport = Transport::udp, .host = "eth1", .any_port = true}, "udp://eth1:*"},
      {Use::both,
       "udp://eth0;239.0.0.1:5555",
       {.transport = Transport::udp, .host = "239.0.0.1", .port = 5555, .has_source = true, .source_host = "eth0"},
       ""},
      {Use::both,
       "udp://*;239.0.0.1:5555",
       {.transport = Transport::udp, .host = "239.0.0.1", .port = 5555, .has_source = true},
       ""},
      {Use::both,
       "udp://[::1];group.example:5555",
       {.transport = Transport::udp, .host = "group.example", .port = 5555, .has_source = true, .source_host = "::1"},
       "udp://::1;group.example:5555"},
      {Use::both, "vsock://3:5555", {.transport = Transport::vsock, .cid = 3, .vsock_port = 5555}, ""},
      {Use::both, "vsock://1:0", {.transport = Transport::vsock, .cid = 1}, ""},
      {Use::both, "vsock://@:70000", {.transport = Transport::vsock, .cid = 2, .vsock_port = 70000}, "vsock://2:70000"},
      {Use::both, "vsock://0:4294967294", {.transport = Transport::vsock, .cid = 0, .vsock_port = 4294967294}, ""},
      {Use::bind, "vsock://*:5555", {.transport = Transport::vsock, .wildcard = true, .vsock_port = 5555}, ""},
      {Use::bind, "vsock://1:*", {.transport = Transport::vsock, .any_port = true, .cid = 1}, ""},
      {Use::bind, "vsock://-1:-1", {.transport = Transport::vsock, .any_port = true, .wildcard = true}, "vsock://*:*"},
      {Use::bind,
       "vsock://4294967295:4294967295",
       {.transport = Transport::vsock, .any_port = true, .wildcard = true},
       "vsock://*:*"},
      {Use::both, "inproc://a b://c", {.transport = Transport::inproc, .name = "a b://c"}, ""},
      {Use::both, "inproc://*", {.transport = Transport::inproc, .name = "*"}, ""},
      {Use::both, "inproc://" + longest_name, {.transport = Transport::inproc, .name = longest_name}, ""},
  };
  for (const auto& [use, text, expected, canonical] : cases) {
    for (const bool bind : directions(use)) {
      const auto parsed = parse_endpoint(text, bind);
      ASSERT_TRUE(parsed) << text << ": " << parsed.error().message();
      EXPECT_EQ(*parsed, expected) << text;
      EXPECT_EQ(parsed->text(), canonical.empty() ? text : canonical);
      EXPECT_EQ(*parse_endpoint(parsed->text(), bind), expected) << text;
    }
  }
}

TEST(Endpoint, RefusesWithTheRuleThatWasBroken) {
  const struct {
    Use use;
    std::string text;
    const char* rule;
  } cases[] = {
      {Use::both, "", "an endpoint is transport://address"},
      {Use::both, "tcp", "an endpoint is transport://address"},
      {Use::both, "tcp:/127.0.0.1:80", "an endpoint is transport://address"},
      {Use::both, "://x", "an endpoint is transport://address"},
      {Use::both, "tcp://", "an address needs :port after its host"},
      {Use::both, "tcp://localhost", "an address needs :port after its host"},
      {Use::both, "tcp://[::1]", "an address needs :port after its host"},
      {Use::both, "tcp://[::1]80", "an address needs :port after its host"},
      {Use::both, "tcp://[::1:80", "a [ in an address is not closed"},
      {Use::both, "tcp://:80", "a host is missing"},
      {Use::both, "tcp://[]:80", "a host is missing"},
      {Use::both, "tcp://" + std::string(254, 'h') + ":80", "a host has at most 253 bytes"},
      {Use::both, "tcp://a b:80", "a host is an address, a host name or an interface name"},
      {Use::both, "tcp://a/b:80", "a host is an address, a host name or an interface name"},
      {Use::both, "tcp://1:2:3:80", "a host is an address, a host name or an interface name"},
      {Use::both, "tcp://[fe80::1%]:80", "a host is an address, a host name or an interface name"},
      {Use::both, "tcp://[fe80%later]:80", "a host is an address, a host name or an interface name"},
      {Use::both, "tcp://127.0.0.1%later:80", "a host is an address, a host name or an interface name"},
      {Use::both, "tcp://localhost:", "a port is a number up to 65535"},
      {Use::both, "tcp://localhost:65536", "a port is a number up to 65535"},
      {Use::both, "tcp://localhost:-1", "a port is a number up to 65535"},
      {Use::both, "tcp://localhost:+1", "a port is a number up to 65535"},
      {Use::both, "tcp://localhost:1x", "a port is a number up to 65535"},
      {Use::both, "tcp://localhost: 1", "a port is a number up to 65535"},
      {Use::both, "tcp://localhost:http", "a port is a number up to 65535"},
      {Use::bind, "tcp://a:1;b:2", "a source address is for connect only"},
      {Use::connect, "tcp://*:80", "connect needs a host, not the wildcard"},
      {Use::connect, "tcp://localhost:*", "connect needs a port, not the wildcard"},
      {Use::connect, "tcp://localhost:0", "connect needs a port other than 0"},
      {Use::connect, "tcp://a;b:80", "an address needs :port after its host"},
      {Use::connect, "tcp://a:1;", "an address needs :port after its host"},
      {Use::connect, "tcp://a:1;b:2;c:3", "a host is an address, a host name or an interface name"},
      {Use::both, "ws://h/", "an address needs :port after its host"},
      {Use::connect, "ws://*:80/", "connect needs a host, not the wildcard"},
      {Use::both, "ws://h:80/a b", "a ws path has only printable characters of ASCII and no space"},
      {Use::both, "ws://h:80/a\r\nX: y", "a ws path has only printable characters of ASCII and no space"},
      {Use::both, "ws://h:80/\xC3\xA4", "a ws path has only printable characters of ASCII and no space"},
      {Use::both, "ws://h:80/" + std::string(1024, 'p'), "a ws path has at most 1024 bytes"},
      {Use::both, "ipc://", "an ipc path is missing"},
      {Use::both, "ipc://@", "an ipc path is missing"},
      {Use::connect, "ipc://*", "connect needs a path, not the wildcard"},
      {Use::both, "ipc://" + std::string(108, 'p'), "an ipc path has at most 107 bytes"},
      {Use::both, "ipc://@" + std::string(108, 'p'), "an ipc path has at most 107 bytes"},
      {Use::both, std::string("ipc://a\0b", 9), "an ipc path has no NUL byte"},
      {Use::both, "udp://127.0.0.1", "an address needs :port after its host"},
      {Use::both, "udp://:5555", "a host is missing"},
      {Use::both, "udp://;239.0.0.1:5555", "a host is missing"},
      {Use::both, "udp://127.0.0.1:65536", "a port is a number up to 65535"},
      {Use::both, "udp://eth0;127.0.0.1:5555", "an interface is for a multicast group only"},
      {Use::both, "udp://eth0;*:5555", "an interface is for a multicast group only"},
      {Use::both, "udp://239.0.0.1;239.0.0.2:5555", "a multicast group is no interface"},
      {Use::connect, "udp://*:5555", "connect needs a host, not the wildcard"},
      {Use::connect, "udp://127.0.0.1:*", "connect needs a port, not the wildcard"},
      {Use::connect, "udp://127.0.0.1:0", "connect needs a port other than 0"},
      {Use::both, "vsock://", "a vsock address is CID:PORT"},
      {Use::both, "vsock://3", "a vsock address is CID:PORT"},
      {Use::both, "vsock://:5555", "a CID is a number of 32 bits, * or @"},
      {Use::both, "vsock://localhost:5555", "a CID is a number of 32 bits, * or @"},
      {Use::both, "vsock://4294967296:5555", "a CID is a number of 32 bits, * or @"},
      {Use::both, "vsock://-2:5555", "a CID is a number of 32 bits, * or @"},
      {Use::both, "vsock://@3:5555", "a CID is a number of 32 bits, * or @"},
      {Use::both, "vsock://3:4:5555", "a CID is a number of 32 bits, * or @"},
      {Use::both, "vsock://3:", "a vsock port is a number of 32 bits or *"},
      {Use::both, "vsock://3:@", "a vsock port is a number of 32 bits or *"},
      {Use::both, "vsock://3:4294967296", "a vsock port is a number of 32 bits or *"},
      {Use::both, "vsock://3:5555/", "a vsock port is a number of 32 bits or *"},
      {Use::both, "vsock://3: 5", "a vsock port is a number of 32 bits or *"},
      {Use::connect, "vsock://*:5555", "connect needs a CID, not the wildcard"},
      {Use::connect, "vsock://4294967295:5555", "connect needs a CID, not the wildcard"},
      {Use::connect, "vsock://3:*", "connect needs a port, not the wildcard"},
      {Use::connect, "vsock://3:-1", "connect needs a port, not the wildcard"},
      {Use::both, "inproc://", "an inproc name is missing"},
      {Use::both, "inproc://" + std::string(256, 'n'), "an inproc name has at most 255 bytes"},
  };
  for (const auto& [use, text, rule] : cases) {
    for (const bool bind : directions(use)) {
      const Error error = parse_endpoint(text, bind).error();
      EXPECT_EQ(error.code(), Errc::malformed_endpoint) << text;
      EXPECT_STREQ(error.text(), rule) << text;
    }
  }
}

TEST(Endpoint, RefusesUnknownTransports) {
  for (const char* text : {"pgm://127.0.0.1:1", "TCP://127.0.0.1:1", " tcp://x:1", "tcp2://x:1"}) {
    EXPECT_EQ(parse_endpoint(text, true).error().code(), Errc::unknown_transport) << text;
  }
}

TEST(Endpoint, EveryTransportHasOneRow) {
  std::set<std::string_view> names;
  for (const TransportRow& row : transports()) {
    EXPECT_TRUE(names.insert(name_of(row.transport)).second);
    EXPECT_EQ(&transport_row(row.transport), &row);
  }
  EXPECT_EQ(names.size(), 8u);
}

}  // namespace
}  // namespace weft::net
