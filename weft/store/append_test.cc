// SPDX-License-Identifier: MIT
// Batches: all of their messages are stored, or none.
#include <set>
#include <string>
#include <vector>

#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

class BatchTest : public StoreOnDisk {
 protected:
  Result<Appended> append_all(StoredStream& stream, const std::vector<BatchEntry>& entries, Duration since = 1s) {
    const auto appended = store_->append_all(stream, entries, at(since));
    EXPECT_EQ(store_->commit(at(since)).of(stream), Errc::ok);
    return appended;
  }
  static StreamSettings keeping(Keep keep, std::uint64_t bytes_max = 1ULL << 20U) {
    StreamSettings settings;
    settings.keep = keep;
    settings.bytes_max = bytes_max;
    settings.when_full = Discard::refuse;
    return settings;
  }
};

TEST_F(BatchTest, AllMessagesAreStoredWithConsecutiveSequences) {
  for (const Keep keep : {Keep::log, Keep::work, Keep::latest}) {
    StoredStream& stream = declare(keeping(keep), std::string(name_of(keep)));
    append(stream, {.topic = "a"});
    const auto appended = append_all(stream, {{{.topic = "b", .body = as_bytes("1")}},
                                              {{.topic = "c", .body = as_bytes("2"), .time_to_live = 5s}},
                                              {{.topic = "b", .body = as_bytes("3")}}});
    ASSERT_TRUE(appended) << appended.error().message();
    EXPECT_EQ(appended->sequence, 2U);
    EXPECT_EQ(stream.next(), 5U);
    EXPECT_EQ(as_text((*stream.message_at(4, kDay))->message.body), "3");
    EXPECT_FALSE(*stream.message_at(3, at(6s).wall));
  }
}

// The header of its block takes room, too.
TEST_F(BatchTest, AStreamThatRefusesIsFullBeforeItLosesAMessage) {
  constexpr std::uint64_t kBytes = 64 * 1024;
  for (std::size_t less = 0; less <= 48; ++less) {
    StoredStream& stream = declare(keeping(Keep::work, kBytes), "s" + std::to_string(less));
    ASSERT_TRUE(store_->consumer(stream, "c", {}, false));
    append(stream, {.topic = "t", .body = as_bytes(std::string(30'000, 'x'))});
    const std::string rest(kBytes - stream.bytes() - less, 'x');
    const auto last = store_->append(stream, {.topic = "t", .body = as_bytes(rest)}, {}, at(1s));
    ASSERT_EQ(last.has_value(), less >= 45) << less << ": the headers of a block and a message, and the topic";
    for (int turn = 0; turn < 3; ++turn) {
      ASSERT_EQ(store_->commit(at(2s)).disk, Errc::ok);
    }
    ASSERT_EQ(stream.evicted(), 0U) << less;
    ASSERT_EQ(stream.first(), 1U) << less;
  }
}

TEST_F(BatchTest, OneWrongMessageRefusesAll) {
  StreamSettings settings = keeping(Keep::log);
  settings.topics = {"s.>"};
  StoredStream& stream = declare(settings);
  append(stream, {.topic = "s.a", .id = "known"});
  const BatchEntry good{{.topic = "s.b", .id = "of the batch"}};
  const std::string large(kBodyMax + 1, 'x');
  const struct {
    BatchEntry entry;
    Errc error;
  } wrong[] = {
      {{{.topic = "other"}}, Errc::invalid_argument},
      {{{.topic = ""}}, Errc::invalid_argument},
      {{{.topic = "s.c", .time_to_live = 1ns}}, Errc::invalid_argument},
      {{{.topic = "s.c", .body = as_bytes(large)}}, Errc::message_too_large},
      {{{.topic = "s.a"}, {.last = 7}}, Errc::conflict},
      {{{.topic = "s.a"}, {.last = 1, .instance = 7}}, Errc::conflict},
      {{{.topic = "s.c", .id = "known"}}, Errc::conflict},
      {{{.topic = "s.b"}, {.last = 0}}, Errc::invalid_argument},  // after a message of its topic
  };
  for (const auto& [entry, error] : wrong) {
    EXPECT_EQ(append_all(stream, {good, entry}).error(), error);
    EXPECT_EQ(stream.next(), 2U);
    EXPECT_FALSE(stream.has_staged());
  }
  EXPECT_EQ(append_all(stream, {}).error(), Errc::invalid_argument);
  EXPECT_EQ(append_all(stream, {{{.topic = "s.b", .id = "x"}}, {{.topic = "s.c", .id = "x"}}}).error(),
            Errc::invalid_argument);
  EXPECT_EQ(append_all(stream, {{{.topic = "s.a"}, {.last = 1}}, {{.topic = "s.b"}, {.last = 0}}, {{.topic = "s.a"}}})
                ->sequence,
            2U);
}

TEST_F(BatchTest, ABatchThatComesAgainIsADuplicateAndAPartOfItAConflict) {
  StoredStream& stream = declare(keeping(Keep::log));
  const std::vector<BatchEntry> batch{
      {{.topic = "a", .id = "w"}}, {{.topic = "b", .id = "x"}}, {{.topic = "c", .id = "y"}}};
  EXPECT_EQ(append_all(stream, batch)->sequence, 1U);
  const auto again = append_all(stream, batch);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(again->sequence, 1U);
  EXPECT_EQ(append_all(stream, {{{.topic = "b", .id = "x"}}, {{.topic = "c", .id = "new"}}}).error(), Errc::conflict);
  EXPECT_EQ(append_all(stream, {{{.topic = "c", .id = "y"}}, {{.topic = "b", .id = "x"}}}).error(), Errc::conflict);
  EXPECT_EQ(stream.next(), 4U);
}

TEST_F(BatchTest, AFullStreamTakesAllOrNone) {
  const std::string body(1000, 'x');
  const std::vector<BatchEntry> batch(20, BatchEntry{{.topic = "a", .body = as_bytes(body)}});
  StoredStream& log = declare(keeping(Keep::log, 65'536), "log");
  while (append_all(log, batch)) {
  }
  EXPECT_EQ(append_all(log, batch).error(), Errc::resource_exhausted);
  EXPECT_EQ((log.next() - 1) % batch.size(), 0U);
  EXPECT_LE(log.bytes(), 65'536U);
  EXPECT_EQ(append_all(log, std::vector<BatchEntry>(70, batch[0])).error(), Errc::message_too_large);
  // A value takes the place of the one before.
  StoredStream& latest = declare(keeping(Keep::latest, 65'536), "latest");
  std::vector<BatchEntry> values;
  std::vector<std::string> keys;
  for (int i = 0; i < 55; ++i) {
    keys.push_back("k." + std::to_string(i));
  }
  for (const std::string& key : keys) {
    values.push_back({{.topic = key, .body = as_bytes(body)}});
  }
  for (int pass = 0; pass < 3; ++pass) {
    EXPECT_TRUE(append_all(latest, values));
    EXPECT_LE(latest.bytes(), 65'536U);
  }
}

TEST_F(BatchTest, ATurnThatFailsLeavesNone) {
  StoredStream& stream = declare(keeping(Keep::log));
  const std::vector<BatchEntry> batch(3, BatchEntry{{.topic = "a", .body = as_bytes("x")}});
  ASSERT_TRUE(store_->append_all(stream, batch, at(1s)));
  disk_.set_room(disk_.bytes());
  EXPECT_NE(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_EQ(stream.next(), 1U);
  disk_.set_room(~std::uint64_t{0});
  EXPECT_EQ(append_all(stream, batch)->sequence, 1U);
}

TEST(BatchCrash, AtEachWriteABatchIsThereInWholeOrNotAtAll) {
  const std::string body(5000, 'x');
  const std::vector<BatchEntry> batch(100, BatchEntry{{.topic = "a", .body = as_bytes(body)}});  // several blocks
  const auto live = [&](TestDisk& disk) {
    std::uint64_t acknowledged = 0;
    auto opened = Store::open({"store.db", disk.name()}, at(0s));
    const auto stream = opened ? (*opened)->declare("s", {}, false, at(0s)) : Result<StoredStream*>(opened.error());
    for (int i = 0; stream && i < 2; ++i) {
      EXPECT_TRUE((*opened)->append_all(**stream, batch, at(0s)));
      if ((*opened)->commit(at(0s)).disk != Errc::ok) {
        break;
      }
      acknowledged += batch.size();
    }
    return acknowledged;
  };
  TestDisk whole;
  ASSERT_EQ(live(whole), 200U);
  const std::uint64_t operations = whole.operations();
  for (std::uint64_t n = 1; n <= operations && !testing::Test::HasFailure(); n += 3) {
    SCOPED_TRACE("operation " + std::to_string(n));
    TestDisk disk;
    disk.die_at(n);
    const std::uint64_t acknowledged = live(disk);
    n % 2 == 0 ? disk.restart() : disk.lose_power(n);
    auto opened = Store::open({"store.db", disk.name()}, at(1s));
    ASSERT_TRUE(opened) << opened.error().message();
    if (StoredStream* const stream = (*opened)->find("s")) {
      EXPECT_EQ((stream->next() - 1) % batch.size(), 0U);
      EXPECT_GE(stream->next() - 1, acknowledged);
    }
  }
}

}  // namespace
}  // namespace weft::store

#endif
