// SPDX-License-Identifier: MIT
// Long work, a part at a time.
#include <string>
#include <vector>

#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

using PartsTest = StoreOnDisk;

TEST_F(PartsTest, AReadPassesABoundedNumberOfMessages) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StreamSettings settings;
    settings.keep = keep;
    StoredStream& stream = declare(settings, keep == Keep::log ? "log" : "latest");
    constexpr int kCount = 1000;
    for (int i = 0; i < kCount; ++i) {
      const std::string topic = "a." + std::to_string(i);
      ASSERT_TRUE(store_->append(stream, {.topic = topic}, {}, at(1s)));
    }
    append(stream, {.topic = "b"});
    StoredReader reader = *stream.open_reader("b", {}, kDay);
    reader.cursor.scan_max = 100;
    auto found = stream.read(reader, kDay);
    EXPECT_FALSE(*found);
    EXPECT_LE(reader.cursor.next, 101U);
    int reads = 1;
    for (; !*found; ++reads) {
      ASSERT_LT(reader.cursor.next, stream.next());
      found = stream.read(reader, kDay);
    }
    EXPECT_EQ((*found)->message.topic, "b");
    EXPECT_GE(reads, kCount / 100);
    EXPECT_FALSE(*stream.read(reader, kDay));
    EXPECT_EQ(reader.cursor.next, stream.next());
  }
}

TEST_F(PartsTest, AReadOfTheNewestOfEachTopicOfAFilterPassesABoundedNumberOfMessages) {
  StoredStream& stream = declare({});
  constexpr std::uint64_t kCount = 2000;
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    ASSERT_TRUE(store_->append(stream, {.topic = i % 50 == 0 ? "wanted.a" : "other"}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  StoredReader reader = *stream.open_reader("wanted.*", From::last_per_topic(), kDay);
  reader.cursor.scan_max = 100;
  for (;;) {
    const std::uint64_t before = reader.cursor.next;
    const auto found = stream.read(reader, kDay);
    ASSERT_LE(reader.cursor.next - before, 110U);
    if (*found) {
      EXPECT_EQ((*found)->message.sequence, kCount);
      break;
    }
    ASSERT_LT(reader.cursor.next, stream.next());
  }
}

// Blocks that are not among the newest are read from the file, each in whole.
TEST_F(PartsTest, ABlockThatIsReadFromTheFileCountsByItsBytes) {
  StoredStream& stream = declare({});
  const std::string body(100'000, 'x');
  for (int i = 0; i < 30; ++i) {
    append(stream, {.topic = "a", .body = as_bytes(body)});
  }
  StoredReader reader = *stream.open_reader("", {}, kDay);
  ASSERT_TRUE(*stream.read(reader, kDay));
  EXPECT_GE(reader.cursor.passed, body.size() / Cursor::kMessageCost);
  EXPECT_LE(reader.cursor.passed, 2 * body.size() / Cursor::kMessageCost);
}

TEST_F(PartsTest, ADeliveryTakesABoundedNumberOfDeadLetters) {
  constexpr int kCount = 200;
  for (const bool kept : {true, false}) {
    StreamSettings dead_settings;
    dead_settings.topics = {"dead.*"};
    StoredStream& dead = declare(dead_settings, "dead");
    StoredStream& stream = declare({}, kept ? "kept" : "dropped");
    for (int i = 0; i < kCount; ++i) {
      ASSERT_TRUE(store_->append(stream, {.topic = "a"}, {}, at(1s)));
    }
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    ConsumerSettings settings;
    settings.ack_wait = 1s;
    settings.tries_max = 1;
    settings.dead_letters = kept ? "dead.s" : "";
    StoredConsumer& consumer = **store_->consumer(stream, "c", settings, false);
    for (int i = 0; i < kCount; ++i) {
      ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(1s)));
    }
    consumer.cursor.scan_max = 10 * StoredStream::kLookUpCost;
    const auto done = [&] { return kept ? dead.next() - 1 : store_->counts().dead_dropped; };
    for (std::uint64_t before = 0; before < kCount; before = done()) {
      EXPECT_FALSE(*store_->next_delivery(stream, consumer, at(10s)));
      ASSERT_EQ(store_->commit(at(10s)).disk, Errc::ok);
      ASSERT_GT(done(), before);
      EXPECT_LE(done() - before, 10U);
    }
    EXPECT_EQ(consumer.state.waiting(), 0U);
  }
}

TEST_F(PartsTest, MessagesOfABlockThatAreDueAgainReadItOnce) {
  StoredStream& stream = declare({});
  const std::string body(10'000, 'x');
  for (int i = 0; i < 20; ++i) {  // one block
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  for (int i = 0; i < 200; ++i) {  // no longer among the newest blocks
    append(stream, {.topic = "b", .body = as_bytes(body)});
  }
  StoredConsumer& consumer = **store_->consumer(stream, "c", {.filter = "a", .ack_wait = 1s}, false);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(1s)));
  }
  std::size_t passed = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(10s)));
    passed += consumer.cursor.passed;
  }
  EXPECT_LT(passed, 20 * StoredStream::kLookUpCost + 2 * 20 * body.size() / Cursor::kMessageCost);
}

TEST_F(PartsTest, APageOfTopicsReadsABoundedNumberOfRowsAlsoOfErasures) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.history = 3;
  StoredStream& stream = declare(settings);
  std::vector<std::string> live;
  for (int i = 100; i < 600; ++i) {
    const std::string topic = "k." + std::to_string(i);
    for (int value = 0; value < i % 4; ++value) {
      ASSERT_TRUE(store_->append(stream, {.topic = topic}, {}, at(1s)));
    }
    const bool erased = i % 5 != 0;
    ASSERT_TRUE(store_->append(stream, {.topic = topic, .erased = erased}, {}, at(1s)));
    if (!erased) {
      live.push_back(topic);
    }
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_EQ(live_topics(stream, 1), live);
  const TopicPage page = *stream.topics_after("", 66, kDay);
  EXPECT_TRUE(page.more);
  EXPECT_LT(page.after, "k.170");
}

TEST_F(PartsTest, TheSearchForTheNewestMessageOfAFilterGoesOnByParts) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StreamSettings settings;
    settings.keep = keep;
    StoredStream& stream = declare(settings, keep == Keep::log ? "log" : "latest");
    for (int i = 1000; i < 1500; ++i) {
      const std::string topic = (i % 2 == 0 ? "even." : "odd.") + std::to_string(i);
      ASSERT_TRUE(store_->append(stream, {.topic = topic}, {}, at(1s)));
    }
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    const Filter even = *Filter::parse("even.*");
    StoredStream::LastScan scan;
    int parts = 1;
    for (; !*stream.scan_last(scan, even, 70, kDay); ++parts) {
    }
    EXPECT_GE(parts, 7);
    EXPECT_EQ(stream.position_of(scan), 499U);
    EXPECT_EQ(stream.open_reader("even.*", From::last(), kDay)->cursor.next, 499U);
    StoredStream::LastScan none;
    while (!*stream.scan_last(none, *Filter::parse("none"), 70, kDay)) {
    }
    EXPECT_EQ(stream.position_of(none), 501U);
  }
}

TEST_F(PartsTest, IdsLeaveTheirWindowInPartsAndAreUnknownAtOnce) {
  StreamSettings settings;
  settings.same_id_window = 10s;
  settings.survives = Survives::nothing;
  StoredStream& stream = declare(settings);
  constexpr std::uint64_t kCount = 3 * StoredStream::kIdsPerCommit;
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .id = std::to_string(i)}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).memory, Errc::ok);
  EXPECT_EQ(append(stream, {.topic = "a", .id = "1"}, 100s), 1U) << "no message has come since";
  EXPECT_EQ(append(stream, {.topic = "a", .id = "new"}, 100s), kCount + 1);
  const std::string last = std::to_string(kCount);
  EXPECT_EQ(append(stream, {.topic = "a", .id = last}, 100s), kCount + 2) << "it has left";
  EXPECT_EQ(append(stream, {.topic = "a", .id = last}, 100s), kCount + 2);
  EXPECT_EQ(append(stream, {.topic = "a", .id = "new"}, 100s), kCount + 1);
}

TEST_F(PartsTest, TheMemoryOfARemovedStreamIsFreedInParts) {
  StreamSettings settings;
  settings.survives = Survives::nothing;
  StoredStream& stream = declare(settings);
  for (std::uint64_t i = 0; i < 3 * StoredStream::kIdsPerCommit; ++i) {
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .id = std::to_string(i)}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).memory, Errc::ok);
  ASSERT_TRUE(store_->remove("s"));
  int commits = 0;
  for (; store_->has_work(at(1s)) && commits < 100; ++commits) {
    (void)store_->commit(at(1s));
  }
  EXPECT_GE(commits, 3);
  EXPECT_LT(commits, 100);
}

TEST_F(PartsTest, WhatAStreamHadLeavesTheFileInPartsAfterItIsRemoved) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StreamSettings settings;
    settings.keep = keep;
    StoredStream* stream = &declare(settings);
    const std::string body(2000, 'x');
    for (int i = 0; i < 2000; ++i) {
      const std::string topic = "k." + std::to_string(i);
      ASSERT_TRUE(store_->append(*stream, {.topic = topic, .id = topic, .body = as_bytes(body)}, {}, at(1s)));
      if (i % 10 == 9) {
        ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
      }
    }
    ASSERT_TRUE(store_->remove("s"));
    EXPECT_EQ(store_->find("s"), nullptr);
    stream = &declare(settings);
    EXPECT_EQ(append(*stream, {.topic = "k.1", .id = "k.1"}), 1U);
    int parts = 1;
    for (; store_->has_work(at(2s)); ++parts) {
      ASSERT_EQ(store_->commit(at(2s)).disk, Errc::ok);
      if (parts == 3) {
        open(2s);
        stream = store_->find("s");
        ASSERT_EQ(store_->streams().size(), 1U);
        ASSERT_TRUE(store_->has_work(at(2s)));
      }
    }
    EXPECT_GE(parts, 5);
    EXPECT_EQ(stream->next(), 2U);
    EXPECT_TRUE(*stream->message_at(1, kDay));
    const std::uint64_t size = disk_.files().at("store.db")->live.size();
    for (int i = 0; i < 100; ++i) {
      append(*stream, {.topic = "k", .body = as_bytes(std::string(20'000, 'y'))});
    }
    EXPECT_LE(disk_.files().at("store.db")->live.size(), size) << "the room of the removed stream is taken again";
    ASSERT_TRUE(store_->remove("s"));
  }
}

}  // namespace
}  // namespace weft::store

#endif
