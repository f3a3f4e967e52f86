// SPDX-License-Identifier: MIT
#include "weft/serve/session/write_queue.h"

#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "tests/support/thread_time.h"
#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

// Runs the queue beside a list of strings that does the same.
class WriteQueueTest : public testing::Test {
 protected:
  ~WriteQueueTest() override {
    queue_.clear(share_);
    EXPECT_EQ(share_.held(), 0u);
  }

  bool append(std::string_view frame) {
    std::uint8_t* place = queue_.room(frame.size());
    if (place == nullptr) {
      place = queue_.reserve(frame.size(), share_);
    }
    if (place == nullptr) {
      return false;
    }
    copy_bytes(place, as_bytes(frame));
    queue_.commit(frame.size());
    return true;
  }
  void append_shared(std::string_view frame) {
    mem::Buffer* const buffer = mem::Buffer::make(frame.size());
    copy_bytes(buffer->data(), as_bytes(frame));
    EXPECT_TRUE(append_buffer(queue_, buffer, frame.size()));
    buffer->release();
  }
  bool append_buffer(WriteQueue& queue, mem::Buffer* buffer, std::size_t size) {
    return queue.append_shared(frames_, buffer, Bytes(buffer->data(), size), share_);
  }
  // Appends a frame with a key, or puts it into the place of an older one: then returns true.
  bool put(std::uint64_t key, std::string_view text, bool shared = false) {
    mem::Buffer* const buffer = shared ? mem::Buffer::make(text.size()) : nullptr;
    Bytes part = as_bytes(text);
    if (shared) {
      copy_bytes(buffer->data(), part);
      part = Bytes(buffer->data(), text.size());
    }
    const WriteQueue::KeyedFrame frame{FrameKey{key}, {&part, 1}, buffer};
    WriteQueue::Keyed* const older = queue_.find(FrameKey{key});
    EXPECT_TRUE(older != nullptr ? queue_.replace(*older, frame, frames_)
                                 : queue_.append_keyed(frame, frames_, share_));
    if (shared) {
      buffer->release();
    }
    return older != nullptr;
  }
  [[nodiscard]] std::string content() const {
    Bytes parts[WriteQueue::kGatherMax];
    const std::size_t count = queue_.gather(parts);
    std::string text;
    for (std::size_t i = 0; i < count; ++i) {
      text += as_text(parts[i]);
    }
    return text;
  }

  ByteBudget budget_{std::size_t{1} << 26};
  ByteBudget::Share share_{budget_, std::size_t{1} << 26};
  HeldFrames frames_{share_};
  WriteQueue queue_;
};

TEST_F(WriteQueueTest, KeepsTheOrderOfCopiedAndSharedFrames) {
  append("one,");
  append_shared("two,");
  append("three,");
  EXPECT_EQ(content(), "one,two,three,");
  EXPECT_EQ(queue_.size(), 14u);
}

TEST_F(WriteQueueTest, AnEmptyQueueHoldsNoMemory) {
  EXPECT_EQ(share_.held(), 0u);
  append("frame");
  EXPECT_NE(share_.held(), 0u);
  queue_.advance(5, share_);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(share_.held(), 0u);
}

TEST_F(WriteQueueTest, DroppingTheOldestKeepsTheFrameThatWasBegun) {
  for (const char* frame : {"aaaa", "bbbb", "cccc", "dddd"}) {
    append(frame);
  }
  queue_.advance(2, share_);
  const auto dropped = queue_.drop_oldest(5, share_);
  EXPECT_EQ(dropped.frames, 2u);
  EXPECT_EQ(dropped.bytes, 8u);
  EXPECT_EQ(content(), "aadddd");
  queue_.advance(1, share_);
  EXPECT_EQ(content(), "adddd");
  queue_.advance(2, share_);
  EXPECT_EQ(content(), "ddd");
  EXPECT_EQ(queue_.drop_oldest(100, share_).frames, 0u);
}

TEST_F(WriteQueueTest, DroppingEverythingLeavesNothingThatWasNotBegun) {
  append("aaaa");
  append_shared("bbbb");
  append("cccc");
  EXPECT_EQ(queue_.drop_oldest(~std::size_t{0}, share_).frames, 3u);
  EXPECT_TRUE(queue_.empty());
  append("dddd");
  EXPECT_EQ(content(), "dddd");
}

TEST_F(WriteQueueTest, TheRestOfAFrameThatWasWrittenInPartIsNeverDropped) {
  const Bytes parts[] = {as_bytes("head"), as_bytes("body")};
  ASSERT_TRUE(queue_.append_rest(parts, 6, share_));
  append("next");
  EXPECT_EQ(content(), "dynext");
  EXPECT_EQ(queue_.drop_oldest(~std::size_t{0}, share_).frames, 1u);
  EXPECT_EQ(content(), "dy");
}

TEST_F(WriteQueueTest, DroppingStateKeepsEventsAndTheFrameThatWasBegun) {
  for (const char* frame : {"STATE1", "event1", "STATE2", "event2"}) {
    append(frame);
    queue_.mark_last(frame[0] == 'S' ? FrameKind::state : FrameKind::event);
  }
  append_shared("STATE3");
  queue_.mark_last(FrameKind::state);
  append_shared("event3");
  queue_.advance(2, share_);
  EXPECT_EQ(queue_.drop_state(share_), 2u);
  EXPECT_EQ(content(), "ATE1event1event2event3");
  append("after");  // in the room that was given back, or a new block
  queue_.advance(10, share_);
  EXPECT_EQ(content(), "event2event3after");
  EXPECT_EQ(queue_.drop_oldest(6, share_).frames, 1u);
  EXPECT_EQ(queue_.drop_state(share_), 0u);
}

// A program may send state to a peer that does not read as often as it likes.
TEST_F(WriteQueueTest, AQueueWithoutStateIsNotSearchedForState) {
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(append("event"));
  }
  const Duration spent = shortest_time(std::chrono::milliseconds(500), [this] {
    const Duration begin = thread_time();
    for (int i = 0; i < 100'000; ++i) {
      EXPECT_EQ(queue_.drop_state(share_), 0u);
    }
    return thread_time() - begin;
  });
  EXPECT_LT(spent, std::chrono::milliseconds(500));
}

// The peer reads nothing, and each new state takes the place of the one before, after many events.
TEST_F(WriteQueueTest, StateAfterManyEventsIsFoundWithoutASearchOfThem) {
  append("begun");
  queue_.mark_last(FrameKind::state);
  queue_.advance(1, share_);
  for (int i = 0; i < 20'000; ++i) {
    append_shared("event");
  }
  const Duration spent = shortest_time(std::chrono::milliseconds(500), [this] {
    const Duration begin = thread_time();
    for (int i = 0; i < 20'000; ++i) {
      EXPECT_TRUE(append("state"));
      queue_.mark_last(FrameKind::state);
      EXPECT_EQ(queue_.drop_state(share_), 1u);
    }
    return thread_time() - begin;
  });
  EXPECT_LT(spent, std::chrono::milliseconds(500));
  EXPECT_EQ(queue_.size(), 4u + 20'000 * 5);
}

// Events and state of all kinds, some of which leave meanwhile, in every order.
TEST_F(WriteQueueTest, NoStateIsLeftBehindWhateverLeftAndWasDroppedBefore) {
  Random random(17);
  for (int round = 0; round < 300; ++round) {
    std::size_t states = 0;
    for (int step = 0; step < 40; ++step) {
      switch (random.below(6)) {
        case 0: append_shared("shared event"); break;
        case 1: append("event"); break;
        case 2:
          append("state");
          queue_.mark_last(FrameKind::state);
          ++states;
          break;
        case 3:
          append_shared("shared state");
          queue_.mark_last(FrameKind::state);
          ++states;
          break;
        case 4: queue_.advance(random.below(std::min<std::uint64_t>(queue_.size(), 30) + 1), share_); break;
        default: (void)queue_.drop_oldest(random.below(20), share_); break;
      }
    }
    EXPECT_LE(queue_.drop_state(share_), states);
    const std::string left = content();
    EXPECT_TRUE(left.find("state", 12) == std::string::npos) << "after the frame that was begun: " << left;
    if (random.below(2) == 0) {
      queue_.clear(share_);
    }
  }
}

TEST_F(WriteQueueTest, AQueueOfStateAloneIsEmptyWhenItIsDropped) {
  append("one");
  queue_.mark_last(FrameKind::state);
  append_shared("two");
  queue_.mark_last(FrameKind::state);
  EXPECT_EQ(queue_.drop_state(share_), 2u);
  EXPECT_TRUE(queue_.empty());
  append("three");
  EXPECT_EQ(content(), "three");
}

// --- frames with a key ---

TEST_F(WriteQueueTest, ANewerFrameTakesThePlaceOfTheOlderOneWithItsKey) {
  EXPECT_FALSE(put(1, "one."));
  append("event.");
  EXPECT_FALSE(put(2, "two."));
  append("event.");
  EXPECT_TRUE(put(1, "ONE."));
  EXPECT_EQ(content(), "ONE.event.two.event.");
  EXPECT_TRUE(put(2, "a longer one than the block has room for, ........................................."));
  EXPECT_TRUE(put(1, "1."));
  EXPECT_TRUE(put(2, "2.", true));
  EXPECT_TRUE(put(1, "shared.", true));
  EXPECT_EQ(content(), "shared.event.2.event.");
  EXPECT_TRUE(put(2, "copied."));
  EXPECT_EQ(content(), "shared.event.copied.event.");
  EXPECT_EQ(queue_.size(), content().size());
}

TEST_F(WriteQueueTest, AFrameOfWhichAByteWasWrittenIsNotReplaced) {
  put(1, "older.");
  put(2, "two.");
  queue_.advance(1, share_);
  EXPECT_FALSE(put(1, "newer."));
  EXPECT_EQ(content(), "lder.two.newer.");
  EXPECT_TRUE(put(1, "newest."));
  EXPECT_EQ(content(), "lder.two.newest.");
  queue_.advance(5, share_);
  EXPECT_TRUE(put(2, "TWO.")) << "it is the first one, and not begun";
  queue_.advance(content().size(), share_);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(share_.held(), 0u);
  EXPECT_FALSE(put(1, "again."));
}

TEST_F(WriteQueueTest, AFrameWithAKeyIsNotDroppedAsState) {
  put(1, "one.");
  append("state.");
  queue_.mark_last(FrameKind::state);
  put(2, "two.");
  EXPECT_EQ(queue_.drop_state(share_), 1u);
  EXPECT_EQ(content(), "one.two.");
  EXPECT_EQ(queue_.drop_oldest(1, share_).frames, 1u);
  EXPECT_FALSE(put(1, "ONE."));
  EXPECT_EQ(content(), "two.ONE.");
}

// The peer reads nothing, and the newest of many keys changes again and again.
TEST_F(WriteQueueTest, AReplacementCostsTheSameInALongQueue) {
  constexpr std::uint64_t kKeys = 20'000;
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    put(key << 32, "frame");
    append("event");
  }
  const Duration spent = shortest_time(std::chrono::milliseconds(500), [this] {
    const Duration begin = thread_time();
    for (std::uint64_t key = kKeys; key != 0; --key) {
      EXPECT_TRUE(put((key - 1) << 32, "newer"));
    }
    return thread_time() - begin;
  });
  EXPECT_LT(spent, std::chrono::milliseconds(500));
  EXPECT_EQ(queue_.size(), kKeys * 10);
}

TEST_F(WriteQueueTest, FramesBetweenFramesWithKeysTakeSmallBlocks) {
  for (std::uint64_t key = 0; key < 1000; ++key) {
    put(key, std::string(100, 'k'));
    append(std::string(100, 'e'));
  }
  EXPECT_LE(share_.held(), 1000u * (256 + 256) + 32 * 1024);
}

TEST_F(WriteQueueTest, AFrameWithAKeyThatTheBudgetDoesNotTakeChangesNothing) {
  ByteBudget small(4 * 1024);
  ByteBudget::Share share(small, 4 * 1024);
  HeldFrames frames(share);
  WriteQueue queue;
  const Bytes first = as_bytes(std::string_view("first"));
  ASSERT_TRUE(queue.append_keyed({FrameKey{1}, {&first, 1}}, frames, share));
  const std::size_t held = share.held();
  for (int i = 0; i < 20; ++i) {
    const std::string larger(5000, 'x');
    const Bytes part = as_bytes(larger);
    EXPECT_FALSE(queue.append_keyed({FrameKey{2}, {&part, 1}}, frames, share));
    EXPECT_FALSE(queue.replace(*queue.find(FrameKey{1}), {FrameKey{1}, {&part, 1}}, frames));
    EXPECT_EQ(share.held(), held);
  }
  EXPECT_EQ(queue.find(FrameKey{2}), nullptr);
  EXPECT_EQ(queue.size(), 5u);
  std::uint64_t taken = 1;
  while (queue.append_keyed({FrameKey{taken + 1}, {&first, 1}}, frames, share)) {
    ++taken;
  }
  EXPECT_GT(taken, 8u) << "the table has grown";
  EXPECT_EQ(queue.clear(share), taken);
  EXPECT_EQ(share.held(), 0u);
}

// Blocks beyond the pool's largest have exactly the requested size: the ends of frames must not overlap the
// frames.
TEST_F(WriteQueueTest, FramesOfAnySizeStayAsTheyAre) {
  for (std::size_t size = 300'000; size < 300'008; ++size) {
    const std::string frame(size, static_cast<char>('a' + size % 26));
    append(frame);
    append("b");
    EXPECT_TRUE(content() == frame + "b") << size;
    queue_.advance(size + 1, share_);
  }
}

TEST_F(WriteQueueTest, RefusesWhatTheBudgetDoesNotHold) {
  ByteBudget small(8 * 1024);
  ByteBudget::Share share(small, 8 * 1024);
  WriteQueue queue;
  EXPECT_EQ(queue.reserve(100 * 1024, share), nullptr);
  EXPECT_TRUE(queue.empty());
  EXPECT_NE(queue.reserve(100, share), nullptr);
  queue.commit(100);
  EXPECT_EQ(queue.clear(share), 1u);
  EXPECT_EQ(share.held(), 0u);
}

TEST_F(WriteQueueTest, ASharedFrameIsChargedOnceForAllQueuesThatHoldIt) {
  constexpr std::size_t kFrame = 64 * 1024;
  std::array<WriteQueue, 10> queues;
  std::array<mem::Buffer*, 3> buffers{};
  for (mem::Buffer*& buffer : buffers) {
    buffer = mem::Buffer::make(kFrame);
    for (WriteQueue& queue : queues) {
      ASSERT_TRUE(append_buffer(queue, buffer, kFrame));
    }
  }
  // In another order each is found again.
  for (mem::Buffer* const buffer : buffers) {
    ASSERT_TRUE(append_buffer(queue_, buffer, kFrame));
    buffer->release();
  }
  const std::size_t segments = 33 * 128;
  EXPECT_GE(share_.held(), 3 * kFrame);
  EXPECT_LE(share_.held(), 3 * kFrame + segments);
  for (WriteQueue& queue : queues) {
    queue.advance(kFrame, share_);
  }
  EXPECT_GE(share_.held(), 3 * kFrame);
  queue_.advance(kFrame, share_);
  EXPECT_LT(share_.held(), 2 * kFrame + segments) << "no queue holds the first frame any more";
  for (WriteQueue& queue : queues) {
    queue.clear(share_);
  }
}

TEST_F(WriteQueueTest, ASharedFrameThatTheBudgetDoesNotTakeIsRefused) {
  mem::Buffer* const large = mem::Buffer::make(std::size_t{1} << 27);
  ASSERT_NE(large, nullptr);
  EXPECT_FALSE(append_buffer(queue_, large, 100));
  large->release();
  EXPECT_EQ(share_.held(), 0u);
  EXPECT_TRUE(queue_.empty());
}

// Random steps beside a list of frames: bytes leave in order, and only whole frames are missing.
TEST_F(WriteQueueTest, BehavesAsAListOfFrames) {
  Random random(11);
  struct Item {
    std::string bytes;
    FrameKind kind;
    std::optional<std::uint64_t> key = std::nullopt;
  };
  std::deque<Item> model;
  bool begun = false;
  for (int step = 0; step < 5'000; ++step) {
    const std::uint64_t kind = random.below(14);
    if (kind >= 10) {
      // More keys than frames at times, and fewer at others: the table grows, ends and begins again.
      const std::uint64_t key = random.below(step / 500 % 2 == 0 ? 12u : 200u);
      const std::string frame(1 + random.below(random.below(4) == 0 ? 5000u : 90u), static_cast<char>('A' + step % 26));
      std::size_t at = begun ? 1 : 0;
      while (at < model.size() && model[at].key != key) {
        ++at;
      }
      ASSERT_EQ(put(key, frame, random.below(3) == 0), at < model.size());
      if (at == model.size()) {
        model.emplace_back();
      }
      model[at] = {frame, FrameKind::event, key};
    } else if (kind < 5 && model.size() < 200) {
      std::string frame(random.below(8) == 0 ? 1 + random.below(20'000) : 1 + random.below(90), 'a');
      for (char& c : frame) {
        c = static_cast<char>('a' + random.below(26));
      }
      if (kind == 0) {
        append_shared(frame);
      } else {
        ASSERT_TRUE(append(frame));
      }
      model.push_back({frame, random.below(3) == 0 ? FrameKind::state : FrameKind::event});
      queue_.mark_last(model.back().kind);
    } else if (kind < 8) {
      Bytes parts[WriteQueue::kGatherMax];
      const std::size_t count = queue_.gather(parts);
      std::size_t there = 0;
      for (std::size_t i = 0; i < count; ++i) {
        there += parts[i].size();
      }
      std::size_t bytes = random.below(4) == 0 ? there : random.below(there + 1);
      queue_.advance(bytes, share_);
      while (bytes != 0) {
        std::string& front = model.front().bytes;
        const std::size_t taken = std::min(bytes, front.size());
        bytes -= taken;
        begun = taken < front.size();
        front.erase(0, taken);
        if (front.empty()) {
          model.pop_front();
        }
      }
    } else if (kind < 9) {
      std::size_t frames = 0;
      for (std::size_t i = begun ? 1 : 0; i < model.size();) {
        if (model[i].kind == FrameKind::state) {
          model.erase(model.begin() + static_cast<std::ptrdiff_t>(i));
          ++frames;
        } else {
          ++i;
        }
      }
      ASSERT_EQ(queue_.drop_state(share_), frames);
    } else {
      const std::size_t wanted = random.below(2000);
      const auto dropped = queue_.drop_oldest(wanted, share_);
      std::size_t gone = 0;
      std::size_t frames = 0;
      while (gone < wanted && model.size() > (begun ? 1u : 0u)) {
        gone += model[begun ? 1 : 0].bytes.size();
        model.erase(model.begin() + (begun ? 1 : 0));
        ++frames;
      }
      ASSERT_EQ(dropped.bytes, gone);
      ASSERT_EQ(dropped.frames, frames);
    }
    if (model.empty()) {
      begun = false;
      ASSERT_TRUE(queue_.empty());
    }
    std::string expected;
    for (const Item& item : model) {
      expected += item.bytes;
    }
    ASSERT_EQ(queue_.size(), expected.size());
    const std::string there = content();  // of the first segments
    ASSERT_EQ(there, expected.substr(0, there.size()));
  }
}

}  // namespace
}  // namespace weft::serve
