// SPDX-License-Identifier: MIT
#include "weft/net/admit/ip_prefix.h"

#include "weft/sys/address.h"
#include <gtest/gtest.h>

namespace weft::net {
namespace {

bool contains(const char* prefix, const char* address) {
  return IpPrefix::parse(prefix)->contains(sys::SocketAddress::parse_numeric(address, 0)->ip_bytes());
}

TEST(IpPrefix, HoldsTheAddressesThatBeginWithItsBits) {
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(contains("192.168.4.0/22", "192.168.7.255"));
  EXPECT_FALSE(contains("192.168.4.0/22", "192.168.8.0"));
  EXPECT_TRUE(contains("2001:db8::/32", "2001:db8:ffff::1"));
  EXPECT_FALSE(contains("2001:db8::/32", "2001:db9::"));
  EXPECT_TRUE(contains("::1", "::1"));
  EXPECT_FALSE(contains("::1", "::2"));
}

TEST(IpPrefix, NoBitsAreEveryAddressOfTheFamily) {
  EXPECT_TRUE(contains("0.0.0.0/0", "255.1.2.3"));
  EXPECT_FALSE(contains("0.0.0.0/0", "::1"));
  EXPECT_TRUE(contains("::/0", "::1"));
  EXPECT_FALSE(contains("::/0", "1.2.3.4"));
}

TEST(IpPrefix, BitsBehindThePrefixDoNotCount) {
  EXPECT_EQ(*IpPrefix::parse("10.1.2.3/8"), *IpPrefix::parse("10.0.0.0/8"));
  EXPECT_EQ(*IpPrefix::parse("2001:db8::1/33"), *IpPrefix::parse("2001:db8::/33"));
  EXPECT_FALSE(*IpPrefix::parse("10.0.0.0/8") == *IpPrefix::parse("10.0.0.0/9"));
  EXPECT_FALSE(*IpPrefix::parse("0.0.0.0/0") == *IpPrefix::parse("::/0"));
  EXPECT_EQ(IpPrefix::parse("10.0.0.0/8")->hash(1), IpPrefix::parse("10.9.9.9/8")->hash(1));
}

TEST(IpPrefix, AnIpv4AddressInIpv6FormIsIpv4) {
  EXPECT_EQ(*IpPrefix::parse("::ffff:10.1.2.3"), *IpPrefix::parse("10.1.2.3"));
  EXPECT_EQ(*IpPrefix::parse("::ffff:10.0.0.0/104"), *IpPrefix::parse("10.0.0.0/8"));
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_EQ(IpPrefix::parse("::ffff:10.0.0.0/95").error(), Errc::invalid_argument);
}

TEST(IpPrefix, ItsTextIsParsedBack) {
  EXPECT_EQ(IpPrefix::parse("10.1.2.3/8")->to_text(), "10.0.0.0/8");
  EXPECT_EQ(IpPrefix::parse("2001:db8::1")->to_text(), "2001:db8::1/128");
  EXPECT_EQ(IpPrefix::parse("::ffff:10.0.0.0/104")->to_text(), "10.0.0.0/8");
}

TEST(IpPrefix, ATextThatIsNoPrefixIsRefused) {
  for (const char* text : {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8 ",
                           "10.0.0/8", "::/129", "::/99999999999", "localhost/8", "10.0.0.0/8/8", "[::1]/64"}) {
    EXPECT_EQ(IpPrefix::parse(text).error(), Errc::invalid_argument) << text;
  }
}

TEST(IpPrefix, AListHasCommasBetweenAndPerhapsOneBehind) {
  EXPECT_EQ(parse_ip_prefixes("")->size(), 0u);
  EXPECT_EQ(parse_ip_prefixes("10.0.0.0/8,::1,")->size(), 2u);
  EXPECT_EQ(parse_ip_prefixes(",").error(), Errc::invalid_argument);
  EXPECT_EQ(parse_ip_prefixes("::1,,::2").error(), Errc::invalid_argument);
}

TEST(IpPrefix, BytesThatAreNoIpAddressAreInNoPrefix) {
  EXPECT_FALSE(IpPrefix::parse("0.0.0.0/0")->contains({}));
  EXPECT_FALSE(IpPrefix::of({}, 0).contains({}));
  EXPECT_EQ(IpPrefix::of({}, 0).to_text(), "");
}

}  // namespace
}  // namespace weft::net
