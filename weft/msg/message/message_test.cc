// SPDX-License-Identifier: MIT
#include "weft/msg/message/message.h"

#include <array>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace weft {
namespace {

Message copy_of(std::string_view text) { return std::move(Message::copy_of(text)).value(); }

const std::string kSmall(Message::kInlineMax, 's');
const std::string kLarge(Message::kInlineMax + 1, 'l');

TEST(Message, IsEmptyByDefault) {
  const Message message;
  EXPECT_TRUE(message.empty());
  EXPECT_EQ(message.size(), 0u);
  EXPECT_EQ(message.text(), "");
  EXPECT_FALSE(message.more());
}

TEST(Message, HoldsACopyOfBytesOfEverySize) {
  for (const std::size_t size : {0u, 1u, 47u, 48u, 49u, 128u, 5000u, 1'000'000u}) {
    std::string text(size, 'x');
    const Message message = copy_of(text);
    text.assign(size, 'y');
    EXPECT_EQ(message.size(), size);
    EXPECT_TRUE(message.text() == std::string(size, 'x'));
  }
}

TEST(Message, SmallBytesLieInsideAndLargeOnesDoNot) {
  const auto inside = [](const Message& message) {
    const auto* self = reinterpret_cast<const std::uint8_t*>(&message);
    return message.bytes().data() >= self && message.bytes().data() < self + sizeof message;
  };
  EXPECT_TRUE(inside(copy_of(kSmall)));
  EXPECT_FALSE(inside(copy_of(kLarge)));
}

TEST(Message, MovingLeavesTheSourceEmptyAndTakesTheMoreFlagAlong) {
  for (const std::string& text : {kSmall, kLarge}) {
    Message source = copy_of(text);
    source.set_more(true);
    Message target = std::move(source);
    EXPECT_EQ(target.text(), text);
    EXPECT_TRUE(target.more());
    EXPECT_TRUE(source.empty());  // NOLINT(bugprone-use-after-move): the test is about the source
    Message assigned = copy_of("to be replaced, and long enough to hold a buffer of its own: 0123456789");
    assigned = std::move(target);
    EXPECT_EQ(assigned.text(), text);
    EXPECT_TRUE(target.empty());  // NOLINT(bugprone-use-after-move)
  }
}

TEST(Message, AssigningToItselfChangesNothing) {
  Message message = copy_of(kLarge);
  Message& same = message;
  message = std::move(same);
  EXPECT_EQ(message.text(), kLarge);
}

TEST(Message, AMessageOfASizeCanBeFilled) {
  for (const std::size_t size : {0u, 10u, 48u, 49u, 100'000u}) {
    Message message = std::move(Message::with_size(size)).value();
    ASSERT_EQ(message.size(), size);
    const MutableBytes bytes = message.mutable_bytes();
    ASSERT_EQ(bytes.size(), size);
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{7});
    EXPECT_TRUE(message.text() == std::string(size, '\7'));
  }
}

TEST(Message, ALargeSharedMessageShowsTheSameBytesAndIsNotWritable) {
  Message message = copy_of(kLarge);
  EXPECT_FALSE(message.shared());
  {
    Message other = message.share();
    EXPECT_EQ(other.bytes().data(), message.bytes().data());
    EXPECT_EQ(other.text(), kLarge);
    EXPECT_TRUE(message.shared());
    EXPECT_TRUE(message.mutable_bytes().empty());
    EXPECT_TRUE(other.mutable_bytes().empty());
  }
  EXPECT_FALSE(message.shared());
  EXPECT_EQ(message.mutable_bytes().size(), kLarge.size());
}

TEST(Message, ASmallSharedMessageIsACopy) {
  Message message = copy_of(kSmall);
  Message other = message.share();
  ASSERT_EQ(other.mutable_bytes().size(), kSmall.size());
  other.mutable_bytes()[0] = '!';
  EXPECT_EQ(message.text(), kSmall);
}

TEST(Message, SharingKeepsTheMoreFlag) {
  Message message = copy_of(kLarge);
  message.set_more(true);
  EXPECT_TRUE(message.share().more());
}

TEST(Message, TheBufferMovesOutAndInAgain) {
  Message message = copy_of(kLarge);
  const Bytes bytes = message.bytes();
  mem::Buffer* buffer = message.release_buffer();
  ASSERT_NE(buffer, nullptr);
  EXPECT_TRUE(message.empty());
  message.assign(buffer, bytes);
  EXPECT_EQ(message.text(), kLarge);
  Message small = copy_of(kSmall);
  EXPECT_EQ(small.release_buffer(), nullptr);
  EXPECT_EQ(small.text(), kSmall);
}

TEST(Message, MayBeASliceOfABlockThatOthersHoldToo) {
  mem::Buffer* block = mem::Buffer::make(1000);
  std::fill_n(block->data(), 1000, std::uint8_t{'b'});
  block->add_reference();
  Message slice;
  slice.assign(block, Bytes(block->data() + 100, 200));
  EXPECT_EQ(slice.size(), 200u);
  EXPECT_TRUE(slice.mutable_bytes().empty()) << "the block's other holder could see it";
  block->release();
  ASSERT_EQ(slice.mutable_bytes().size(), 200u);
  EXPECT_EQ(slice.mutable_bytes().data(), slice.bytes().data());
}

TEST(Message, AssigningACopyReplacesWhatWasThere) {
  Message message = copy_of(kLarge);
  EXPECT_TRUE(message.assign_copy(as_bytes("short")));
  EXPECT_EQ(message.text(), "short");
  EXPECT_TRUE(message.assign_copy(as_bytes(kLarge)));
  EXPECT_EQ(message.text(), kLarge);
}

TEST(Message, ARoutingIdIsNotZeroAndGoesWithTheMessage) {
  Message message = copy_of(kSmall);
  EXPECT_EQ(message.routing_id(), 0u);
  EXPECT_EQ(message.set_routing_id(0).error(), Errc::invalid_argument);
  ASSERT_TRUE(message.set_routing_id(0xfedcba98));
  EXPECT_EQ(message.share().routing_id(), 0xfedcba98);
  const Message moved = std::move(message);
  EXPECT_EQ(moved.routing_id(), 0xfedcba98);
  EXPECT_EQ(message.routing_id(), 0u);  // NOLINT(bugprone-use-after-move): the test is about the source
}

TEST(Message, AGroupOfEveryLengthGoesWithTheMessageAndLeavesItsBytesWhereTheyAre) {
  for (const std::size_t size : {0u, 1u, 14u, 15u, 16u, 254u, 255u}) {
    const std::string group(size, 'g');
    for (const std::string& text : {kSmall, kLarge}) {
      Message message = copy_of(text);
      const auto* bytes = message.bytes().data();
      ASSERT_TRUE(message.set_group(group));
      EXPECT_EQ(message.bytes().data(), bytes);
      EXPECT_EQ(message.group(), group);
      EXPECT_EQ(message.group().data()[size], '\0');
      EXPECT_EQ(message.share().group(), group);
      EXPECT_EQ(message.share().text(), text);
      const Message moved = std::move(message);
      EXPECT_EQ(moved.group(), group);
      EXPECT_EQ(moved.text(), text);
      EXPECT_EQ(message.group(), "");  // NOLINT(bugprone-use-after-move): the test is about the source
    }
  }
}

TEST(Message, AGroupThatIsTooLongOrHoldsAZeroIsRefusedAndTheOldOneStays) {
  Message message = copy_of(kSmall);
  ASSERT_TRUE(message.set_group("old"));
  EXPECT_EQ(message.set_group(std::string(256, 'g')).error(), Errc::invalid_argument);
  EXPECT_EQ(message.set_group({"a\0b", 3}).error(), Errc::invalid_argument);
  EXPECT_EQ(message.group(), "old");
  ASSERT_TRUE(message.set_group("another"));
  EXPECT_EQ(message.group(), "another");
  ASSERT_TRUE(message.set_group(""));
  EXPECT_EQ(message.group(), "");
  EXPECT_EQ(message.text(), kSmall);
}

TEST(Message, AGroupAndARoutingIdStandBesideEachOther) {
  Message message = copy_of(kLarge);
  ASSERT_TRUE(message.set_routing_id(7));
  ASSERT_TRUE(message.set_group("group"));
  EXPECT_EQ(message.routing_id(), 7u);
  const Message other = message.share();
  ASSERT_TRUE(message.set_routing_id(8));
  EXPECT_EQ(message.routing_id(), 8u);
  EXPECT_EQ(message.group(), "group");
  EXPECT_EQ(other.routing_id(), 7u);
  ASSERT_TRUE(message.set_group(""));
  EXPECT_EQ(message.routing_id(), 8u);
}

TEST(Message, ANewBodyDropsTheGroup) {
  for (const std::string& text : {kSmall, kLarge}) {
    Message message = copy_of(text);
    ASSERT_TRUE(message.set_group("group"));
    EXPECT_TRUE(message.assign_copy(as_bytes(text)));
    EXPECT_EQ(message.group(), "");
    ASSERT_TRUE(message.set_group("group"));
    message = copy_of(text);
    EXPECT_EQ(message.group(), "");
    ASSERT_TRUE(message.set_group("group"));
    mem::Buffer* buffer = message.release_buffer();
    EXPECT_EQ(buffer == nullptr, text == kSmall);
    if (buffer != nullptr) {
      EXPECT_EQ(message.group(), "");
      buffer->release();
    }
  }
}

TEST(Message, MayShareTheGroupAndTheOriginOfAnother) {
  Message head;
  head.set_origin({3, 4});
  for (const std::string_view group : {"", "group"}) {
    ASSERT_TRUE(head.set_group(group));
    for (const std::string_view before : {"", "other"}) {
      Message message = copy_of(kLarge);
      ASSERT_TRUE(message.set_group(before));
      message.share_sender(head);
      EXPECT_EQ(message.group(), group);
      EXPECT_EQ(message.origin().peer, 3u);
      EXPECT_EQ(message.routing_id(), 4u);
      EXPECT_EQ(message.text(), kLarge);
      ASSERT_TRUE(message.set_group("changed"));
      EXPECT_EQ(head.group(), group);
    }
  }
}

}  // namespace
}  // namespace weft
