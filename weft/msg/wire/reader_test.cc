// SPDX-License-Identifier: MIT
#include "weft/msg/wire/reader.h"

#include <cerrno>
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
using Status = sys::IoResult::Status;

struct Taken {
  std::uint8_t flags;
  std::string body;
  friend bool operator==(const Taken&, const Taken&) = default;
};

// Reads as a connection does: takes frames until there are none, fills, and repeats until the stream has no more.
class Decoder {
 public:
  // Collects the frames, and returns the status of the last fill; `done` for a malformed frame.
  Status run(MessageReader& reader, FakeStream& stream) {
    for (;;) {
      const MessageReader::Step step = take_frames(reader);
      if (step == MessageReader::Step::malformed) {
        malformed = true;
        return Status::done;
      }
      bool drained = false;
      const sys::IoResult result =
          reader.fill(stream, step == MessageReader::Step::header_only ? &last_.header : nullptr, drained);
      EXPECT_EQ(drained, result.status != Status::done || result.bytes < stream.request);
      if (result.status != Status::done) {
        return result.status;
      }
    }
  }
  MessageReader::Step take_frames(MessageReader& reader) {
    for (;;) {
      const MessageReader::Step step = reader.look(last_);
      if (step != MessageReader::Step::frame) {
        return step;
      }
      frames.push_back({last_.header.flags, std::string(as_text(last_.body))});
      if (keep_slices) {
        last_.block->add_reference();
        slices.push_back({last_.block, last_.body});
      }
      reader.consume();
    }
  }

  std::vector<Taken> frames;
  bool malformed = false;
  bool keep_slices = false;
  struct Slice {
    mem::Buffer* block;
    Bytes body;
  };
  std::vector<Slice> slices;

 private:
  MessageReader::Frame last_;
};

TEST(MessageReader, TakesFramesOfZmtp1HoweverTheyAreCut) {
  const std::string bodies[] = {
      "", "a", pattern(253), pattern(254), pattern(3000, 1), pattern(MessageReader::kBigFrame), ""};
  std::string input;
  std::vector<Taken> expected;
  for (const std::string& body : bodies) {
    const std::uint8_t flags = body.size() % 2 == 0 ? zmtp::kMore : 0;
    input += frame_v1(flags, body);
    expected.push_back({flags, body});
  }
  for (const std::size_t read_max : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, FakeStream::kAll}) {
    FakeStream stream;
    stream.input = input;
    stream.read_max = read_max;
    MessageReader reader;
    reader.set_cipher(nullptr, zmtp::Framing::v1);
    Decoder decoder;
    EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
    EXPECT_EQ(decoder.frames, expected) << read_max;
    EXPECT_TRUE(reader.empty());
  }
}

TEST(MessageReader, TakesFramesHoweverTheyAreCut) {
  const std::string bodies[] = {"", "a", pattern(255), pattern(256), pattern(3000, 1), ""};
  std::string input;
  std::vector<Taken> expected;
  for (const std::string& body : bodies) {
    const std::uint8_t flags = body.size() == 255 ? zmtp::kMore : body.size() == 1 ? zmtp::kCommand : 0;
    input += frame(flags, body);
    expected.push_back({static_cast<std::uint8_t>(flags | (body.size() > 255 ? zmtp::kLong : 0)), body});
  }
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    MessageReader reader;
    FakeStream stream;
    Decoder decoder;
    stream.input = input.substr(0, cut);
    EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
    if (cut % 3 == 0) {
      reader.settle();
    }
    stream.input = input.substr(cut);
    EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
    ASSERT_TRUE(decoder.frames == expected) << "cut at " << cut;
    EXPECT_TRUE(reader.empty());
  }
}

TEST(MessageReader, GivesShortMessagesInARunThatEndsBeforeAnythingElse) {
  const std::string two = frame(zmtp::kMore, "part") + frame(0, "last");
  const std::string others[] = {frame(zmtp::kMore, "part"),
                                frame(zmtp::kMore, "part") + frame(0, "cut").substr(0, 4),
                                frame(zmtp::kMore, "part") + frame(0, pattern(256)),
                                frame(zmtp::kMore, "part") + frame(zmtp::kCommand, "command"),
                                "\5\1x",  // a command with more parts: malformed
                                frame(zmtp::kCommand, "command"),
                                frame(0, pattern(256)),
                                frame(0, "cut").substr(0, 4),
                                std::string(1, '\0'),
                                std::string()};
  for (const bool multipart : {false, true}) {
    for (const std::string& other : others) {
      MessageReader reader;
      FakeStream stream;
      const std::string rest = multipart ? other : two + other;
      stream.input = frame(0, "a") + frame(0, "") + frame(0, pattern(255)) + two + other;
      bool drained = false;
      ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
      FrameRun run;
      std::size_t left = multipart ? 4 : 3;
      ASSERT_EQ(reader.take_run(run, multipart), left);
      EXPECT_EQ(as_text(reader.unparsed()), rest);
      std::vector<std::string> bodies = {"a", "", pattern(255)};
      if (multipart) {
        bodies.insert(bodies.end(), {"part", "last"});
      }
      for (const std::string& body : bodies) {
        ASSERT_FALSE(run.empty());
        EXPECT_EQ(run.count(), left);
        EXPECT_EQ(as_text(run.front()), body);
        EXPECT_EQ(run.more(), body == "part");
        left -= run.more() ? 0 : 1;
        run.pop();
      }
      EXPECT_TRUE(run.empty());
      EXPECT_EQ(reader.take_run(run, multipart), 0U);
    }
  }
}

TEST(MessageReader, ARunIsBoundedAndStaysWhateverTheReaderDoes) {
  const std::size_t count = FrameRun::kMax + 1;
  MessageReader reader;
  FakeStream stream;
  for (std::size_t i = 0; i < count; ++i) {
    stream.input += frame(0, std::to_string(i));
  }
  bool drained = false;
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  FrameRun run;
  ASSERT_EQ(reader.take_run(run, true), FrameRun::kMax);
  EXPECT_EQ(as_text(reader.unparsed()), frame(0, std::to_string(count - 1)));
  reader.settle();
  stream.input = frame(0, pattern(200, 7));
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  reader.reset();
  for (std::size_t i = 0; i + 1 < count; ++i) {
    ASSERT_FALSE(run.empty());
    EXPECT_EQ(as_text(run.front()), std::to_string(i));
    run.pop();
  }
  EXPECT_TRUE(run.empty());
}

TEST(MessageReader, ARunHasOnlyWholeMessagesOfABoundedNumberOfParts) {
  for (const std::size_t parts : {FrameRun::kPartsMax / 2, FrameRun::kPartsMax, FrameRun::kPartsMax + 1}) {
    std::string message;
    for (std::size_t i = 1; i < parts; ++i) {
      message += frame(zmtp::kMore, "x");
    }
    message += frame(0, "x");
    MessageReader reader;
    FakeStream stream;
    stream.input = message + message + message;
    bool drained = false;
    ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
    FrameRun run;
    EXPECT_EQ(reader.take_run(run, true), FrameRun::kPartsMax / parts);
  }
}

// The bound of a peer whose handshake is not over: see link_handshake.cc.
TEST(MessageReader, ReadsAtMostTheBytesThatItIsAskedForAndSettlesThemIntoASmallBlock) {
  MessageReader reader;
  FakeStream stream;
  stream.input = pattern(300'000);
  bool drained = false;
  ASSERT_EQ(reader.fill(stream, nullptr, drained, 8192).status, Status::done);
  EXPECT_EQ(stream.largest_request, 8192U);
  EXPECT_FALSE(drained) << "the kernel may have more";
  ASSERT_EQ(reader.fill(stream, nullptr, drained, MessageReader::kSettleMax - 8192).status, Status::done);
  reader.settle();
  EXPECT_EQ(as_text(reader.unparsed()), pattern(MessageReader::kSettleMax));
}

TEST(MessageReader, TakesFramesThatComeByteByByteOrInAnyPieces) {
  const std::string input = frame(0, pattern(100)) + frame(zmtp::kMore, pattern(700)) + frame(0, "");
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 64u, 500u}) {
    MessageReader reader;
    FakeStream stream;
    Decoder decoder;
    stream.input = input;
    stream.read_max = piece;
    EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
    ASSERT_EQ(decoder.frames.size(), 3u) << piece;
    EXPECT_EQ(decoder.frames[1].body, pattern(700));
  }
}

TEST(MessageReader, TakesFramesOfEverySizeAroundTheLimitsBetweenOthers) {
  for (const std::size_t edge : {MessageReader::kBigFrame, MessageReader::kBlockSize, MessageReader::kBigFirst,
                                 2 * MessageReader::kBigFirst, std::size_t{5'000'000}}) {
    for (const std::size_t size : {edge - 10, edge - 9, edge - 1, edge, edge + 1}) {
      for (const std::size_t read_max : {FakeStream::kAll, std::size_t{100'000}, std::size_t{65'537}}) {
        MessageReader reader;
        FakeStream stream;
        Decoder decoder;
        const std::string body = pattern(size);
        stream.input = frame(0, "before") + frame(zmtp::kMore, body) + frame(0, "behind") + frame(0, pattern(1000));
        stream.read_max = read_max;
        EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
        ASSERT_EQ(decoder.frames.size(), 4u) << size;
        EXPECT_EQ(decoder.frames[0].body, "before");
        ASSERT_TRUE(decoder.frames[1].body == body) << size << " in reads of " << read_max;
        EXPECT_EQ(decoder.frames[2].body, "behind");
        EXPECT_EQ(decoder.frames[3].body, pattern(1000));
        EXPECT_TRUE(reader.empty());
      }
    }
  }
}

TEST(MessageReader, BehindABigFrameLittleIsRead) {
  constexpr std::size_t kBig = 3 * MessageReader::kBigFirst;
  MessageReader reader;
  FakeStream stream;
  Decoder decoder;
  for (unsigned i = 0; i < 3; ++i) {
    stream.input += frame(0, pattern(kBig, i));
  }
  stream.input += frame(0, pattern(100'000, 3)) + frame(0, "small");
  stream.read_max = 200'000;
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  ASSERT_EQ(decoder.frames.size(), 5u);
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_TRUE(decoder.frames[i].body == pattern(kBig, i)) << i;
  }
  ASSERT_TRUE(decoder.frames[3].body == pattern(100'000, 3));
  EXPECT_EQ(decoder.frames[4].body, "small");
  EXPECT_LE(stream.largest_request, kBig + MessageReader::kBehindBig) << "of the next it would have to be copied";
  EXPECT_EQ(stream.request, MessageReader::kBlockSize) << "once, and then as much as there is room for";

  stream.input = frame(0, pattern(kBig));
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  EXPECT_EQ(stream.request, MessageReader::kBehindBig) << "what comes next is likely big as well";
}

TEST(MessageReader, ManyFramesThatFillBlocksExactlyOrNotAtAllComeOutRight) {
  for (const std::size_t size : {1022u, 1023u, 4087u, 60'000u, 131'000u}) {
    MessageReader reader;
    FakeStream stream;
    Decoder decoder;
    std::size_t count = 3 * MessageReader::kBlockSize / size + 3;
    for (std::size_t i = 0; i < count; ++i) {
      stream.input += frame(0, pattern(size, static_cast<unsigned>(i)));
    }
    EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
    ASSERT_EQ(decoder.frames.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(decoder.frames[i].body == pattern(size, static_cast<unsigned>(i))) << i << " of size " << size;
    }
  }
}

TEST(MessageReader, SlicesStayUnchangedWhileTheReaderReadsOn) {
  MessageReader reader;
  FakeStream stream;
  Decoder decoder;
  decoder.keep_slices = true;
  constexpr unsigned kCount = 300;
  for (unsigned i = 0; i < kCount; ++i) {
    stream.input += frame(0, pattern(5000, i));
  }
  stream.input += frame(0, pattern(400'000, 7));
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  reader.settle();
  for (int i = 0; i < 300; ++i) {  // more traffic: the reader reuses every block that it may
    stream.input += frame(0, pattern(3000, 99));
  }
  decoder.keep_slices = false;
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  reader.reset();
  ASSERT_EQ(decoder.slices.size(), kCount + 1);
  for (unsigned i = 0; i <= kCount; ++i) {
    const std::string expected = i < kCount ? pattern(5000, i) : pattern(400'000, 7);
    ASSERT_TRUE(as_text(decoder.slices[i].body) == expected) << "slice " << i;
    decoder.slices[i].block->release();
  }
}

TEST(MessageReader, ABlockWithoutOtherHoldersIsUsedAgain) {
  MessageReader reader;
  FakeStream stream;
  MessageReader::Frame taken;
  bool drained = false;
  stream.input = frame(0, "one");
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  ASSERT_EQ(reader.look(taken), MessageReader::Step::frame);
  const std::uint8_t* first = taken.body.data();
  reader.consume();
  stream.input = frame(0, "two");
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  ASSERT_EQ(reader.look(taken), MessageReader::Step::frame);
  EXPECT_EQ(taken.body.data(), first);
  EXPECT_EQ(as_text(taken.body), "two");
}

TEST(MessageReader, ASizeThatAPeerClaimsDoesNotSizeAnAllocation) {
  MessageReader reader;
  FakeStream stream;
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  (void)zmtp::write_frame_header(header, 0, std::uint64_t{1} << 60);
  stream.input = std::string(as_text(header)) + pattern(100);
  Decoder decoder;
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  EXPECT_LE(stream.largest_request, MessageReader::kBigFirst + MessageReader::kBlockSize);
  stream.input = pattern(5'000'000);  // the buffer grows with the bytes that came
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  EXPECT_LE(stream.largest_request, 8u * 1024 * 1024);
  EXPECT_FALSE(reader.empty());
}

TEST(MessageReader, AMalformedFrameIsReportedAtItsFirstByte) {
  for (const char flags : {'\x08', '\x80', '\x05'}) {
    MessageReader reader;
    FakeStream stream;
    Decoder decoder;
    stream.input = frame(0, "good") + flags;
    (void)decoder.run(reader, stream);
    EXPECT_TRUE(decoder.malformed);
    ASSERT_EQ(decoder.frames.size(), 1u);
    EXPECT_EQ(decoder.frames[0].body, "good");
  }
}

TEST(MessageReader, TheEndOfTheStreamAndItsFailureAreReported) {
  MessageReader reader;
  FakeStream stream;
  Decoder decoder;
  stream.ended = true;
  stream.input = frame(0, "last") + frame(0, "cut off").substr(0, 5);
  EXPECT_EQ(decoder.run(reader, stream), Status::end_of_stream);
  ASSERT_EQ(decoder.frames.size(), 1u);
  EXPECT_FALSE(reader.empty());
  reader.reset();
  EXPECT_TRUE(reader.empty());
}

TEST(MessageReader, TheHandshakeSeesAllBytesAndTakesSome) {
  MessageReader reader;
  FakeStream stream;
  bool drained = false;
  EXPECT_TRUE(reader.unparsed().empty());
  stream.input = "greeting" + frame(0, "x");
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  EXPECT_EQ(as_text(reader.unparsed()), "greeting" + frame(0, "x"));
  reader.consume_bytes(8);
  Decoder decoder;
  EXPECT_EQ(decoder.take_frames(reader), MessageReader::Step::need_more);
  ASSERT_EQ(decoder.frames.size(), 1u);
  EXPECT_EQ(decoder.frames[0].body, "x");
}

TEST(MessageReader, SettlingKeepsWhatIsThereAndAnEmptyReaderHoldsNothing) {
  MessageReader reader;
  FakeStream stream;
  bool drained = false;
  MessageReader::Frame taken;
  const std::string whole = frame(0, pattern(MessageReader::kSharedMin));
  stream.input = whole.substr(0, 50);
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  reader.settle();
  EXPECT_EQ(as_text(reader.unparsed()), whole.substr(0, 50));
  stream.input = whole.substr(50);
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  ASSERT_EQ(reader.look(taken), MessageReader::Step::frame);
  EXPECT_TRUE(as_text(taken.body) == pattern(MessageReader::kSharedMin));
  reader.consume();
  mem::Buffer* const block = taken.block;
  block->add_reference();
  reader.settle();
  EXPECT_TRUE(block->sole_owner()) << "the reader holds the block still";
  block->release();
}

// A thousand of them, read one by one and queued, would pin a thousand blocks of 256 KB.
TEST(MessageReader, AFrameThatIsAlmostAloneInItsBlockIsNotShared) {
  MessageReader reader;
  FakeStream stream;
  bool drained = false;
  MessageReader::Frame taken;
  stream.input = frame(0, pattern(5000));
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  ASSERT_EQ(reader.look(taken), MessageReader::Step::frame);
  EXPECT_TRUE(as_text(taken.body) == pattern(5000));
  EXPECT_EQ(taken.block, nullptr);
  reader.consume();
  stream.input = frame(0, pattern(5000)) + frame(0, pattern(MessageReader::kSharedMin));
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  ASSERT_EQ(reader.look(taken), MessageReader::Step::frame);
  EXPECT_NE(taken.block, nullptr) << "others share the block";
}

TEST(MessageReader, OneReadOfABigFrameIsShort) {
  MessageReader reader;
  FakeStream stream;
  Decoder decoder;
  stream.input = frame(0, pattern(5 << 20));
  EXPECT_EQ(decoder.run(reader, stream), Status::would_block);
  EXPECT_LE(stream.largest_request, MessageReader::kBigReadMax + MessageReader::kBehindBig);
  ASSERT_EQ(decoder.frames.size(), 1u);
  EXPECT_TRUE(decoder.frames[0].body == pattern(5 << 20));
}

TEST(MessageReader, ShowsRawBytesAsTheyCameInPiecesWithoutABlock) {
  MessageReader reader;
  FakeStream stream;
  reader.set_cipher(nullptr, zmtp::Framing::none);
  const std::string input = "\xff" + pattern(300'000);
  stream.input = input;
  std::string got;
  MessageReader::Frame piece;
  for (;;) {
    bool drained = false;
    const MessageReader::Step step = reader.look(piece);
    if (step == MessageReader::Step::need_more) {
      if (reader.fill(stream, nullptr, drained).status != Status::done) {
        break;
      }
      continue;
    }
    ASSERT_EQ(step, MessageReader::Step::frame);
    EXPECT_LE(piece.body.size(), MessageReader::kRawMax);
    EXPECT_EQ(piece.block, nullptr);
    EXPECT_EQ(piece.header.flags, 0);
    EXPECT_EQ(piece.header.body_size, 0u);
    got += as_text(piece.body);
    reader.consume();
  }
  EXPECT_TRUE(got == input);
  EXPECT_TRUE(reader.empty());
  reader.reset();
  stream.input = "after a reset";
  bool drained = false;
  ASSERT_EQ(reader.fill(stream, nullptr, drained).status, Status::done);
  ASSERT_EQ(reader.look(piece), MessageReader::Step::frame);
  EXPECT_EQ(as_text(piece.body), "after a reset");
}

}  // namespace
}  // namespace weft::msg
