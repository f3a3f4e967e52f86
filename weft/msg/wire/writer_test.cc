// SPDX-License-Identifier: MIT
#include "weft/msg/wire/writer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "weft/msg/socket/test_support.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using test::FakeStream;
using test::frame;
using test::frame_v1;
using test::pattern;

class WriterTest : public testing::Test {
 protected:
  WriterTest() { writer_.open(&stream_); }

  void append(std::uint8_t flags, std::string_view body) {
    ASSERT_TRUE(writer_.prepare(body.size()));
    writer_.append(flags, as_bytes(body));
  }
  // Returns a second reference to the buffer, so that the test sees when the writer releases its own.
  [[nodiscard]] mem::Buffer* append_big(std::uint8_t flags, const std::string& body) {
    EXPECT_TRUE(writer_.prepare(0));
    mem::Buffer* buffer = mem::Buffer::make(body.size());
    copy_bytes(buffer->data(), as_bytes(body));
    buffer->add_reference();
    writer_.append_big(flags, buffer, Bytes(buffer->data(), body.size()));
    return buffer;
  }
  void append_command(std::string_view body) {
    const std::string bytes = frame(zmtp::kCommand, body);
    ASSERT_TRUE(writer_.prepare(bytes.size()));
    writer_.append_raw(as_bytes(bytes));
  }
  // The bytes that the next connection sends.
  std::string kept() {
    writer_.close(true);
    FakeStream next;
    writer_.open(&next);
    writer_.flush();
    EXPECT_TRUE(writer_.empty());
    return next.output;
  }

  FakeStream stream_;
  MessageWriter writer_;
};

TEST_F(WriterTest, WritesABatchWithOneCall) {
  std::string expected;
  for (const std::size_t size : {0u, 1u, 255u, 256u, 3000u}) {
    append(size == 1 ? zmtp::kMore : 0, pattern(size));
    expected += frame(size == 1 ? zmtp::kMore : 0, pattern(size));
  }
  EXPECT_EQ(writer_.pending(), expected.size());
  EXPECT_EQ(stream_.writes, 0);
  writer_.flush();
  EXPECT_EQ(stream_.writes, 1);
  EXPECT_EQ(stream_.output, expected);
  EXPECT_TRUE(writer_.empty());
  EXPECT_FALSE(writer_.blocked());
}

TEST_F(WriterTest, ResumesAfterAShortWriteWhereverItWasCut) {
  const std::string small = pattern(300);
  const std::string big = pattern(MessageWriter::kBigPart, 3);
  const std::string expected = frame(zmtp::kMore, small) + frame(0, big);
  for (std::size_t cut = 0; cut <= expected.size(); cut += cut < 400 ? 1 : 997) {
    FakeStream stream;
    MessageWriter writer;
    writer.open(&stream);
    ASSERT_TRUE(writer.prepare(small.size()));
    writer.append(zmtp::kMore, as_bytes(small));
    mem::Buffer* buffer = mem::Buffer::make(big.size());
    copy_bytes(buffer->data(), as_bytes(big));
    ASSERT_TRUE(writer.prepare(0));
    writer.append_big(0, buffer, Bytes(buffer->data(), big.size()));
    stream.room = cut;
    writer.flush();
    EXPECT_EQ(writer.blocked(), cut < expected.size());
    EXPECT_EQ(writer.pending(), expected.size() - cut);
    stream.room = FakeStream::kAll;
    writer.flush();
    ASSERT_TRUE(stream.output == expected) << "cut at " << cut;
    EXPECT_TRUE(writer.empty());
    EXPECT_FALSE(writer.blocked());
  }
}

TEST_F(WriterTest, AWriteThatFillsTheKernelIsNotRetriedAtOnce) {
  append(0, pattern(1000));
  stream_.room = 10;
  writer_.flush();
  EXPECT_TRUE(writer_.blocked());
  EXPECT_EQ(stream_.writes, 1);
  writer_.flush();
  EXPECT_TRUE(writer_.blocked());
  EXPECT_EQ(writer_.written(), 10u) << "a call that took nothing does not count";
}

TEST_F(WriterTest, AFailedStreamIsNotWrittenToAgain) {
  append(0, "x");
  stream_.failure = 32;
  writer_.flush();
  EXPECT_TRUE(writer_.failed());
  EXPECT_TRUE(writer_.blocked());
  const int writes = stream_.writes;
  writer_.flush();
  EXPECT_EQ(stream_.writes, writes);
  writer_.open(&stream_);
  EXPECT_FALSE(writer_.failed());
}

TEST_F(WriterTest, NothingIsEncodedBehindABigPartUntilItIsOut) {
  mem::Buffer* big = append_big(0, pattern(MessageWriter::kBigPart));
  EXPECT_FALSE(writer_.prepare(1));
  stream_.room = 100;
  writer_.flush();
  EXPECT_FALSE(writer_.prepare(1));
  EXPECT_FALSE(big->sole_owner());
  stream_.room = FakeStream::kAll;
  writer_.flush();
  EXPECT_TRUE(big->sole_owner()) << "released with its last byte";
  EXPECT_TRUE(writer_.prepare(1));
  big->release();
}

TEST_F(WriterTest, ABigPartOfSomebodyElsesBytesIsCopiedOnlyAsFarAsTheKernelTookIt) {
  const std::string expected = frame(0, pattern(100)) + frame(0, pattern(100'000, 5));
  for (const std::size_t room : {std::size_t{0}, std::size_t{50}, std::size_t{50'000}, FakeStream::kAll}) {
    FakeStream stream;
    MessageWriter writer;
    writer.open(&stream);
    stream.room = room;
    ASSERT_TRUE(writer.prepare(100));
    writer.append(0, as_bytes(pattern(100)));
    {
      std::string body = pattern(100'000, 5);
      ASSERT_TRUE(writer.prepare(0));
      ASSERT_TRUE(writer.lend_big(0, as_bytes(body)));
      EXPECT_FALSE(writer.prepare(1)) << "nothing is encoded behind it";
      writer.flush();
      writer.keep_rest();
      writer.keep_rest();  // a second call changes nothing
      body.assign(body.size(), '!');
    }
    const std::size_t taken = stream.output.size();
    EXPECT_EQ(writer.written(), taken);
    EXPECT_EQ(writer.pending(), expected.size() - taken);
    stream.room = FakeStream::kAll;
    writer.flush();
    EXPECT_TRUE(stream.output == expected) << "with room for " << room;
    EXPECT_TRUE(writer.empty());
    EXPECT_TRUE(writer.prepare(1));
  }
}

TEST_F(WriterTest, ALentPartIsWrittenFromWhereItLiesUntilTheRestIsKept) {
  std::string body = pattern(100'000, 5);
  std::string expected = frame(zmtp::kMore, body);
  ASSERT_TRUE(writer_.prepare(0));
  ASSERT_TRUE(writer_.lend_big(zmtp::kMore, as_bytes(body)));
  stream_.room = 30'000;
  writer_.flush();
  body.back() = '1';
  stream_.room = 30'000;
  writer_.flush();
  body.back() = '2';
  writer_.keep_rest();
  body.back() = '3';
  stream_.room = FakeStream::kAll;
  writer_.flush();
  expected.back() = '2';
  EXPECT_TRUE(stream_.output == expected);
  // The first write takes the whole lent part: there is no rest to keep.
  ASSERT_TRUE(writer_.prepare(0));
  ASSERT_TRUE(writer_.lend_big(0, as_bytes(body)));
  writer_.flush();
  writer_.keep_rest();
  EXPECT_TRUE(stream_.output == expected + frame(0, body));
  EXPECT_TRUE(writer_.empty());
}

TEST_F(WriterTest, WritingThroughKeepsWhatTheKernelDidNotTake) {
  const std::string expected = frame(zmtp::kMore, "body");
  for (std::size_t room = 0; room <= expected.size(); ++room) {
    FakeStream stream;
    MessageWriter writer;
    writer.open(&stream);
    stream.room = room;
    ASSERT_TRUE(writer.prepare(4));
    writer.write_through(zmtp::kMore, as_bytes("body"));
    EXPECT_EQ(writer.empty(), room == expected.size());
    EXPECT_EQ(writer.blocked(), room < expected.size());
    stream.room = FakeStream::kAll;
    writer.flush();
    EXPECT_EQ(stream.output, expected);
  }
  writer_.write_through(0, Bytes());
  EXPECT_EQ(stream_.output, frame(0, ""));
}

TEST_F(WriterTest, ABlockThatIsFullTakesNothingUntilItIsWritten) {
  std::string expected;
  while (writer_.prepare(1000)) {
    writer_.append(0, as_bytes(pattern(1000)));
    expected += frame(0, pattern(1000));
    ASSERT_LT(expected.size(), 10 * MessageWriter::kBatchMax) << "there is no bound";
  }
  EXPECT_TRUE(writer_.full());
  writer_.flush();
  EXPECT_EQ(stream_.output, expected);
  EXPECT_TRUE(writer_.prepare(1000));
}

TEST_F(WriterTest, TheBatchGrowsToItsLimitAndRestsSmallAgain) {
  const auto batch = [&] {
    std::size_t size = 0;
    while (!writer_.full() && writer_.prepare(100)) {
      writer_.append(0, as_bytes(pattern(100)));
      ++size;
    }
    writer_.flush();
    return size * frame(0, pattern(100)).size();
  };
  const std::size_t first = batch();
  EXPECT_GE(first, MessageWriter::kBatchMin);
  for (int i = 0; i < 20; ++i) {
    writer_.grow_limit();
  }
  EXPECT_GE(batch(), MessageWriter::kBatchMax / 2);
  writer_.grow_limit(64 * 1024);
  EXPECT_LE(batch(), 65 * 1024U);
  writer_.rest();
  EXPECT_EQ(batch(), first);
}

TEST_F(WriterTest, ALostConnectionKeepsNothingWithoutKeep) {
  append(0, "x");
  writer_.close(false);
  EXPECT_TRUE(writer_.empty());
  EXPECT_FALSE(writer_.is_open());
}

TEST_F(WriterTest, ALostConnectionKeepsExactlyTheWholeMessagesOfWhichNothingWasSent) {
  const std::string messages[] = {frame(0, "one"), frame(zmtp::kMore, "two") + frame(0, "2"), frame(0, pattern(300)),
                                  frame(zmtp::kMore, "") + frame(zmtp::kMore, pattern(500)) + frame(0, "")};
  std::string all;
  for (const std::string& message : messages) {
    all += message;
  }
  for (std::size_t sent = 0; sent <= all.size(); ++sent) {
    FakeStream stream;
    MessageWriter writer;
    writer.open(&stream);
    ASSERT_TRUE(writer.prepare(all.size()));
    writer.append(0, as_bytes("one"));
    writer.append(zmtp::kMore, as_bytes("two"));
    writer.append(0, as_bytes("2"));
    writer.append(0, as_bytes(pattern(300)));
    writer.append(zmtp::kMore, Bytes());
    writer.append(zmtp::kMore, as_bytes(pattern(500)));
    writer.append(0, Bytes());
    stream.room = sent;
    writer.flush();
    std::string expected;
    std::size_t begin = 0;
    for (const std::string& message : messages) {
      expected += begin >= sent ? message : "";
      begin += message.size();
    }
    writer.close(true);
    FakeStream next;
    writer.open(&next);
    writer.flush();
    ASSERT_EQ(next.output, expected) << "after " << sent << " of " << all.size() << " bytes";
  }
}

// A message by its parts. The last one may be big.
using Parts = std::vector<std::string>;

// Appends the messages, lets the kernel take `sent` bytes, loses the connection, and checks that each message is
// counted exactly once. Returns how many bytes there were.
std::size_t check_balance(const std::vector<Parts>& messages, std::size_t sent, bool keep, zmtp::Framing framing) {
  FakeStream stream;
  MessageWriter writer;
  writer.open(&stream, nullptr, framing);
  std::vector<std::size_t> ends;
  std::size_t size = 0;
  std::size_t room = 0;
  for (const Parts& parts : messages) {
    for (const std::string& part : parts) {
      room += part.size() < MessageWriter::kBigPart ? part.size() + writer.frame_overhead() : 0;
    }
  }
  EXPECT_TRUE(writer.prepare(room));
  for (const Parts& parts : messages) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::uint8_t flags = i + 1 < parts.size() ? zmtp::kMore : 0;
      size += framing == zmtp::Framing::v1 ? frame_v1(flags, parts[i]).size() : frame(flags, parts[i]).size();
      if (parts[i].size() < MessageWriter::kBigPart) {
        EXPECT_TRUE(writer.prepare(0));
        writer.append(flags, as_bytes(parts[i]));
      } else {
        EXPECT_TRUE(writer.prepare(0));
        EXPECT_TRUE(writer.lend_big(flags, as_bytes(parts[i])));
        writer.keep_rest();
      }
    }
    ends.push_back(size);
  }
  EXPECT_EQ(writer.pending_messages(), messages.size());
  stream.room = sent;
  writer.flush();
  const auto out =
      static_cast<std::uint64_t>(std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= sent; }));
  const std::uint64_t lost = writer.close(keep);
  EXPECT_EQ(writer.sent(), out) << "after " << sent << " bytes";
  EXPECT_EQ(writer.appended(), out + lost + writer.pending_messages()) << "after " << sent << " bytes";
  FakeStream next;
  writer.open(&next);
  const std::uint64_t kept = writer.pending_messages();
  writer.flush();
  EXPECT_EQ(kept > 0, !next.output.empty());
  EXPECT_EQ(writer.sent(), out + kept);
  EXPECT_EQ(writer.close(false), 0u);
  EXPECT_TRUE(keep || kept == 0);
  EXPECT_EQ(kept + lost + out, messages.size()) << "after " << sent << " bytes";
  return size;
}

TEST_F(WriterTest, EachMessageOfALostConnectionIsSentOrKeptOrLost) {
  const std::vector<std::vector<Parts>> batches = {
      {{"one"}, {"two", "2"}, {pattern(300)}, {"", pattern(500), ""}},
      {{"small"}, {"head", pattern(MessageWriter::kBigPart)}},
      {{pattern(MessageWriter::kBigPart, 7)}},
  };
  for (const zmtp::Framing framing : {zmtp::Framing::v3, zmtp::Framing::v1}) {
    for (const bool keep : {false, true}) {
      for (const std::vector<Parts>& batch : batches) {
        const std::size_t size = check_balance(batch, 0, keep, framing);
        for (std::size_t sent = 1; sent <= size; sent += sent < 400 || sent + 2 > size ? 1 : 20'011) {
          (void)check_balance(batch, sent, keep, framing);
        }
        (void)check_balance(batch, size, keep, framing);
      }
    }
  }
}

TEST_F(WriterTest, AMessageThatWasBegunIsLostOnce) {
  append(0, "whole");
  append(zmtp::kMore, "begun");
  EXPECT_EQ(writer_.close(true), 1u);
  EXPECT_EQ(writer_.pending_messages(), 1u);
  EXPECT_EQ(writer_.close(false), 1u) << "kept in vain";
  EXPECT_EQ(writer_.pending_messages(), 0u);
}

TEST_F(WriterTest, SubscriptionsToOldPeersAreNoMessages) {
  MessageWriter writer(true);
  writer.open(&stream_);
  const std::string subscription = frame(0, "\1topic");
  ASSERT_TRUE(writer.prepare(1000));
  writer.append_raw(as_bytes(subscription));
  writer.append(0, as_bytes("upstream"));
  EXPECT_EQ(writer.pending_messages(), 1u);
  stream_.room = subscription.size() + 1;
  writer.flush();
  EXPECT_EQ(writer.close(true), 1u);
  EXPECT_EQ(writer.sent(), 0u);
}

TEST_F(WriterTest, TheUnfinishedMessageAtTheEndIsNotKept) {
  append(0, "whole");
  append(zmtp::kMore, "begun");
  EXPECT_TRUE(writer_.inside_message());
  EXPECT_EQ(kept(), frame(0, "whole"));
  EXPECT_FALSE(writer_.inside_message());
}

TEST_F(WriterTest, TheRestOfAMessageWhoseBeginningWasSentIsNotKept) {
  append(zmtp::kMore, "first");
  writer_.flush();  // empties the block in the middle of the message
  EXPECT_TRUE(writer_.inside_message());
  append(zmtp::kMore, "second");
  append(0, "third");
  append(0, "whole");
  EXPECT_EQ(kept(), frame(0, "whole"));
}

TEST_F(WriterTest, TheRestOfAMessageBehindABigPartIsNotKept) {
  mem::Buffer* big = append_big(zmtp::kMore, pattern(MessageWriter::kBigPart));
  writer_.flush();
  EXPECT_TRUE(writer_.inside_message());
  append(0, "rest");
  append(0, "whole");
  EXPECT_EQ(kept(), frame(0, "whole"));
  EXPECT_TRUE(big->sole_owner());
  big->release();
}

TEST_F(WriterTest, ABigPartThatWasNotSentGoesAndReleasesItsBuffer) {
  append(0, "whole");
  append(zmtp::kMore, "before the big one");
  mem::Buffer* big = append_big(0, pattern(MessageWriter::kBigPart));
  EXPECT_EQ(kept(), frame(0, "whole"));
  EXPECT_TRUE(big->sole_owner());
  big->release();
}

TEST_F(WriterTest, CommandsAreNotKeptAndDoNotCutTheMessageAroundThem) {
  append_command("\4PING");
  append(zmtp::kMore, "one");
  append_command("\4PONG");
  append(0, "two");
  append_command("\4PING");
  append(0, "three");
  EXPECT_EQ(kept(), frame(zmtp::kMore, "one") + frame(0, "two") + frame(0, "three"));
}

TEST_F(WriterTest, ACommandSentByHalfDoesNotHoldBackTheMessagesBehindIt) {
  append_command("\4PING");
  append(0, "message");
  stream_.room = 3;
  writer_.flush();
  EXPECT_EQ(kept(), frame(0, "message"));
}

TEST_F(WriterTest, RawBytesGoOutAsTheyAreAndAreNotKeptForAnotherConnection) {
  writer_.open(&stream_, nullptr, zmtp::Framing::none);
  writer_.write_through(0, as_bytes("at once "));
  append(0, "small ");
  mem::Buffer* buffer = append_big(0, pattern(MessageWriter::kBigPart));
  writer_.flush();
  EXPECT_EQ(stream_.output, "at once small " + pattern(MessageWriter::kBigPart));
  EXPECT_TRUE(buffer->sole_owner());
  buffer->release();
  stream_.output.clear();
  ASSERT_TRUE(writer_.prepare(0));
  const std::string big = pattern(100'000);
  stream_.room = 40'000;
  ASSERT_TRUE(writer_.lend_big(0, as_bytes(big)));
  writer_.flush();
  writer_.keep_rest();
  EXPECT_TRUE(writer_.blocked());
  stream_.room = FakeStream::kAll;
  writer_.flush();
  EXPECT_TRUE(stream_.output == big);
  append(0, "no message, as nobody knows where it began");
  EXPECT_EQ(kept(), "");
}

// --- the framing of ZMTP 1.0 ---

class OldWriterTest : public WriterTest {
 protected:
  void open(FakeStream& stream) { writer_.open(&stream, nullptr, zmtp::Framing::v1); }
};

TEST_F(OldWriterTest, WritesAllKindsOfPartsInItsFraming) {
  open(stream_);
  std::string expected;
  for (const std::size_t size : {0u, 1u, 253u, 254u, 255u, 256u, 3000u}) {
    append(size % 2 == 0 ? zmtp::kMore : 0, pattern(size));
    expected += frame_v1(size % 2 == 0 ? zmtp::kMore : 0, pattern(size));
  }
  const std::string subscriptions = frame(0, "\1a") + frame(0, "\1" + pattern(300));
  ASSERT_TRUE(writer_.prepare(writer_.raw_size(as_bytes(subscriptions))));
  writer_.append_raw(as_bytes(subscriptions));
  expected += frame_v1(0, "\1a") + frame_v1(0, "\1" + pattern(300));
  writer_.flush();
  mem::Buffer* big = append_big(zmtp::kMore, pattern(MessageWriter::kBigPart));
  writer_.flush();
  big->release();
  writer_.write_through(zmtp::kMore, as_bytes(pattern(254)));
  ASSERT_TRUE(writer_.prepare(0));
  const std::string lent = pattern(MessageWriter::kBigPart + 1);
  ASSERT_TRUE(writer_.lend_big(0, as_bytes(lent)));
  writer_.flush();
  expected += frame_v1(zmtp::kMore, pattern(MessageWriter::kBigPart)) + frame_v1(zmtp::kMore, pattern(254)) +
              frame_v1(0, pattern(MessageWriter::kBigPart + 1));
  EXPECT_EQ(stream_.output, expected);
}

TEST_F(OldWriterTest, MessagesKeptFromAnotherConnectionAreEncodedAgain) {
  std::string expected;
  for (int i = 0; i < 60; ++i) {
    append(i % 2 == 0 ? zmtp::kMore : 0, i % 3 == 0 ? pattern(254) : "");
    expected += frame_v1(i % 2 == 0 ? zmtp::kMore : 0, i % 3 == 0 ? pattern(254) : "");
  }
  writer_.close(true);
  open(stream_);
  append(0, "behind");
  writer_.flush();
  EXPECT_EQ(stream_.output, expected + frame_v1(0, "behind"));
  EXPECT_FALSE(writer_.inside_message());
}

TEST_F(OldWriterTest, NothingInItsFramingIsKept) {
  open(stream_);
  append(0, "unsent");
  EXPECT_EQ(kept(), "");
}

}  // namespace
}  // namespace weft::msg
