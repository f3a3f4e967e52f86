// SPDX-License-Identifier: MIT
#include "weft/sys/address.h"

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

using Family = SocketAddress::Family;

TEST(SocketAddress, ParsesNumericAddresses) {
  const auto ipv4 = SocketAddress::parse_numeric("127.0.0.1", 5555);
  ASSERT_TRUE(ipv4);
  EXPECT_EQ(ipv4->family(), Family::ipv4);
  EXPECT_EQ(ipv4->port(), 5555);
  EXPECT_EQ(ipv4->to_text(), "127.0.0.1:5555");
  EXPECT_EQ(ipv4->host_text(), "127.0.0.1");
  EXPECT_TRUE(ipv4->is_ip());

  const auto ipv6 = SocketAddress::parse_numeric("2001:0db8::0001", 80);
  ASSERT_TRUE(ipv6);
  EXPECT_EQ(ipv6->family(), Family::ipv6);
  EXPECT_EQ(ipv6->to_text(), "[2001:db8::1]:80");

  const auto scoped = SocketAddress::parse_numeric("fe80::1%lo", 80);
  ASSERT_TRUE(scoped);
  EXPECT_EQ(scoped->to_text(), "[fe80::1%lo]:80");
}

TEST(SocketAddress, RefusesWhatIsNotNumeric) {
  for (const char* text : {"", "localhost", "127.0.0", "127.0.0.256", "[::1]", "::1::", "*", "127.0.0.1:80", "1",
                           " ::1", "fe80::1%no-such-interface-here"}) {
    EXPECT_EQ(SocketAddress::parse_numeric(text, 1).error().code(), Errc::malformed_endpoint) << text;
  }
  EXPECT_FALSE(SocketAddress::parse_numeric(std::string_view("127.0.0.1\0x", 11), 1));
  EXPECT_FALSE(SocketAddress::parse_numeric(std::string(1000, '1'), 1));
}

TEST(SocketAddress, ChangesOnlyThePort) {
  EXPECT_EQ(SocketAddress::any(false, 1).with_port(40000).to_text(), "0.0.0.0:40000");
  EXPECT_EQ(SocketAddress::any(true, 1).with_port(40000).to_text(), "[::]:40000");
  EXPECT_EQ(SocketAddress::from_path("/x")->with_port(9).to_text(), "/x");
}

TEST(SocketAddress, IsMadeOfTheBytesOfAnIpAddress) {
  const std::uint8_t ipv4[] = {192, 0, 2, 1};
  const std::uint8_t ipv6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(SocketAddress::from_ip(ipv4, 5555), *SocketAddress::parse_numeric("192.0.2.1", 5555));
  EXPECT_EQ(SocketAddress::from_ip(ipv6, 5555), *SocketAddress::parse_numeric("2001:db8::1", 5555));
  EXPECT_EQ(SocketAddress::from_ip(Bytes(ipv6).first(5), 5555).family(), SocketAddress::Family::none);
}

TEST(SocketAddress, HoldsUnixNamesUpToTheirLimit) {
  const std::string longest(SocketAddress::kMaxUnixName, 'p');
  EXPECT_EQ(SocketAddress::from_path(longest)->to_text(), longest);
  EXPECT_EQ(SocketAddress::from_path(longest)->family(), Family::unix_path);
  EXPECT_EQ(SocketAddress::from_abstract(longest)->to_text(), "@" + longest);
  EXPECT_EQ(SocketAddress::from_abstract("x")->family(), Family::unix_abstract);
  for (const std::string& bad : {longest + "p", std::string(), std::string("a\0b", 3)}) {
    EXPECT_EQ(SocketAddress::from_path(bad).error().code(), Errc::malformed_endpoint);
  }
  EXPECT_EQ(SocketAddress::from_abstract(longest + "p").error().code(), Errc::malformed_endpoint);
  EXPECT_EQ(SocketAddress::from_abstract("").error().code(), Errc::malformed_endpoint);
}

TEST(SocketAddress, ComparesByWhatItNames) {
  EXPECT_EQ(*SocketAddress::parse_numeric("::1", 5), *SocketAddress::parse_numeric("0:0::1", 5));
  EXPECT_FALSE(*SocketAddress::parse_numeric("::1", 5) == *SocketAddress::parse_numeric("::1", 6));
  EXPECT_FALSE(*SocketAddress::from_path("x") == *SocketAddress::from_abstract("x"));
  EXPECT_EQ(SocketAddress(), SocketAddress());
  EXPECT_EQ(SocketAddress().to_text(), "");
}

TEST(SocketAddress, HoldsTheNumbersOfAVirtualMachine) {
  const SocketAddress address = SocketAddress::from_vsock(3, 4'000'000'000);
  EXPECT_EQ(address.family(), Family::vsock);
  EXPECT_TRUE(address.is_vsock());
  EXPECT_FALSE(address.is_ip());
  EXPECT_FALSE(address.is_unix());
  EXPECT_EQ(address.to_text(), "3:4000000000");
  EXPECT_EQ(address.host_text(), "3");
  EXPECT_EQ(address.port(), 0);
  EXPECT_TRUE(address.ip_bytes().empty());
  EXPECT_EQ(SocketAddress::from_raw(address.raw(), address.raw_size()), address);
  EXPECT_EQ(SocketAddress::from_vsock(SocketAddress::kVsockAny, SocketAddress::kVsockAny).to_text(), "*:*");
}

TEST(SocketAddress, KnowsMulticast) {
  for (const char* group : {"224.0.0.1", "239.255.255.255", "ff02::1"}) {
    EXPECT_TRUE(SocketAddress::parse_numeric(group, 1)->is_multicast()) << group;
  }
  for (const char* host : {"127.0.0.1", "240.0.0.1", "223.255.255.255", "::1", "fe80::1", "::ffff:239.0.0.1"}) {
    EXPECT_FALSE(SocketAddress::parse_numeric(host, 1)->is_multicast()) << host;
  }
  EXPECT_FALSE(SocketAddress().is_multicast());
}

TEST(NameLookup, FindsTheLoopbackInterface) {
  EXPECT_GT(interface_number("lo"), 0u);
  EXPECT_EQ(interface_number("no-such-nic"), 0u);
  const auto loopback = interface_address("lo", 7, false);
  ASSERT_TRUE(loopback) << loopback.error().message();
  EXPECT_EQ(loopback->to_text(), "127.0.0.1:7");
  EXPECT_TRUE(interface_address("lo", 7, true));
  EXPECT_EQ(interface_address("no-such-nic", 7, false).error().code(), Errc::address_unavailable);
}

TEST(NameLookup, ResolvesLocalhostAndRefusesNonsense) {
  const auto addresses = resolve("localhost", 5555, false);
  ASSERT_TRUE(addresses) << addresses.error().message();
  for (const SocketAddress& address : *addresses) {
    EXPECT_EQ(address.to_text(), "127.0.0.1:5555");
  }
  EXPECT_TRUE(resolve("localhost", 5555, true));
  EXPECT_EQ(resolve("not a host name", 1, false).error().code(), Errc::name_unresolved);
}

}  // namespace
}  // namespace weft::sys
