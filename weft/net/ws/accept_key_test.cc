// SPDX-License-Identifier: MIT
#include "weft/net/ws/accept_key.h"

#include "weft/base/bytes.h"
#include <gtest/gtest.h>

namespace weft::net::ws {
namespace {

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(AcceptKey, IsTheExampleOfTheRfc) {
  EXPECT_EQ(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(AcceptKey, Sha1GivesThePublishedDigests) {
  EXPECT_EQ(hex(sha1("")), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  EXPECT_EQ(hex(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex(sha1("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
  EXPECT_EQ(hex(sha1(std::string(1'000'000, 'a'))), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

TEST(AcceptKey, AKeyIsSixteenBytesInBase64) {
  EXPECT_TRUE(is_key("dGhlIHNhbXBsZSBub25jZQ=="));
  EXPECT_FALSE(is_key(""));
  EXPECT_FALSE(is_key("dGhlIHNhbXBsZSBub25jZQ="));
  EXPECT_FALSE(is_key("dGhlIHNhbXBsZSBub25jZQ==="));
  EXPECT_FALSE(is_key("dGhlIHNhbXBsZSBub25jZ-=="));
}

}  // namespace
}  // namespace weft::net::ws
