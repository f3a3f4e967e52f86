// SPDX-License-Identifier: MIT
#include "weft/base/endian.h"

#include <array>

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Endian, LoadsTheMostSignificantByteFirst) {
  const std::array<std::uint8_t, 8> bytes = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88};
  EXPECT_EQ(load_big_endian<std::uint8_t>(bytes.data()), 0x01);
  EXPECT_EQ(load_big_endian<std::uint16_t>(bytes.data()), 0x0102);
  EXPECT_EQ(load_big_endian<std::uint32_t>(bytes.data()), 0x01020304u);
  EXPECT_EQ(load_big_endian<std::uint64_t>(bytes.data()), 0x0102030405060788u);
}

TEST(Endian, TwentyFourBitsAreThreeBytes) {
  std::array<std::uint8_t, 5> bytes = {0xaa, 0, 0, 0, 0xbb};
  store_big_endian_24(bytes.data() + 1, 0x010203u);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 5>{0xaa, 0x01, 0x02, 0x03, 0xbb}));
  EXPECT_EQ(load_big_endian_24(bytes.data() + 1), 0x010203u);
  store_big_endian_24(bytes.data() + 1, 0xffffffu);
  EXPECT_EQ(load_big_endian_24(bytes.data() + 1), 0xffffffu);
}

TEST(Endian, StoresTheMostSignificantByteFirst) {
  std::array<std::uint8_t, 8> bytes{};
  store_big_endian<std::uint64_t>(bytes.data(), 0x0102030405060788u);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 8>{0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88}));
  store_big_endian<std::uint16_t>(bytes.data(), 0xfffe);
  EXPECT_EQ(bytes[0], 0xff);
  EXPECT_EQ(bytes[1], 0xfe);
  EXPECT_EQ(bytes[2], 0x03);  // nothing after it is touched
}

template <typename T>
void round_trip_at_every_alignment() {
  std::array<std::uint8_t, 24> bytes{};
  for (std::size_t at = 0; at < 8; ++at) {
    for (const T value : {T{0}, T{1}, static_cast<T>(~T{0}), static_cast<T>(T{1} << (sizeof(T) * 8 - 1))}) {
      store_big_endian<T>(bytes.data() + at, value);
      EXPECT_EQ(load_big_endian<T>(bytes.data() + at), value) << at;
    }
  }
}

TEST(Endian, RoundTripsAtEveryAlignment) {
  round_trip_at_every_alignment<std::uint16_t>();
  round_trip_at_every_alignment<std::uint32_t>();
  round_trip_at_every_alignment<std::uint64_t>();
}

TEST(Endian, KeepsTheSignOfSignedValues) {
  std::array<std::uint8_t, 4> bytes{};
  store_big_endian<std::int32_t>(bytes.data(), -2);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 4>{0xff, 0xff, 0xff, 0xfe}));
  EXPECT_EQ(load_big_endian<std::int32_t>(bytes.data()), -2);
}

}  // namespace
}  // namespace weft
