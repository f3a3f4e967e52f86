// SPDX-License-Identifier: MIT
#include "weft/zmtp/frame_v1.h"

#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

TEST(FrameV1, HeaderRoundTripsForEverySizeAndNeedsAllOfItsBytes) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{253}, std::uint64_t{254},
                                   std::uint64_t{65'536}, std::uint64_t{1} << 40, kFrameBodySizeMax}) {
    for (const std::uint8_t flags : {std::uint8_t{0}, kMore}) {
      std::uint8_t bytes[kFrameHeaderSizeMaxV1];
      const std::size_t written = write_frame_header_v1(bytes, flags, size);
      EXPECT_EQ(written, size <= 253 ? 2U : 10U);
      ZmtpFrameHeader header;
      for (std::size_t shown = 0; shown < written; ++shown) {
        EXPECT_EQ(parse_frame_header_v1({bytes, shown}, header), ParseStatus::need_more);
      }
      ASSERT_EQ(parse_frame_header_v1({bytes, written}, header), ParseStatus::complete);
      EXPECT_EQ(header.flags, flags);
      EXPECT_EQ(header.header_size, written);
      EXPECT_EQ(header.body_size, size);
    }
  }
}

TEST(FrameV1, HeaderIsLaidOutAsTheRfcSays) {
  std::uint8_t bytes[kFrameHeaderSizeMaxV1];
  EXPECT_EQ(Buffer(bytes, bytes + write_frame_header_v1(bytes, 0, 0)), wire("01 00"));
  EXPECT_EQ(Buffer(bytes, bytes + write_frame_header_v1(bytes, kMore, 253)), wire("FE 01"));
  EXPECT_EQ(Buffer(bytes, bytes + write_frame_header_v1(bytes, kMore, 254)), wire("FF 00000000 000000FF 01"));
}

TEST(FrameV1, OfTheFlagsOnlyMoreCounts) {
  ZmtpFrameHeader header;
  ASSERT_EQ(parse_frame_header_v1(wire("02 7E 'a'"), header), ParseStatus::complete);
  EXPECT_EQ(header.flags, 0);
  ASSERT_EQ(parse_frame_header_v1(wire("02 7F 'a'"), header), ParseStatus::complete);
  EXPECT_EQ(header.flags, kMore);
}

TEST(FrameV1, LongFormIsTakenForASmallSize) {
  ZmtpFrameHeader header;
  ASSERT_EQ(parse_frame_header_v1(wire("FF 00000000 00000003 00"), header), ParseStatus::complete);
  EXPECT_EQ(header.header_size, 10);
  EXPECT_EQ(header.body_size, 2U);
}

TEST(FrameV1, ALengthThatCannotBeIsMalformed) {
  ZmtpFrameHeader header;
  EXPECT_EQ(parse_frame_header_v1(wire("00"), header), ParseStatus::malformed);
  EXPECT_EQ(parse_frame_header_v1(wire("FF 00000000 00000000 00"), header), ParseStatus::malformed);
  EXPECT_EQ(parse_frame_header_v1(wire("FF 80000000 00000000 00"), header), ParseStatus::complete);
  EXPECT_EQ(header.body_size, kFrameBodySizeMax);
  EXPECT_EQ(parse_frame_header_v1(wire("FF 80000000 00000001 00"), header), ParseStatus::malformed);
}

}  // namespace
}  // namespace weft::zmtp::test
