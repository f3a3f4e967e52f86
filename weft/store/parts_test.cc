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
    Stream& stream = declare(settings, keep == Keep::log ? "log" : "latest");
    constexpr int kCount = 1000;
    for (int i = 0; i < kCount; ++i) {
      const std::string topic = "a." + std::to_string(i);
      ASSERT_TRUE(store_->append(stream, {.topic = topic}, {}, at(1s)));
    }
    append(stream, {.topic = "b"});
    Reader reader = *stream.open_reader("b", {});
    reader.cursor.scan_max = 100;
    auto found = stream.read(reader);
    EXPECT_FALSE(*found);
    EXPECT_LE(reader.cursor.next, 101U);
    int reads = 1;
    for (; !*found; ++reads) {
      ASSERT_LT(reader.cursor.next, stream.next());
      found = stream.read(reader);
    }
    EXPECT_EQ((*found)->message.topic, "b");
    EXPECT_GE(reads, kCount / 100);
    EXPECT_FALSE(*stream.read(reader));
    EXPECT_EQ(reader.cursor.next, stream.next());
  }
}

TEST_F(PartsTest, APageOfTopicsReadsABoundedNumberOfRowsAlsoOfErasures) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.history = 3;
  Stream& stream = declare(settings);
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
  const TopicPage page = *stream.topics_after("", 66);
  EXPECT_TRUE(page.more);
  EXPECT_LT(page.after, "k.170");
}

TEST_F(PartsTest, TheSearchForTheNewestMessageOfAFilterGoesOnByParts) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StreamSettings settings;
    settings.keep = keep;
    Stream& stream = declare(settings, keep == Keep::log ? "log" : "latest");
    for (int i = 1000; i < 1500; ++i) {
      const std::string topic = (i % 2 == 0 ? "even." : "odd.") + std::to_string(i);
      ASSERT_TRUE(store_->append(stream, {.topic = topic}, {}, at(1s)));
    }
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    const Filter even = *Filter::parse("even.*");
    Stream::LastScan scan;
    int parts = 1;
    for (; !*stream.scan_last(scan, even, 70); ++parts) {
    }
    EXPECT_GE(parts, 7);
    EXPECT_EQ(stream.position_of(scan), 499U);
    EXPECT_EQ(stream.open_reader("even.*", From::last())->cursor.next, 499U);
    Stream::LastScan none;
    while (!*stream.scan_last(none, *Filter::parse("none"), 70)) {
    }
    EXPECT_EQ(stream.position_of(none), 501U);
  }
}

TEST_F(PartsTest, WhatAStreamHadLeavesTheFileInPartsAfterItIsRemoved) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StreamSettings settings;
    settings.keep = keep;
    Stream* stream = &declare(settings);
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
    EXPECT_TRUE(*stream->message_at(1));
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
