// SPDX-License-Identifier: MIT
#include "weft/msg/queue/channel.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::msg {
namespace {

Cell small_cell(std::string_view text, bool more = false) {
  Cell cell{};
  Outbound part{as_bytes(text), nullptr, more};
  EXPECT_TRUE(make_cell(cell, part));
  return cell;
}

bool push(Channel& channel, std::string_view text) {
  if (!channel.has_credit()) {
    return false;
  }
  const Cell cell = small_cell(text);
  return channel.push({&cell, 1});
}

std::string pop(Channel& channel, bool* reported = nullptr) {
  Cell* cell = channel.front();
  if (cell == nullptr) {
    return "nothing";
  }
  const std::string text(as_text(cell->bytes()));
  const bool ends = !cell->more;
  const std::size_t bytes = Channel::footprint(*cell);
  cell->release();
  const bool credit = channel.pop(ends, bytes);
  if (reported != nullptr) {
    *reported = credit;
  }
  return text;
}

TEST(Channel, AMarkBelowTheDefaultBoundsTheBytesBesideTheChannel) {
  Channel channel;
  EXPECT_EQ(channel.bytes_beside(), SIZE_MAX);
  const std::pair<std::int64_t, std::size_t> rows[] = {{1, 65'536},    {256, 65'536}, {257, 65'792},
                                                       {999, 255'744}, {0, SIZE_MAX}, {100'000, SIZE_MAX}};
  for (const auto& [mark, bytes] : rows) {
    channel.set_mark(mark);
    EXPECT_EQ(channel.bytes_beside(), bytes) << mark;
  }
}

TEST(Channel, IsFullAtItsMarkAndTakesAgainWhenHalfWasRead) {
  for (int mark = 1; mark <= 40; ++mark) {
    Channel channel;
    channel.set_mark(mark);
    for (int round = 0; round < 3; ++round) {
      int room = 0;
      while (push(channel, std::to_string(room))) {
        ASSERT_LT(room++, mark) << "beyond the mark";
      }
      EXPECT_EQ(room, round == 0 ? mark : (mark + 1) / 2);
      for (int read = 1; read <= (mark + 1) / 2; ++read) {
        EXPECT_FALSE(channel.has_credit()) << "after " << read - 1 << " of mark " << mark;
        bool reported = false;
        EXPECT_NE(pop(channel, &reported), "nothing");
        EXPECT_EQ(reported, read == (mark + 1) / 2) << "a producer that waits is woken exactly when there is room";
      }
    }
  }
}

TEST(Channel, AMessageOfManyPartsCountsOnce) {
  Channel channel;
  channel.set_mark(2);
  const std::vector<Cell> parts = {small_cell("a", true), small_cell("b", true), small_cell("c")};
  ASSERT_TRUE(channel.push(parts));
  EXPECT_TRUE(channel.has_credit());
  ASSERT_TRUE(channel.push(parts));
  EXPECT_FALSE(channel.has_credit());
  EXPECT_EQ(channel.written(), 2u);
  bool reported = false;
  EXPECT_EQ(pop(channel, &reported), "a");
  EXPECT_FALSE(reported);
  EXPECT_EQ(pop(channel, &reported), "b");
  EXPECT_FALSE(reported);
  EXPECT_EQ(pop(channel, &reported), "c");
  EXPECT_TRUE(reported);
  EXPECT_EQ(channel.read(), 1u);
}

TEST(Channel, MessagesComeOutInOrderAcrossEveryRing) {
  Channel channel;
  channel.set_mark(0);
  int next = 0;
  int expected = 0;
  for (int burst = 1; burst < 60; ++burst) {  // grows past the small first ring and past several large ones
    for (int i = 0; i < burst * 20; ++i) {
      ASSERT_TRUE(push(channel, std::to_string(next++)));
    }
    for (int i = 0; i < burst * 20; ++i) {
      ASSERT_EQ(pop(channel), std::to_string(expected++));
    }
    ASSERT_TRUE(channel.empty());
  }
}

TEST(Channel, LargePartsTravelByReferenceAndAreReleasedOnce) {
  Channel channel;
  const std::string text(5000, 'l');
  mem::Buffer* buffer = mem::Buffer::make(text.size());
  copy_bytes(buffer->data(), as_bytes(text));
  buffer->add_reference();
  Message message;
  message.assign(buffer, Bytes(buffer->data(), text.size()));
  Cell cell{};
  Outbound part{message.bytes(), &message, false};
  ASSERT_TRUE(make_cell(cell, part));
  EXPECT_TRUE(message.empty()) << "the buffer is taken over, not copied";
  EXPECT_EQ(cell.bytes().data(), buffer->data());
  ASSERT_TRUE(channel.push({&cell, 1}));
  EXPECT_FALSE(buffer->sole_owner());
  EXPECT_EQ(pop(channel), text);
  EXPECT_TRUE(buffer->sole_owner());
  buffer->release();
}

TEST(Channel, ReleasesWhatIsLeftInsideWhenItEnds) {
  mem::Buffer* buffer = mem::Buffer::make(1000);
  buffer->add_reference();
  {
    Channel channel;
    Cell cell{};
    cell.kind = Cell::Kind::large;
    cell.body.large = {buffer, buffer->data(), 1000};
    ASSERT_TRUE(channel.push({&cell, 1}));
    EXPECT_FALSE(buffer->sole_owner());
  }
  EXPECT_TRUE(buffer->sole_owner());
  buffer->release();
}

TEST(Channel, AConsumerThatCannotGoOnReportsWhatItPopped) {
  Channel channel;
  channel.set_mark(4);
  for (const char* text : {"1", "2", "3", "4"}) {
    ASSERT_TRUE(push(channel, text));
  }
  EXPECT_FALSE(channel.report()) << "nothing was popped";
  channel.front()->release();
  EXPECT_FALSE(channel.pop(true, 0)) << "before half of the mark";
  EXPECT_FALSE(channel.has_credit());
  EXPECT_TRUE(channel.report());
  EXPECT_FALSE(channel.report()) << "once";
  EXPECT_TRUE(push(channel, "5"));
  EXPECT_FALSE(channel.has_credit());
}

TEST(Channel, WithoutAMarkTheBoundIsInBytes) {
  Channel channel;
  channel.set_mark(0);
  // The cells claim a size; the channel never reads the bytes.
  constexpr std::size_t kClaimed = Channel::kUnmarkedBytesMax / 4;
  Cell cell{};
  cell.kind = Cell::Kind::large;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(channel.has_credit()) << i;
    mem::Buffer* buffer = mem::Buffer::make(200);
    cell.body.large = {buffer, buffer->data(), kClaimed};
    ASSERT_TRUE(channel.push({&cell, 1}));
  }
  EXPECT_FALSE(channel.has_credit());
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(channel.has_credit());
    Cell* front = channel.front();
    const std::size_t bytes = Channel::footprint(*front);
    front->release();
    EXPECT_EQ(channel.pop(true, bytes), i == 1) << "reported when half of the bytes were read";
  }
  EXPECT_TRUE(channel.has_credit());
}

TEST(Channel, ARaisedMarkGivesRoomAtOnceAndALoweredOneTakesIt) {
  Channel channel;
  channel.set_mark(1);
  EXPECT_TRUE(push(channel, "1"));
  EXPECT_FALSE(push(channel, "2"));
  channel.set_mark(3);
  EXPECT_TRUE(push(channel, "2"));
  EXPECT_TRUE(push(channel, "3"));
  EXPECT_FALSE(push(channel, "4"));
  channel.set_mark(1);
  EXPECT_EQ(pop(channel), "1");
  EXPECT_EQ(pop(channel), "2");
  EXPECT_FALSE(channel.has_credit()) << "one is left inside";
  EXPECT_EQ(pop(channel), "3");
  EXPECT_TRUE(channel.has_credit());
}

TEST(Channel, AClaimedCellIsInvisibleUntilItIsPushed) {
  Channel channel;
  Cell* cell = channel.claim();
  ASSERT_NE(cell, nullptr);
  Outbound part{as_bytes("x"), nullptr, false};
  ASSERT_TRUE(make_cell(*cell, part));
  EXPECT_EQ(channel.front(), nullptr);
  EXPECT_EQ(channel.claim(), cell) << "claiming again gives the same";
  channel.push_claimed(*cell);
  EXPECT_EQ(pop(channel), "x");
  EXPECT_EQ(pop(channel), "nothing");
}

TEST(Channel, AConflatingChannelKeepsTheNewestAndReleasesTheOthers) {
  mem::Buffer* buffer = mem::Buffer::make(1000);
  Cell large{};
  large.kind = Cell::Kind::large;
  large.body.large = {buffer, buffer->data(), 1000};
  {
    Channel channel;
    channel.conflate();
    channel.set_mark(1);
    EXPECT_TRUE(channel.empty());
    EXPECT_EQ(pop(channel), "nothing");
    for (const char* text : {"a", "b", "c"}) {
      ASSERT_TRUE(push(channel, text));
      EXPECT_EQ(channel.queued(), 1u);
    }
    EXPECT_FALSE(channel.empty());
    EXPECT_EQ(as_text(channel.front()->bytes()), "c");
    ASSERT_TRUE(push(channel, "d"));
    EXPECT_EQ(as_text(channel.front()->bytes()), "c") << "the front stays while somebody looks at it";
    channel.refresh();
    EXPECT_EQ(pop(channel), "d");
    EXPECT_EQ(pop(channel), "nothing");
    EXPECT_EQ(channel.queued(), 0u) << "a replaced message waits no more";
    const std::vector<Cell> parts = {small_cell("first", true), small_cell("last")};
    ASSERT_TRUE(channel.push(parts));
    EXPECT_EQ(pop(channel), "last");
    for (int i = 0; i < 3; ++i) {
      buffer->add_reference();
      ASSERT_TRUE(channel.push({&large, 1}));
      (void)channel.front();  // moves one message to the front; the next one waits after it
    }
    EXPECT_EQ(channel.written(), 8u);
  }
  EXPECT_TRUE(buffer->sole_owner());
  buffer->release();
}

TEST(Channel, AConflatingChannelCountsWhatANewerMessageReplaced) {
  Channel channel;
  channel.conflate();
  for (const char* text : {"a", "b", "c"}) {
    ASSERT_TRUE(push(channel, text));
  }
  EXPECT_EQ(channel.replaced(), 2u);
  (void)channel.front();
  ASSERT_TRUE(push(channel, "d"));
  EXPECT_EQ(channel.queued(), 2u) << "one in front, one behind";
  channel.refresh();
  EXPECT_EQ(channel.outdated(), 1u);
  EXPECT_EQ(channel.queued(), 1u);
  EXPECT_EQ(pop(channel), "d");
  const std::vector<Cell> parts = {small_cell("first", true), small_cell("last")};
  ASSERT_TRUE(channel.push(parts));
  EXPECT_EQ(channel.replaced(), 2u) << "parts of one message replace no message";
  EXPECT_EQ(channel.written(), channel.read() + channel.replaced() + channel.outdated() + channel.queued());
}

TEST(Channel, ASubscriptionIsNoMessage) {
  Channel channel;
  channel.set_mark(1);
  Cell* cell = channel.claim();
  Outbound topic{as_bytes(std::string_view("topic")), nullptr, false};
  ASSERT_TRUE(make_cell(*cell, topic));
  cell->kind = Cell::Kind::subscribe;
  channel.push_claimed_subscription(*cell);
  EXPECT_EQ(channel.queued(), 0u);
  EXPECT_TRUE(channel.has_credit());
  ASSERT_NE(channel.front(), nullptr);
  EXPECT_FALSE(channel.pop(false, Channel::footprint(*channel.front())));
  EXPECT_EQ(channel.read(), 0u);
  EXPECT_TRUE(channel.empty());
}

TEST(Channel, PassesEverythingFromOneThreadToAnotherWithinItsMark) {
  Channel channel;
  channel.set_mark(7);
  constexpr int kCount = 20'000;
  std::thread producer([&] {
    for (int i = 0; i < kCount;) {
      if (push(channel, std::to_string(i))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (int i = 0; i < kCount;) {
    if (channel.empty()) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(pop(channel), std::to_string(i++));
  }
  producer.join();
  EXPECT_TRUE(channel.empty());
}

TEST(Cell, HoldsEverySizeUpToItsInlineLimitWithoutABuffer) {
  for (std::size_t size = 0; size <= Cell::kInlineMax + 1; ++size) {
    const std::string text(size, 'c');
    Cell cell = small_cell(text, true);
    EXPECT_EQ(cell.is_large(), size > Cell::kInlineMax);
    EXPECT_EQ(as_text(cell.bytes()), text);
    EXPECT_TRUE(cell.more);
    Cell copy{};
    cell.copy_to(copy);
    EXPECT_EQ(as_text(copy.bytes()), text);
    EXPECT_TRUE(copy.more);
    copy.release();
  }
}

}  // namespace
}  // namespace weft::msg
