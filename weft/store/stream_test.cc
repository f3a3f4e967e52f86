// SPDX-License-Identifier: MIT
// Messages with a time to live: how long they are read, and when their bytes go.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

class ExpiryTest : public StoreOnDisk {
 protected:
  static StreamSettings keeping(Keep keep, std::uint32_t history = 1) {
    StreamSettings settings;
    settings.keep = keep;
    settings.when_full = default_when_full(keep);
    settings.history = history;
    return settings;
  }
  static std::vector<std::uint64_t> read(StoredStream& stream, Duration since, From from = {}) {
    StoredReader reader = *stream.open_reader("", from, at(since).wall);
    std::vector<std::uint64_t> all;
    for (auto message = stream.read(reader, at(since).wall); *message; message = stream.read(reader, at(since).wall)) {
      all.push_back((*message)->message.sequence);
    }
    return all;
  }
  static bool has_newest(StoredStream& stream, std::string_view topic, Duration since) {
    return stream.newest_of(topic, at(since).wall)->has_value();
  }
  void commit_all(Duration since) {
    for (int turn = 0; turn < 1000 && store_->has_work(at(since)); ++turn) {
      const auto done = store_->commit(at(since));
      ASSERT_EQ(done.disk, Errc::ok);
      ASSERT_EQ(done.memory, Errc::ok);
    }
    ASSERT_FALSE(store_->has_work(at(since)));
  }
};
using Sequences = std::vector<std::uint64_t>;

TEST_F(ExpiryTest, AMessageIsReadUntilItsTimeIsOver) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StoredStream& stream = declare(keeping(keep), keep == Keep::log ? "log" : "latest");
    append(stream, {.topic = "a"});
    append(stream, {.topic = "b", .time_to_live = 2s});  // at 1 s
    for (const Duration before : {1s + 0ns, 3s - 1ns}) {
      EXPECT_EQ(read(stream, before), (Sequences{1, 2}));
      EXPECT_EQ(read(stream, before, From::last_per_topic()), (Sequences{1, 2}));
      EXPECT_TRUE(*stream.message_at(2, at(before).wall));
      EXPECT_TRUE(has_newest(stream, "b", before));
      EXPECT_EQ(stream.topics_after("", 100, at(before).wall)->topics.size(), 2U);
    }
    EXPECT_EQ(read(stream, 3s), (Sequences{1}));
    EXPECT_EQ(read(stream, 3s, From::last_per_topic()), (Sequences{1}));
    EXPECT_FALSE(*stream.message_at(2, at(3s).wall));
    EXPECT_FALSE(has_newest(stream, "b", 3s));
    EXPECT_EQ(stream.topics_after("", 100, at(3s).wall)->topics.size(), 1U);
    open(3s);  // the end is on the disk
    EXPECT_EQ(read(*store_->find(keep == Keep::log ? "log" : "latest"), 3s), (Sequences{1}));
    EXPECT_TRUE(has_newest(*store_->find(keep == Keep::log ? "log" : "latest"), "b", 3s - 1ns));
  }
}

TEST_F(ExpiryTest, TimesToLiveHaveBounds) {
  StoredStream& stream = declare({});
  for (const Duration wrong :
       {Duration(-1), Duration::min(), Duration(1s) - 1ns, kTimeToLiveMax + 1ns, Duration::max()}) {
    EXPECT_EQ(store_->append(stream, {.topic = "a", .time_to_live = wrong}, {}, at(0s)).error(),
              Errc::invalid_argument);
  }
  append(stream, {.topic = "a", .time_to_live = kTimeToLiveMin}, 0s);
  append(stream, {.topic = "b", .time_to_live = kTimeToLiveMax}, 0s);
  EXPECT_EQ(read(stream, kTimeToLiveMax - 1ns), (Sequences{2}));
  EXPECT_EQ(read(stream, kTimeToLiveMax), (Sequences{}));
  EXPECT_EQ(expiry_of(WallTime::max() - 5s, 5s), WallTime::max());  // beyond the clock: never
}

TEST_F(ExpiryTest, AnExpectationMeetsATopicWithoutAMessage) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a"}, 0s);
  append(stream, {.topic = "a", .time_to_live = 1s}, 0s);
  EXPECT_FALSE(has_newest(stream, "a", 1s));  // an older message does not take its place
  EXPECT_EQ(store_->append(stream, {.topic = "a"}, {.last = 2}, at(1s)).error(), Errc::conflict);
  EXPECT_EQ(store_->append(stream, {.topic = "a"}, {.last = 1}, at(1s)).error(), Errc::conflict);
  EXPECT_EQ(append(stream, {.topic = "a"}, 1s, {.last = 0}), 3U);
  append(stream, {.topic = "b", .time_to_live = 1s}, 1s);
  EXPECT_EQ(store_->append(stream, {.topic = "b"}, {.absent = true}, at(2s)).error(), Errc::ok);
}

TEST_F(ExpiryTest, AnIdIsKnownAfterTheEndOfItsMessage) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a", .id = "x", .time_to_live = 1s}, 0s);
  commit_all(5s);
  EXPECT_EQ(stream.first(), stream.next());  // the message is gone
  const auto again = store_->append(stream, {.topic = "a", .id = "x"}, {}, at(5s));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(again->sequence, 1U);
}

TEST_F(ExpiryTest, AConsumerGetsNoMessageThatIsOver) {
  for (const Keep keep : {Keep::log, Keep::work}) {
    StoredStream& stream = declare(keeping(keep), keep == Keep::log ? "log" : "work");
    ConsumerSettings settings;
    settings.ack_wait = 1s;
    StoredConsumer& consumer = **store_->consumer(stream, "c", settings, false);
    append(stream, {.topic = "a", .time_to_live = 5s}, 0s);
    append(stream, {.topic = "a", .time_to_live = 5s}, 0s);
    append(stream, {.topic = "a"}, 0s);
    EXPECT_EQ((*store_->next_delivery(stream, consumer, at(1s)))->read.message.sequence, 1U);
    // 1 is due again, and over; 2 was never delivered.
    EXPECT_EQ((*store_->next_delivery(stream, consumer, at(5s)))->read.message.sequence, 3U);
    EXPECT_EQ(consumer.state.waiting(), 1U);
    EXPECT_FALSE(store_->ack(consumer, 1, true));
    EXPECT_FALSE(*store_->next_delivery(stream, consumer, at(5s)));
    EXPECT_TRUE(store_->ack(consumer, 3, true));
    commit_all(6s);
    EXPECT_EQ(stream.next(), 4U);
  }
}

TEST_F(ExpiryTest, AnAcknowledgementAfterTheEndCounts) {
  StoredStream& stream = declare(keeping(Keep::work));
  StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
  append(stream, {.topic = "a", .time_to_live = 1s}, 0s);
  append(stream, {.topic = "a"}, 0s);
  ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(0s)));
  EXPECT_TRUE(store_->ack(consumer, 1, true));
  EXPECT_EQ(store_->commit(at(2s)).disk, Errc::ok);
  EXPECT_EQ(consumer.state.floor(), 2U);
}

// The blocks that only have such messages go in whole, wherever they are.
TEST_F(ExpiryTest, BytesOfMessagesThatAreOverAreGivenBack) {
  StoredStream& stream = declare({});
  const std::string body(1000, 'x');
  for (int i = 0; i < 200; ++i) {
    append(stream, {.topic = "keep", .body = as_bytes("small")}, 0s);
    for (int j = 0; j < 5; ++j) {
      ASSERT_TRUE(store_->append(
          stream, {.topic = "a." + std::to_string(j), .body = as_bytes(body), .time_to_live = 60s}, {}, at(0s)));
    }
    ASSERT_EQ(store_->commit(at(0s)).disk, Errc::ok);
  }
  const std::uint64_t before = stream.bytes();
  EXPECT_GT(before, 1'000'000U);
  EXPECT_FALSE(store_->has_work(at(60s)));
  EXPECT_EQ(store_->next_age(), at(60s).wall);
  commit_all(61s);
  EXPECT_LT(stream.bytes(), 20'000U);
  EXPECT_EQ(read(stream, 61s).size(), 200U);
  EXPECT_EQ(stream.first(), 1U);
  EXPECT_EQ(live_topics(stream).size(), 1U);
  open(61s);
  EXPECT_EQ(read(*store_->find("s"), 61s).size(), 200U);
  EXPECT_EQ(store_->find("s")->next(), 1201U);
}

TEST_F(ExpiryTest, OfABlockAtMostHalfIsOver) {
  StoredStream& stream = declare({});
  const std::string body(1000, 'x');
  for (int i = 0; i < 100; ++i) {  // one block: message i lives for i + 1 s
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes(body), .time_to_live = Duration(1s) * (i + 1)},
                               {}, at(0s)));
  }
  ASSERT_TRUE(store_->append(stream, {.topic = "b"}, {}, at(0s)));
  ASSERT_EQ(store_->commit(at(0s)).disk, Errc::ok);
  std::uint64_t writes = 0;
  for (int second = 1; second <= 101; ++second) {
    const Duration since = std::chrono::seconds(second) + 1ns;
    writes += store_->has_work(at(since)) ? 1 : 0;
    commit_all(since);
    const std::uint64_t live = static_cast<std::uint64_t>(std::max(100 - second, 0)) * 1040;
    EXPECT_LE(stream.bytes(), 2 * live + 1200) << second;
    EXPECT_EQ(read(stream, since).size(), static_cast<std::size_t>(std::max(100 - second, 0)) + 1);
  }
  EXPECT_LE(writes, 10U);  // each one halves the block
  EXPECT_EQ(read(stream, 200s), (Sequences{101}));
}

TEST_F(ExpiryTest, AKeyWhoseValueIsOverIsErasedWithItsHistory) {
  StoredStream& stream = declare(keeping(Keep::latest, 3));
  append(stream, {.topic = "a", .body = as_bytes("old")}, 0s);
  append(stream, {.topic = "a", .body = as_bytes("new"), .time_to_live = 1s}, 0s);
  append(stream, {.topic = "b", .body = as_bytes("older"), .time_to_live = 1s}, 0s);
  append(stream, {.topic = "b", .body = as_bytes("stays")}, 0s);
  EXPECT_FALSE(has_newest(stream, "a", 1s));
  EXPECT_EQ(store_->append(stream, {.topic = "a"}, {.last = 2}, at(1s)).error(), Errc::conflict);
  commit_all(2s);
  const auto erasure = *stream.newest_of("a", at(2s).wall);
  ASSERT_TRUE(erasure);
  EXPECT_TRUE(erasure->message.erased);
  EXPECT_EQ(erasure->message.sequence, 5U);
  EXPECT_EQ(store_->stored().size(), 1U);  // readers wake up
  EXPECT_EQ(read(stream, 2s), (Sequences{4, 5}));
  EXPECT_EQ(store_->append(stream, {.topic = "a"}, {.last = 0}, at(2s)).error(), Errc::conflict);
  // The erasure goes too, and nothing comes back.
  commit_all(2s + Latest::kErasureLives + 1ns);
  EXPECT_EQ(read(stream, 1h), (Sequences{4}));
  EXPECT_FALSE(has_newest(stream, "a", 1h));
  EXPECT_EQ(append(stream, {.topic = "a"}, 1h, {.last = 0, .absent = true}), 6U);
}

TEST_F(ExpiryTest, AKeyIsCreatedAnewBetweenTheEndAndTheErasure) {
  StoredStream& stream = declare(keeping(Keep::latest));
  append(stream, {.topic = "a", .time_to_live = 1s}, 0s);
  EXPECT_EQ(append(stream, {.topic = "a", .body = as_bytes("anew")}, 1s, {.absent = true}), 2U);
  commit_all(3s);
  EXPECT_EQ(read(stream, 3s), (Sequences{2}));
  append(stream, {.topic = "b", .time_to_live = 1s}, 3s);
  commit_all(5s);
  EXPECT_EQ(append(stream, {.topic = "b"}, 5s, {.absent = true}), 5U);  // after the erasure 4
}

TEST_F(ExpiryTest, AFullBucketHasRoomForTheErasureOfAKey) {
  StreamSettings settings = keeping(Keep::latest);
  settings.bytes_max = 65'536;
  StoredStream& stream = declare(settings);
  const std::string body(1000, 'x');
  int keys = 0;
  while (store_->append(stream, {.topic = "k." + std::to_string(keys), .body = as_bytes(body), .time_to_live = 10s}, {},
                        at(0s))) {
    ASSERT_EQ(store_->commit(at(0s)).disk, Errc::ok);
    ++keys;
  }
  EXPECT_GT(keys, 50);
  commit_all(11s);
  EXPECT_TRUE(live_topics(stream).empty());
  append(stream, {.topic = "new", .body = as_bytes(body)}, 11s);
  EXPECT_EQ(read(stream, 11s).size(), static_cast<std::size_t>(keys) + 1);
}

TEST_F(ExpiryTest, AClockThatGoesBackShowsNothingAgainThatNewerMessagesFollow) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a", .time_to_live = 1s}, 0s);
  append(stream, {.topic = "b"}, 5s);
  open(0s);
  StoredStream& again = *store_->find("s");
  EXPECT_EQ(read(again, 0s), (Sequences{2}));
  EXPECT_FALSE(has_newest(again, "a", 0s));
}

TEST_F(ExpiryTest, APurgeWithinABlockKeepsTheEndsOfTheOthers) {
  StoredStream& stream = declare({});
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(
        store_->append(stream, {.topic = "a", .time_to_live = i % 2 == 0 ? Duration(5s) : Duration(0)}, {}, at(0s)));
  }
  ASSERT_EQ(store_->commit(at(0s)).disk, Errc::ok);
  ASSERT_TRUE(store_->purge_before(stream, 3));
  EXPECT_EQ(read(stream, 0s), (Sequences{3, 4}));
  EXPECT_EQ(read(stream, 5s), (Sequences{4}));
  commit_all(6s);
  ASSERT_TRUE(store_->purge_before(stream, 4));
  EXPECT_EQ(read(stream, 6s), (Sequences{4}));
  ASSERT_TRUE(store_->purge_before(stream, 5));
  EXPECT_EQ(stream.bytes(), 0U);
}

TEST_F(ExpiryTest, ADamagedBlockThatEndsIsReportedAndTheStoreGoesOn) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a", .body = as_bytes("to be damaged"), .time_to_live = 1s}, 0s);
  append(stream, {.topic = "a", .body = as_bytes("whole"), .time_to_live = 1s}, 0s);
  ASSERT_EQ(store_->commit(at(0s)).disk, Errc::ok);
  store_.reset();
  auto& bytes = disk_.files()["store.db"]->live;
  for (auto& [name, file] : disk_.files()) {
    const std::string_view text(reinterpret_cast<const char*>(file->live.data()), file->live.size());
    if (const std::size_t place = text.find("to be damaged"); place != std::string_view::npos) {
      file->live[place] ^= 1U;
    }
  }
  ASSERT_FALSE(bytes.empty());
  open(0s);
  commit_all(2s);
  StoredStream& again = *store_->find("s");
  StoredReader reader = *again.open_reader("", {}, at(2s).wall);
  EXPECT_EQ(again.read(reader, at(2s).wall).error(), Errc::corrupt);
  EXPECT_EQ(again.damaged(), 1U);
}

// A life with times to live that ends at each of its writes. `live`, `over`: the messages that the store acknowledged.
struct Life {
  std::set<std::uint64_t> live;
  std::set<std::uint64_t> over;
  bool has_keys = false;
};

void live_until_the_end(TestDisk& disk, Life& life) {
  auto opened = Store::open({"store.db", disk.name()}, at(0s));
  if (!opened) {
    return;
  }
  Store& store = **opened;
  StreamSettings latest;
  latest.keep = Keep::latest;
  const auto log = store.declare("log", {}, false, at(0s));
  const auto keys = store.declare("keys", latest, false, at(0s));
  if (!log || !keys) {
    return;
  }
  const std::string body(300, 'x');
  for (int turn = 0; turn < 3; ++turn) {
    Life more;
    for (int i = 0; i < 4; ++i) {
      const bool ends = i != turn;
      const auto appended = store.append(
          **log, {.topic = "a", .body = as_bytes(body), .time_to_live = ends ? Duration(1s) : Duration(0)}, {}, at(0s));
      (ends ? more.over : more.live).insert(appended->sequence);
    }
    for (const char* key : {"k.1", "k.2"}) {
      (void)store.append(**keys, {.topic = key, .body = as_bytes(body), .time_to_live = 1s}, {}, at(0s));
    }
    if (store.commit(at(0s)).disk != Errc::ok) {
      return;
    }
    life.live.merge(more.live);
    life.over.merge(more.over);
    life.has_keys = true;
  }
  for (int turn = 0; turn < 5; ++turn) {
    if (store.commit(at(3s)).disk != Errc::ok) {
      return;
    }
  }
}

void check_after_the_end(TestDisk& disk, const Life& life) {
  auto opened = Store::open({"store.db", disk.name()}, at(3s));
  ASSERT_TRUE(opened) << opened.error().message();
  Store& store = **opened;
  StoredStream* const log = store.find("log");
  StoredStream* const keys = store.find("keys");
  if (log == nullptr || keys == nullptr) {
    return;
  }
  for (int pass = 0; pass < 2; ++pass) {  // before and after the removals
    std::set<std::uint64_t> all;
    StoredReader reader = *log->open_reader("", {}, at(3s).wall);
    for (auto message = log->read(reader, at(3s).wall); *message; message = log->read(reader, at(3s).wall)) {
      all.insert((*message)->message.sequence);
    }
    for (const std::uint64_t sequence : life.live) {
      EXPECT_TRUE(all.contains(sequence)) << "lost " << sequence;
    }
    for (const std::uint64_t sequence : life.over) {
      EXPECT_FALSE(all.contains(sequence)) << sequence << " is over";
    }
    EXPECT_TRUE(keys->topics_after("", 100, at(3s).wall)->topics.empty());
    for (int turn = 0; turn < 100 && store.has_work(at(3s)); ++turn) {
      ASSERT_EQ(store.commit(at(3s)).disk, Errc::ok);
    }
  }
  StoredReader watch = *keys->open_reader("", From::last_per_topic(), at(3s).wall);
  std::map<std::string, int> erasures;
  for (auto message = keys->read(watch, at(3s).wall); *message; message = keys->read(watch, at(3s).wall)) {
    EXPECT_TRUE((*message)->message.erased);
    ++erasures[std::string((*message)->message.topic)];
  }
  if (life.has_keys) {
    EXPECT_EQ(erasures, (std::map<std::string, int>{{"k.1", 1}, {"k.2", 1}}));
  }
  EXPECT_EQ(log->damaged() + keys->damaged(), 0U);
}

TEST(ExpiryCrash, AtEachWriteOfALifeThatEndsNothingComesBackAndNothingIsLost) {
  std::uint64_t operations = 0;
  {
    TestDisk disk;
    Life life;
    live_until_the_end(disk, life);
    ASSERT_EQ(life.live.size(), 3U);
    operations = disk.operations();
    check_after_the_end(disk, life);
  }
  ASSERT_GT(operations, 20U);
  for (std::uint64_t n = 1; n <= operations && !testing::Test::HasFailure(); ++n) {
    for (const bool loses_power : {false, true}) {
      SCOPED_TRACE("operation " + std::to_string(n) + (loses_power ? ", without power" : ""));
      TestDisk disk;
      Life life;
      disk.die_at(n);
      live_until_the_end(disk, life);
      loses_power ? disk.lose_power(n) : disk.restart();
      check_after_the_end(disk, life);
    }
  }
}

}  // namespace
}  // namespace weft::store

#endif
