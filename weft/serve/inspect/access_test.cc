// SPDX-License-Identifier: MIT
#include "weft/serve/inspect/access.h"

#include <string>

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

TEST(AdminAccess, OnlyAddressesOfThisMachineAreNotReachedFromAfar) {
  const auto afar = [](const std::string& endpoint) {
    const auto parsed = net::parse_endpoint(endpoint, true);
    EXPECT_TRUE(parsed) << endpoint;
    return parsed && reached_from_afar(*parsed);
  };
  for (const char* endpoint : {"tcp://*:9100", "tcp://0.0.0.0:9100", "tcp://[::]:9100", "tcp://10.0.0.1:9100",
                               "tcp://example.org:9100", "tcp://128.0.0.1:9100"}) {
    EXPECT_TRUE(afar(endpoint)) << endpoint;
  }
  for (const char* endpoint :
       {"tcp://127.0.0.1:9100", "tcp://127.9.9.9:0", "tcp://[::1]:9100", "tcp://localhost:9100", "ipc:///run/admin"}) {
    EXPECT_FALSE(afar(endpoint)) << endpoint;
  }
}

TEST(AdminAccess, AHostIsThatOfThisMachineOrOneOfTheNames) {
  const std::vector<std::string> names = {"admin.internal"};
  for (const char* host : {"", "localhost", "LOCALHOST:1", "127.0.0.1:9100", "[::1]", "admin.internal:443"}) {
    EXPECT_TRUE(is_admin_host(host, names)) << host;
  }
  for (const char* host : {"[", "[]", "[]:1", ":1", "::1", "%6cocalhost", "example"}) {
    EXPECT_FALSE(is_admin_host(host, names)) << host;
  }
}

TEST(AdminAccess, ATokenIsLongEnoughAndOfTheCharactersOfABearerToken) {
  EXPECT_TRUE(check_admin_token("abcdefghij-._~+/=XYZ0189"));
  EXPECT_TRUE(check_admin_token(std::string(kAdminTokenMin, 'a')));
  EXPECT_TRUE(check_admin_token(std::string(kAdminTokenMax, 'a')));
  EXPECT_NE(check_admin_token("").error().message().find("16 to 256 characters"), std::string::npos);
  EXPECT_FALSE(check_admin_token(std::string(kAdminTokenMin - 1, 'a')));
  EXPECT_FALSE(check_admin_token(std::string(kAdminTokenMax + 1, 'a')));
  for (const char* wrong : {" ", "\n", "\"", ",", "\x80", ":"}) {
    EXPECT_FALSE(check_admin_token(std::string(kAdminTokenMin, 'a') + wrong)) << wrong;
  }
}

TEST(AdminAccess, OnlyTheWholeTokenIsTaken) {
  const std::string token = "0123456789abcdef";
  for (const char* scheme : {"Bearer ", "bearer ", "BEARER   "}) {
    EXPECT_TRUE(bears_token(scheme + token, token)) << scheme;
  }
  for (const char* refused :
       {"", "Bearer", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef", "Bearer0123456789abcdef",
        "Bearer 123456789abcdef", "Bearer 0123456789abcdef0", "Bearer 0123456789abcdef0123456789abcdef",
        "Bearer 0123456789abcdeF", "Bearer 0123456789abcdef ", "Bearer 0"}) {
    EXPECT_FALSE(bears_token(refused, token)) << refused;
  }
  EXPECT_FALSE(bears_token("Bearer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaa"));
}

}  // namespace
}  // namespace weft::serve
