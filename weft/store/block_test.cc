// SPDX-License-Identifier: MIT
#include "weft/store/block.h"

#include <string>

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
