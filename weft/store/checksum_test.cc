// SPDX-License-Identifier: MIT
#include "weft/store/checksum.h"

#include <vector>

#include <gtest/gtest.h>

namespace weft::store {
namespace {

// RFC 3720, appendix B.4.
TEST(Checksum, OfTheBytesOfRfc3720IsAsThatRfcSays) {
  std::vector<std::uint8_t> bytes(32, 0);
  EXPECT_EQ(crc32c(bytes), 0x8A9136AAU);
  bytes.assign(32, 0xFF);
  EXPECT_EQ(crc32c(bytes), 0x62A8AB43U);
  for (std::size_t i = 0; i < 32; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i);
  }
  EXPECT_EQ(crc32c(bytes), 0x46DD794EU);
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(Checksum, IsTheSameInPieces) {
  const Bytes all = as_bytes("a text whose length is no multiple of eight");
  for (std::size_t cut = 0; cut <= all.size(); ++cut) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all)) << cut;
  }
}

TEST(Checksum, IsTheSameByTables) {
  std::vector<std::uint8_t> bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * 151 >> 3);
    const Bytes front = Bytes(bytes).first(i);
    EXPECT_EQ(crc32c_by_tables(front, 77), crc32c(front, 77)) << i;
  }
}

TEST(Checksum, ChangesWithEveryBit) {
  std::vector<std::uint8_t> bytes(100, 0x5A);
  const std::uint32_t before = crc32c(bytes);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_NE(crc32c(bytes), before) << bit;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
  }
}

}  // namespace
}  // namespace weft::store
