// SPDX-License-Identifier: MIT
#include "weft/zmtp/frame.h"

#include <vector>

#include "weft/zmtp/test_support.h"
#include <gtest/gtest.h>

namespace weft::zmtp::test {
namespace {

const std::vector<std::uint64_t> kSizes = {
    0,
    1,
    254,
    255,
    256,
    65535,
    65536,
    std::uint64_t{1} << 31,
    std::uint64_t{1} << 32,
    std::uint64_t{1} << 62,
    kFrameBodySizeMax,
};

TEST(Frame, HeaderRoundTripsForEverySizeAndFlag) {
  for (const std::uint64_t size : kSizes) {
    for (const std::uint8_t flags : {std::uint8_t{0}, kMore, kCommand}) {
      std::uint8_t bytes[kFrameHeaderSizeMax];
      const std::size_t written = write_frame_header(bytes, flags, size);
      EXPECT_EQ(written, frame_header_size(size));
      EXPECT_EQ(written, size <= 255 ? 2U : 9U);
      ZmtpFrameHeader header;
      ASSERT_EQ(parse_frame_header({bytes, written}, header), ParseStatus::complete);
      EXPECT_EQ(header.flags & (kMore | kCommand), flags);
      EXPECT_EQ((header.flags & kLong) != 0, size > 255);
      EXPECT_EQ(header.header_size, written);
      EXPECT_EQ(header.body_size, size);
    }
  }
}

TEST(Frame, HeaderNeedsAllOfItsBytes) {
  for (const std::uint64_t size : kSizes) {
    std::uint8_t bytes[kFrameHeaderSizeMax];
    const std::size_t written = write_frame_header(bytes, kMore, size);
    for (std::size_t shown = 0; shown < written; ++shown) {
      ZmtpFrameHeader header{0xAA, 0xAA, 0xAA};
      EXPECT_EQ(parse_frame_header({bytes, shown}, header), ParseStatus::need_more);
      EXPECT_EQ(header.body_size, 0xAAU) << "written before it was complete";
    }
  }
}

TEST(Frame, HeaderIsLaidOutAsTheRfcSays) {
  std::uint8_t bytes[kFrameHeaderSizeMax];
  EXPECT_EQ(Buffer(bytes, bytes + write_frame_header(bytes, kMore, 255)), wire("01 FF"));
  EXPECT_EQ(Buffer(bytes, bytes + write_frame_header(bytes, kCommand, 256)), wire("06 00 00 00 00 00 00 01 00"));
  EXPECT_EQ(Buffer(bytes, bytes + write_frame_header(bytes, 0, 0x0102030405060708)), wire("02 0102030405060708"));
}

TEST(Frame, LongFormIsTakenForASmallSize) {
  ZmtpFrameHeader header;
  ASSERT_EQ(parse_frame_header(wire("02 00 00 00 00 00 00 00 05"), header), ParseStatus::complete);
  EXPECT_EQ(header.header_size, 9);
  EXPECT_EQ(header.body_size, 5U);
}

TEST(Frame, FlagsAreJudgedFromTheFirstByte) {
  for (int flags = 0; flags < 256; ++flags) {
    const std::uint8_t byte = static_cast<std::uint8_t>(flags);
    const bool good = flags < 8 && flags != 5 && flags != 7;
    ZmtpFrameHeader header;
    EXPECT_EQ(parse_frame_header({&byte, 1}, header), good ? ParseStatus::need_more : ParseStatus::malformed) << flags;
  }
}

TEST(Frame, SizeOf63BitsIsTheLargest) {
  ZmtpFrameHeader header;
  EXPECT_EQ(parse_frame_header(wire("02 7FFFFFFFFFFFFFFF"), header), ParseStatus::complete);
  EXPECT_EQ(header.body_size, kFrameBodySizeMax);
  EXPECT_EQ(parse_frame_header(wire("02 8000000000000000"), header), ParseStatus::malformed);
  EXPECT_EQ(parse_frame_header(wire("02 FFFFFFFFFFFFFFFF"), header), ParseStatus::malformed);
}

}  // namespace
}  // namespace weft::zmtp::test
