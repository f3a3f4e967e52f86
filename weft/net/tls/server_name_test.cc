// SPDX-License-Identifier: MIT
#include "weft/net/tls/server_name.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

std::string parsed(std::string_view name) {
  const auto result = parse_server_name(name);
  EXPECT_EQ(is_server_name(name), static_cast<bool>(result));
  return result ? std::string(*result) : "refused";
}

TEST(ServerName, HostNamesAndAddressesAreNames) {
  for (const char* const name : {"localhost", "a.example", "A-1.b_2.example", "127.0.0.1", "::1", "fe80::1"}) {
    EXPECT_EQ(parsed(name), name);
  }
  EXPECT_EQ(parsed(std::string(253, 'x')), std::string(253, 'x'));
}

TEST(ServerName, AFinalDotAndAZoneAreNoPartOfIt) {
  EXPECT_EQ(parsed("a.example."), "a.example");
  EXPECT_EQ(parsed("fe80::1%eth0"), "fe80::1");
  EXPECT_EQ(parsed("fe80::1%no such interface"), "fe80::1");
}

TEST(ServerName, AnythingElseIsRefused) {
  for (const std::string& name :
       {std::string(), std::string("."), std::string("a.."), std::string(".example"), std::string("a..example"),
        std::string("a.example\0.evil", 15), std::string("*.example"), std::string("a b"), std::string("a/b"),
        std::string("[::1]"), std::string("a:1"), std::string("a%b"), std::string("m\xC3\xBCnchen.example"),
        std::string(254, 'x')}) {
    EXPECT_EQ(parsed(name), "refused") << name;
  }
}

}  // namespace
}  // namespace weft::net
