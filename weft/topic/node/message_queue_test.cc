// SPDX-License-Identifier: MIT
#include "weft/topic/node/message_queue.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

constexpr std::size_t kUnbounded = std::size_t{1} << 40;

TopicMessage numbered(std::uint64_t number) {
  return {Message::copy_of("topic").value(), Message::copy_of(std::to_string(number)).value(), Message(), {}};
}
std::string next(MessageQueue& queue) {
  const std::optional<TopicMessage> message = queue.pop();
  return message ? std::string(message->text()) : std::string("nothing");
}

TEST(MessageQueue, KeepsTheOrderAtEachDepth) {
  Random random(11);
  MessageQueue queue(Full::drop_newest, 1 << 20, kUnbounded);
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  for (const std::size_t depth : {1U, 7U, 8U, 9U, 40U, 1'023U, 1'025U, 5'000U, 3U, 1U}) {
    for (int turn = 0; turn < 20; ++turn) {
      while (queue.size() < depth) {
        ASSERT_TRUE(queue.push(numbered(pushed++)));
      }
      const std::size_t rest = turn % 4 == 0 ? 0 : random.below(depth);
      while (queue.size() > rest) {
        ASSERT_EQ(next(queue), std::to_string(popped++));
      }
    }
  }
  EXPECT_EQ(queue.pushed(), queue.popped() + queue.size());
}

TEST(MessageQueue, ADropOfTheOldestIsMissedByTheNext) {
  constexpr std::size_t kMost = 3 * MessageBlocks::kMessages + 1;
  MessageQueue queue(Full::drop_oldest, kMost, kUnbounded);
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(queue.push(numbered(i)));
  }
  ASSERT_EQ(queue.size(), kMost);
  const std::optional<TopicMessage> first = queue.pop();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text(), std::to_string(100 - kMost));
  EXPECT_EQ(first->missed(), 100 - kMost);
  EXPECT_EQ(queue.pop()->missed(), 0U);
}

// A message that is larger than the queue's bytes empties it, and the next one begins in the block that stays.
TEST(MessageQueue, ALargeMessageReplacesAllOthers) {
  MessageQueue queue(Full::drop_oldest, 100, 10'000);
  const std::string large(20'000, 'x');
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      ASSERT_TRUE(queue.push(numbered(i)));
    }
    ASSERT_TRUE(queue.push(TopicMessage(Message(), Message::copy_of(large).value(), Message(), {})));
    ASSERT_EQ(queue.size(), 1U);
    EXPECT_EQ(next(queue), large);
    EXPECT_EQ(queue.bytes(), 0U);
  }
  EXPECT_EQ(next(queue), "nothing");
}

TEST(MessageQueue, AFailedCopyIsCountedAndLeavesTheQueueUsable) {
  MessageQueue queue(Full::drop_newest, 1'000, kUnbounded);
  std::uint64_t good = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const bool fails = i % MessageBlocks::kMessages == 0;
    EXPECT_EQ(queue.push(sizeof(TopicMessage),
                         [&](TopicMessage& place) {
                           if (!fails) {
                             place = numbered(i);
                           }
                           return !fails;
                         }),
              !fails);
    good += fails ? 0 : 1;
    if (i == 31) {
      while (queue.size() != 0) {
        (void)queue.pop();
      }
    }
  }
  EXPECT_EQ(queue.lost().no_memory, 64 - good);
  EXPECT_EQ(queue.pushed(), queue.popped() + queue.size() + queue.lost().sum());
  EXPECT_EQ(next(queue), "33");
}

}  // namespace
}  // namespace weft::topic
