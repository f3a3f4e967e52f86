// SPDX-License-Identifier: MIT
#include <cstring>
#include <string>

#include "tests/capi/capi_test.h"

namespace weft::capi {
namespace {

constexpr std::uint8_t kHello[] = {0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B};

TEST(CapiKeysTest, Z85IsThatOfTheRfc) {
  char text[11];
  EXPECT_EQ(zmq_z85_encode(text, kHello, sizeof kHello), text);
  EXPECT_STREQ(text, "HelloWorld");
  std::uint8_t bytes[sizeof kHello];
  EXPECT_EQ(zmq_z85_decode(bytes, text), bytes);
  EXPECT_EQ(std::memcmp(bytes, kHello, sizeof bytes), 0);
}

TEST(CapiKeysTest, NothingEncodesAsTheEmptyText) {
  char text[] = "?";
  EXPECT_EQ(zmq_z85_encode(text, nullptr, 0), text);
  EXPECT_STREQ(text, "");
}

TEST(CapiKeysTest, Z85RefusesWhatIsNotZ85) {
  char text[16];
  std::uint8_t bytes[16];
  EXPECT_ERRNO(EINVAL, zmq_z85_encode(text, kHello, 7));
  for (const char* bad : {"", "0123", "012345", "0123\"", "#####", "0123\xff"}) {
    EXPECT_ERRNO(EINVAL, zmq_z85_decode(bytes, bad)) << bad;
  }
  EXPECT_ERRNO(EINVAL, zmq_z85_encode(nullptr, nullptr, 7));
  EXPECT_ERRNO(EFAULT, zmq_z85_encode(nullptr, kHello, 4));
  EXPECT_ERRNO(EFAULT, zmq_z85_encode(text, nullptr, 4));
  EXPECT_ERRNO(EFAULT, zmq_z85_decode(nullptr, "01234"));
  EXPECT_ERRNO(EFAULT, zmq_z85_decode(bytes, nullptr));
}

TEST(CapiKeysTest, APairIsFreshAndItsPublicKeyFollowsFromTheSecretOne) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  char public_key[41];
  char secret_key[41];
  ASSERT_EQ(zmq_curve_keypair(public_key, secret_key), 0);
  EXPECT_EQ(std::strlen(public_key), 40u);
  EXPECT_EQ(std::strlen(secret_key), 40u);
  char derived[41];
  ASSERT_EQ(zmq_curve_public(derived, secret_key), 0);
  EXPECT_STREQ(derived, public_key);
  char other_public[41];
  char other_secret[41];
  ASSERT_EQ(zmq_curve_keypair(other_public, other_secret), 0);
  EXPECT_STRNE(other_public, public_key);
}

// The test keys of RFC 7748, section 6.1.
TEST(CapiKeysTest, APublicKeyIsTheOneOfTheCurve) {
  if (zmq_has("curve") == 0) {
    GTEST_SKIP() << "built without libsodium";
  }
  constexpr std::uint8_t kSecret[] = {0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1,
                                      0x72, 0x51, 0xb2, 0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0,
                                      0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9, 0x2c, 0x2a};
  constexpr std::uint8_t kPublic[] = {0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d,
                                      0xdc, 0xb4, 0x3e, 0xf7, 0x5a, 0x0d, 0xbf, 0x3a, 0x0d, 0x26, 0x38,
                                      0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b, 0x4e, 0x6a};
  char secret_key[41];
  char expected[41];
  char derived[41];
  zmq_z85_encode(secret_key, kSecret, sizeof kSecret);
  zmq_z85_encode(expected, kPublic, sizeof kPublic);
  ASSERT_EQ(zmq_curve_public(derived, secret_key), 0);
  EXPECT_STREQ(derived, expected);
}

TEST(CapiKeysTest, KeysRefuseWhatIsNotAKey) {
  char key[41];
  if (zmq_has("curve") == 0) {
    EXPECT_ERRNO(ENOTSUP, zmq_curve_keypair(key, key));
    EXPECT_ERRNO(ENOTSUP, zmq_curve_public(key, key));
    return;
  }
  EXPECT_ERRNO(EFAULT, zmq_curve_keypair(nullptr, key));
  EXPECT_ERRNO(EFAULT, zmq_curve_keypair(key, nullptr));
  EXPECT_ERRNO(EFAULT, zmq_curve_public(nullptr, key));
  EXPECT_ERRNO(EFAULT, zmq_curve_public(key, nullptr));
  EXPECT_ERRNO(EINVAL, zmq_curve_public(key, "too short"));
  EXPECT_ERRNO(EINVAL, zmq_curve_public(key, std::string(40, '"').c_str()));
}

}  // namespace
}  // namespace weft::capi
