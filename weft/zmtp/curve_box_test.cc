// SPDX-License-Identifier: MIT
#include "weft/zmtp/curve_box.h"

#ifdef WEFT_HAVE_SODIUM

#include <sodium.h>

#include <cstring>
#include <vector>

#include "weft/base/endian.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

constexpr std::string_view kPrefix = "CurveZMQMESSAGEC";

// Every size up to a few blocks, the sizes around the places where the code switches paths, and a large size.
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all;
  for (std::size_t size = 1; size <= 700; ++size) {
    all.push_back(size);
  }
  for (std::size_t size = 1970; size <= 2100; ++size) {
    all.push_back(size);
  }
  all.push_back(65'537);
  return all;
}

class CurveBox : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      shared_[i] = static_cast<std::uint8_t>(i * 37 + 5);
    }
    key_.derive(shared_, kPrefix);
  }
  static std::vector<std::uint8_t> body(std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8));
    }
    return bytes;
  }

  BoxKey::Shared shared_{};
  BoxKey key_;
};

TEST_F(CurveBox, IsTheOneOfLibsodium) {
  for (const std::size_t size : sizes()) {
    const std::uint64_t number = 0xFF00000000000000 + size;
    std::uint8_t nonce[crypto_box_NONCEBYTES];
    std::memcpy(nonce, kPrefix.data(), kPrefix.size());
    store_big_endian<std::uint64_t>(nonce + kPrefix.size(), number);
    const std::vector<std::uint8_t> plain = body(size);
    std::vector<std::uint8_t> theirs(size);
    std::uint8_t their_mac[BoxKey::kMac];
    ASSERT_EQ(crypto_box_detached_afternm(theirs.data(), their_mac, plain.data(), size, nonce, shared_.data()), 0);

    std::vector<std::uint8_t> ours = plain;
    std::uint8_t mac[BoxKey::kMac];
    key_.seal(mac, ours, number);
    ASSERT_EQ(ours, theirs) << size;
    ASSERT_EQ(std::memcmp(mac, their_mac, sizeof mac), 0) << size;
    ASSERT_TRUE(key_.open(their_mac, theirs, number)) << size;
    ASSERT_EQ(theirs, plain) << size;
  }
}

TEST_F(CurveBox, AChangedBoxStaysClosedAndAsItWas) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{64}, std::size_t{65'537}}) {
    std::vector<std::uint8_t> box = body(size);
    std::uint8_t mac[BoxKey::kMac];
    key_.seal(mac, box, 7);
    box.back() ^= 1;
    const std::vector<std::uint8_t> changed = box;
    EXPECT_FALSE(key_.open(mac, box, 7));
    EXPECT_EQ(box, changed);
    box.back() ^= 1;
    EXPECT_FALSE(key_.open(mac, box, 8)) << "another number";
    mac[0] ^= 1;
    EXPECT_FALSE(key_.open(mac, box, 7)) << "another authenticator";
    mac[0] ^= 1;
    EXPECT_TRUE(key_.open(mac, box, 7));
    EXPECT_EQ(box, body(size));
  }
}

}  // namespace
}  // namespace weft::zmtp::test

#endif
