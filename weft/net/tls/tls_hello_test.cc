// SPDX-License-Identifier: MIT
#include "weft/net/tls/tls_hello.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weft::net {
namespace {

std::string record(char kind, std::string_view body) {
  return std::string{kind, '\x03', '\x01', static_cast<char>(body.size() >> 8), static_cast<char>(body.size())}.append(
      body);
}
std::string message(std::size_t claimed, std::size_t size) {
  return std::string{'\1', static_cast<char>(claimed >> 16), static_cast<char>(claimed >> 8),
                     static_cast<char>(claimed)} +
         std::string(size, 'h');
}

// The same however the bytes are cut.
bool passes(std::string_view bytes) {
  HelloBound whole;
  const bool good = whole.check(as_bytes(bytes));
  for (const std::size_t piece : {1, 2, 3, 7, 100}) {
    HelloBound cut;
    bool all = true;
    for (std::size_t at = 0; at < bytes.size() && all; at += piece) {
      all = cut.check(as_bytes(bytes.substr(at, piece)));
    }
    EXPECT_EQ(all, good) << piece;
  }
  return good;
}

TEST(HelloBound, AHelloMayHave16KiB) {
  constexpr std::size_t kMost = HelloBound::kHelloMax;
  EXPECT_TRUE(passes(record(22, message(500, 500))));
  EXPECT_TRUE(passes(record(22, message(kMost, 100))));
  EXPECT_FALSE(passes(record(22, message(kMost + 1, 0))));
  EXPECT_FALSE(passes(record(22, message(0xFFFFFF, 100))));
}

TEST(HelloBound, AClaimIsFoundInAnyRecordAndBehindAnyMessage) {
  const std::string claim = message(131'000, 0);
  EXPECT_FALSE(passes(record(22, claim.substr(0, 1)) + record(22, "") + record(22, claim.substr(1))));
  EXPECT_FALSE(passes(record(22, message(500, 500) + claim)));
  EXPECT_FALSE(
      passes(record(22, message(500, 200)) + record(20, "\1") + record(22, std::string(300, 'h')) + record(22, claim)));
  EXPECT_TRUE(passes(record(22, message(500, 500)) + record(20, claim)));
}

// OpenSSL passes over a warning between a hello that it asked again for and the second one.
TEST(HelloBound, AClaimIsFoundBehindRecordsOfOtherKinds) {
  const std::string hello = record(22, message(500, 500));
  for (const char kind : {'\x14', '\x15', '\x17', '\x63'}) {
    EXPECT_TRUE(passes(hello + record(kind, "\1\x5a") + hello));
    EXPECT_FALSE(passes(hello + record(kind, "\1\x5a") + record(22, message(131'000, 0))));
  }
  EXPECT_TRUE(passes(hello + record(23, message(131'000, 0))));
  EXPECT_TRUE(passes("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_TRUE(passes(""));
}

}  // namespace
}  // namespace weft::net
