// SPDX-License-Identifier: MIT
#include "weft/zmtp/datagram_codec.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::zmtp {
namespace {

constexpr std::uint64_t kNoLimit = kFrameBodySizeMax;

// All frames of `frames`, taken in pieces of `step` bytes.
std::vector<std::uint8_t> take_all(IncomingFrames& frames, std::size_t step) {
  std::vector<std::uint8_t> all;
  std::vector<std::uint8_t> piece(step);
  while (!frames.empty()) {
    const std::size_t size = frames.take(piece);
    EXPECT_GT(size, 0u);
    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(size));
  }
  return all;
}

// "group|body" or another text of the frames: "!" is a part alone.
std::string describe(Bytes bytes) {
  std::string text;
  OutgoingFrames frames({&bytes, 1});
  OutgoingFrames::Frame frame;
  while (frames.next(frame)) {
    const bool more = (frame.header.flags & kMore) != 0;
    text += text.empty() && !more ? "!" : "";
    text += std::string(as_text(frame.body)) + (more ? "|" : "");
  }
  return text;
}

std::string grouped(std::string_view datagram, std::uint64_t part_max = kNoLimit) {
  IncomingFrames frames;
  frames.put_grouped(as_bytes(datagram), part_max);
  return describe(take_all(frames, 1000));
}

TEST(DatagramCodec, ADatagramIsAGroupAndABody) {
  EXPECT_EQ(grouped("\4newsbody"), "news|body");
  EXPECT_EQ(grouped("\4news"), "news|");
  EXPECT_EQ(grouped(std::string_view("\0body", 5)), "|body");
  EXPECT_EQ(grouped(std::string_view("\0", 1)), "|");
}

TEST(DatagramCodec, ADatagramThatIsTooShortForItsGroupIsAnEmptyPartAlone) {
  EXPECT_EQ(grouped(""), "!");
  EXPECT_EQ(grouped("\5news"), "!");
  EXPECT_EQ(grouped("\xFFnews"), "!");
}

TEST(DatagramCodec, APartBeyondTheLimitOfTheSocketMakesNoMessage) {
  EXPECT_EQ(grouped("\4newsbody", 4), "news|body");
  EXPECT_EQ(grouped("\4newsbody", 3), "!");
  EXPECT_EQ(grouped("\1nbody", 3), "!");
  EXPECT_EQ(grouped("\5group", 4), "!");
}

TEST(DatagramCodec, TheFramesAreTheSameHoweverTheyAreCut) {
  const std::string long_body(5000, 'b');
  const std::string datagram = "\4news" + long_body;
  for (const std::size_t step : {1u, 2u, 7u, 100u, 4096u}) {
    IncomingFrames frames;
    frames.put_grouped(as_bytes(datagram), kNoLimit);
    EXPECT_EQ(describe(take_all(frames, step)), "news|" + long_body);
    frames.put_addressed(as_bytes("192.0.2.1:7"), as_bytes("body"), kNoLimit);  // the next one
    EXPECT_EQ(describe(take_all(frames, step)), "192.0.2.1:7|body");
    frames.put_malformed();
    EXPECT_EQ(describe(take_all(frames, step)), "!");
  }
}

TEST(DatagramCodec, ABodyMayBeginTheNextSpan) {
  std::uint8_t block[64];
  std::size_t size = write_frame_header(block, kMore, 4);
  copy_bytes(block + size, as_bytes("news"));
  size += 4;
  size += write_frame_header(block + size, 0, 300);
  const std::vector<std::uint8_t> body(300, 'b');
  const Bytes spans[] = {{block, size}, body};
  OutgoingFrames frames(spans);
  OutgoingFrames::Frame frame;
  ASSERT_TRUE(frames.next(frame));
  EXPECT_EQ(as_text(frame.header_and_body.subspan(1)), "\4news");
  EXPECT_EQ(frames.taken(), 6u);
  ASSERT_TRUE(frames.next(frame));
  EXPECT_EQ(frame.body.data(), body.data());
  EXPECT_EQ(frames.taken(), size + 300);
  EXPECT_FALSE(frames.next(frame));
}

}  // namespace
}  // namespace weft::zmtp
