// SPDX-License-Identifier: MIT
#include "weft/store/block.h"

#include <limits>
#include <string>

#include "weft/base/endian.h"
#include "weft/store/checksum.h"
#include <gtest/gtest.h>

namespace weft::store {
namespace {

using namespace std::chrono_literals;

std::vector<std::uint8_t> two_messages() {
  BlockBuilder builder;
  builder.add({.topic = "a.b", .id = "id", .headers = as_bytes("H: 1\r\n"), .body = as_bytes("one")}, WallTime(5s));
  builder.add({.topic = "c", .erased = true}, WallTime(6s));
  return builder.finish(7, 40);
}

TEST(Block, MessagesComeBackAsTheyWent) {
  const auto block = Block::parse(two_messages(), 7, 40);
  ASSERT_TRUE(block) << block.error().message();
  EXPECT_EQ((*block)->first(), 40U);
  EXPECT_EQ((*block)->last(), 41U);
  const StoredMessage one = (*block)->message(40);
  EXPECT_EQ(one.sequence, 40U);
  EXPECT_EQ(one.topic, "a.b");
  EXPECT_EQ(one.id, "id");
  EXPECT_EQ(as_text(one.headers), "H: 1\r\n");
  EXPECT_EQ(as_text(one.body), "one");
  EXPECT_EQ(one.time, WallTime(5s));
  EXPECT_FALSE(one.erased);
  const StoredMessage two = (*block)->message(41);
  EXPECT_EQ(two.topic, "c");
  EXPECT_TRUE(two.erased && two.id.empty() && two.headers.empty() && two.body.empty());
}

TEST(Block, AMessageHasItsEndAndAGoneOneItsPlace) {
  BlockBuilder builder;
  builder.add({.topic = "a", .body = as_bytes("one"), .time_to_live = 2s}, WallTime(5s));
  builder.add_gone(WallTime(6s));
  builder.add_gone(WallTime(7s));
  builder.add({.topic = "b", .body = as_bytes("four")}, WallTime(8s));
  builder.add_gone(WallTime(9s));
  const std::vector<std::uint8_t> bytes = builder.finish(7, 40);
  EXPECT_EQ(bytes.size(), kBlockHeader + (20 + 8 + 4) + 20 + (20 + 5) + 20) << "gone ones in a row have one place";
  const auto block = Block::parse(bytes, 7, 40);
  ASSERT_TRUE(block) << block.error().message();
  ASSERT_EQ((*block)->count(), 5U);
  const StoredMessage one = (*block)->message(40);
  EXPECT_EQ(one.expires, WallTime(7s));
  EXPECT_FALSE(one.is_over(WallTime(7s) - 1ns));
  EXPECT_TRUE(one.is_over(WallTime(7s)));
  EXPECT_EQ(as_text(one.body), "one");
  for (const std::uint64_t gone : {41U, 42U, 44U}) {
    EXPECT_TRUE((*block)->message(gone).is_over(WallTime::min()));
    EXPECT_TRUE((*block)->message(gone).topic.empty() && (*block)->message(gone).body.empty());
  }
  EXPECT_EQ((*block)->message(44).time, WallTime(9s));
  EXPECT_EQ(as_text((*block)->message(43).body), "four");
  EXPECT_FALSE((*block)->message(43).is_over(WallTime::max() - 1ns));
}

TEST(Block, ARunOfGoneMessagesBeyondTheCountIsReported) {
  for (const std::uint32_t run : {0U, 1U, 2U, 3U, 0xFFFFFFFFU}) {
    BlockBuilder builder;
    builder.add_gone(WallTime(6s));
    builder.add_gone(WallTime(7s));
    std::vector<std::uint8_t> bytes = builder.finish(7, 40);
    store_big_endian(bytes.data() + 24 + 8, run);
    store_big_endian(bytes.data() + 4, crc32c(Bytes(bytes).subspan(8)));
    EXPECT_EQ(Block::parse(bytes, 7, 40).has_value(), run == 2) << run;
  }
}

TEST(Block, KnowsWhenHalfOfItIsOver) {
  BlockBuilder builder;
  const std::string body(100, 'x');
  builder.add({.topic = "a", .body = as_bytes(body)}, WallTime(0s));
  EXPECT_EQ(builder.half_over(), WallTime::max());
  builder.add({.topic = "a", .body = as_bytes(body), .time_to_live = 9s}, WallTime(0s));
  EXPECT_EQ(builder.half_over(), WallTime::max());  // the block's own bytes count
  builder.add({.topic = "a", .body = as_bytes(body), .time_to_live = 5s}, WallTime(0s));
  EXPECT_EQ(builder.half_over(), WallTime(9s));
  (void)builder.finish(1, 1);
  builder.add({.topic = "a", .body = as_bytes(body), .time_to_live = 9s}, WallTime(0s));
  builder.add({.topic = "a", .time_to_live = 20s}, WallTime(0s));
  EXPECT_EQ(builder.half_over(), WallTime(9s));
  (void)builder.finish(1, 1);
  builder.add({.topic = "a", .time_to_live = 20s}, WallTime(0s));
  builder.add_gone(WallTime(1s));
  EXPECT_EQ(builder.half_over(), WallTime(20s));  // all are over then
}

TEST(Block, AnyFlippedBitIsReported) {
  const std::vector<std::uint8_t> good = two_messages();
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::vector<std::uint8_t> bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    EXPECT_EQ(Block::parse(bad, 7, 40).error(), Errc::corrupt) << bit;
  }
}

TEST(Block, ThatIsCutOrInAnotherPlaceIsReported) {
  const std::vector<std::uint8_t> good = two_messages();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(Block::parse({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)}, 7, 40).error(),
              Errc::corrupt);
  }
  EXPECT_EQ(Block::parse(good, 8, 40).error(), Errc::corrupt);
  EXPECT_EQ(Block::parse(good, 7, 41).error(), Errc::corrupt);
}

TEST(Block, WithASequenceThatNoDatabaseHoldsIsReported) {
  BlockBuilder builder;
  builder.add({.topic = "a"}, WallTime());
  const std::uint64_t last = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Block::parse(builder.finish(1, last), 1, last).error(), Errc::corrupt);
  builder.add({.topic = "a"}, WallTime());
  EXPECT_EQ(Block::parse(builder.finish(1, ~std::uint64_t{0}), 1, ~std::uint64_t{0}).error(), Errc::corrupt);
  builder.add({.topic = "a"}, WallTime());
  EXPECT_EQ(Block::parse(builder.finish(1, 0), 1, 0).error(), Errc::corrupt);
  builder.add({.topic = "a"}, WallTime());
  EXPECT_TRUE(Block::parse(builder.finish(1, last - 1), 1, last - 1));
}

TEST(Block, HasABoundAndTakesALongerMessageAlone) {
  const std::string body(kBodyMax, 'x');
  BlockBuilder builder;
  EXPECT_TRUE(builder.takes({.topic = "a", .body = as_bytes(body)}));
  builder.add({.topic = "a", .body = as_bytes(body)}, WallTime());
  EXPECT_FALSE(builder.takes({.topic = "a"}));
  EXPECT_EQ((*Block::parse(builder.finish(1, 1), 1, 1))->message(1).body.size(), kBodyMax);
  const Bytes small = as_bytes(body).first(1000);
  std::size_t count = 0;
  for (; builder.takes({.topic = "a", .body = small}); ++count) {
    builder.add({.topic = "a", .body = small}, WallTime());
  }
  EXPECT_GT(count, 200U);
  EXPECT_LE(builder.finish(1, 1).size(), kBlockMax);
}

TEST(Block, AFieldBeyondItsBoundIsRefused) {
  const std::string text(kBodyMax + 1, 'x');
  const auto topic = std::string_view(text).substr(0, 256);
  EXPECT_EQ(BlockBuilder::check({.topic = topic}).error(), Errc::message_too_large);
  EXPECT_EQ(BlockBuilder::check({.topic = "a", .id = topic}).error(), Errc::message_too_large);
  EXPECT_EQ(BlockBuilder::check({.topic = "a", .headers = as_bytes(text).first(65'537)}).error(),
            Errc::message_too_large);
  EXPECT_EQ(BlockBuilder::check({.topic = "a", .body = as_bytes(text)}).error(), Errc::message_too_large);
  EXPECT_EQ(BlockBuilder::check({.topic = ""}).error(), Errc::invalid_argument);
  EXPECT_TRUE(BlockBuilder::check({.topic = topic.substr(1), .headers = as_bytes(text).first(65'536)}));
}

}  // namespace
}  // namespace weft::store
