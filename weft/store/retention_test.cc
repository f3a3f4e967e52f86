// SPDX-License-Identifier: MIT
// Retention and purges: which messages of a stream they leave.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"
#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

class RetentionTest : public StoreOnDisk {
 protected:
  static std::string read(StoredStream& stream, std::string_view filter = "") {
    StoredReader reader = *stream.open_reader(filter, {}, kDay);
    std::string all;
    for (auto message = stream.read(reader, kDay); *message; message = stream.read(reader, kDay)) {
      all += std::string(as_text((*message)->message.body)) + " ";
    }
    return all;
  }
};

TEST_F(RetentionTest, ABurstIntoASmallLogLeavesItsNewestMessages) {
  const std::string body(200, 'x');
  for (const std::uint64_t bytes_max : {65'536U, 131'072U, 204'800U}) {
    StreamSettings settings;
    settings.bytes_max = bytes_max;
    const std::string name = "s" + std::to_string(bytes_max);
    StoredStream& stream = declare(settings, name);
    for (int i = 0; i < 4000; ++i) {  // one turn
      ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1s)));
    }
    for (int turn = 0; turn < 100 && store_->has_work(at(1s)); ++turn) {
      ASSERT_EQ(store_->commit(at(1s)).of(stream), Errc::ok);
    }
    EXPECT_FALSE(store_->has_work(at(1s)));
    EXPECT_EQ(stream.next(), 4001U);
    EXPECT_LE(stream.bytes(), bytes_max);
    EXPECT_GE(stream.bytes(), bytes_max * 7 / 8);
    EXPECT_TRUE(*stream.message_at(4000, kDay));
  }
}

TEST_F(RetentionTest, TheLargestMessageOfAStreamIsKept) {
  StreamSettings settings;
  settings.bytes_max = 65'536;
  StoredStream& stream = declare(settings);
  const std::size_t most = 65'536 - kBlockHeader - BlockBuilder::size_of({.topic = "a"});
  const std::string body(most, 'x');
  for (std::uint64_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(append(stream, {.topic = "a", .body = as_bytes(body)}), i);
    EXPECT_FALSE(store_->has_work(at(1s)));
    EXPECT_EQ(stream.first(), i);
    EXPECT_TRUE(*stream.message_at(i, kDay));
  }
  const std::string longer(most + 1, 'x');
  EXPECT_EQ(store_->append(stream, {.topic = "a", .body = as_bytes(longer)}, {}, at(1s)).error(),
            Errc::message_too_large);
}

TEST_F(RetentionTest, APurgeLeavesNoMessageBeforeItsSequence) {
  StoredStream* stream = &declare({});
  for (int i = 1; i <= 100; ++i) {  // one turn, and one block
    const std::string topic = i <= 50 ? "old" : "new." + std::to_string(i);
    const std::string body = std::to_string(i);
    ASSERT_TRUE(store_->append(*stream, {.topic = topic, .id = body, .body = as_bytes(body)}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  StoredConsumer& consumer = **store_->consumer(*stream, "c", {}, false);
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(*store_->next_delivery(*stream, consumer, at(1s)));
  }
  StoredReader reader = *stream->open_reader("", {}, kDay);
  ASSERT_TRUE(*stream->read(reader, kDay));  // holds the block
  const std::uint64_t bytes = stream->bytes();
  ASSERT_TRUE(store_->purge_before(*stream, 91));
  EXPECT_EQ((*stream->read(reader, kDay))->message.sequence, 91U);
  EXPECT_EQ(consumer.state.waiting(), 10U);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_EQ(stream->first(), 91U);
    EXPECT_EQ(stream->next(), 101U);
    EXPECT_LT(stream->bytes(), bytes / 5);
    EXPECT_FALSE(*stream->message_at(90, kDay));
    EXPECT_EQ(read(*stream), "91 92 93 94 95 96 97 98 99 100 ");
    EXPECT_EQ(read(*stream, "new.100"), "100 ");
    EXPECT_EQ(read(*stream, "old"), "");
    EXPECT_EQ(stream->topics_after("", 200, kDay)->topics.size(), 10U);
    EXPECT_TRUE(store_->append(*stream, {.topic = "new.5", .id = "5"}, {}, at(1s))->duplicate);
    open(2s);
    stream = store_->find("s");
  }
  ASSERT_TRUE(store_->purge_before(*stream, 91));
  EXPECT_EQ(stream->first(), 91U);
  ASSERT_TRUE(store_->purge_before(*stream, 1000));
  EXPECT_EQ(stream->first(), 101U);
  EXPECT_EQ(stream->bytes(), 0U);
  EXPECT_EQ(append(*stream, {.topic = "a"}), 101U);
}

TEST_F(RetentionTest, APurgeOfManyMessagesHoldsAtOnceAndTakesTheirRowsInParts) {
  for (const Keep keep : {Keep::log, Keep::latest}) {
    StreamSettings settings;
    settings.keep = keep;
    const std::string name = keep == Keep::log ? "log" : "latest";
    StoredStream* stream = &declare(settings, name);
    constexpr int kCount = 1000;
    for (int i = 1; i <= kCount; ++i) {
      append(*stream, {.topic = "t." + std::to_string(i), .body = as_bytes(std::string(100, 'x'))});
    }
    append(*stream, {.topic = "t.1", .body = as_bytes("new")});
    StoredReader reader = *stream->open_reader("", {}, kDay);
    ASSERT_TRUE(*stream->read(reader, kDay));
    ASSERT_TRUE(store_->purge_before(*stream, 901));
    EXPECT_TRUE(stream->has_purged_rows());
    EXPECT_EQ((*stream->read(reader, kDay))->message.sequence, 901U);
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(stream->first(), 901U);
      EXPECT_FALSE(*stream->message_at(900, kDay));
      EXPECT_FALSE(*stream->newest_of("t.900", kDay));
      EXPECT_TRUE(*stream->newest_of("t.901", kDay));
      EXPECT_EQ(stream->topics_after("", 10'000, kDay)->topics.size(), 101U);
      EXPECT_EQ((*stream->read(reader = *stream->open_reader("", {}, kDay), kDay))->message.sequence, 901U);
      EXPECT_EQ(append(*stream, {.topic = "t.5"}, 1s, {.absent = true}), 1002U + static_cast<unsigned>(pass));
      ASSERT_TRUE(store_->purge_topic(*stream, "t.5") || keep == Keep::log);
      if (keep == Keep::log) {
        break;  // a log keeps t.5
      }
      open(2s);
      stream = store_->find(name);
      ASSERT_TRUE(stream->has_purged_rows());
    }
    int commits = 0;
    for (; store_->has_work(at(2s)); ++commits) {
      ASSERT_EQ(store_->commit(at(2s)).disk, Errc::ok);
    }
    EXPECT_GE(commits, 8);
    EXPECT_FALSE(stream->has_purged_rows());
    EXPECT_LT(stream->bytes(), 110U * 200);
    EXPECT_EQ(stream->evicted(), 0U);
    open(3s);
    EXPECT_EQ(store_->find(name)->first(), 901U);
  }
}

TEST_F(RetentionTest, StreamsWhoseMessagesAgeAtOnceShareTheBoundOfACommit) {
  constexpr std::uint64_t kStreams = 8;
  constexpr std::uint64_t kMessages = 20;
  StreamSettings settings;
  settings.age_max = 10s;
  std::vector<StoredStream*> streams;
  for (std::uint64_t i = 0; i < kStreams; ++i) {
    streams.push_back(&declare(settings, std::to_string(i)));
    for (std::uint64_t message = 0; message < kMessages; ++message) {
      append(*streams.back(), {.topic = "a"});
    }
  }
  const auto left = [&] {
    std::uint64_t count = 0;
    for (const StoredStream* stream : streams) {
      count += stream->next() - stream->first();
    }
    return count;
  };
  for (std::uint64_t before = left(); before != 0; before = left()) {
    ASSERT_TRUE(store_->has_work(at(100s)));
    ASSERT_EQ(store_->commit(at(100s)).disk, Errc::ok);
    ASSERT_LT(left(), before);
    EXPECT_LE(before - left(), StoredStream::kDropsPerCommit);
  }
}

class TopicRowsTest : public StoreOnDisk {
 protected:
  static constexpr int kBlocks = 20;
  static constexpr int kTopics = 500;  // of each block

  void fill(StoredStream& stream) {
    for (int block = 0; block < kBlocks; ++block) {
      for (int topic = 0; topic < kTopics; ++topic) {
        ASSERT_TRUE(store_->append(stream, {.topic = "t." + std::to_string(topic)}, {}, at(1s)));
      }
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
  }
  // Commits until nothing is left to do. Returns the most bytes that left with one.
  std::uint64_t commit_all(StoredStream& stream) {
    std::uint64_t most = 0;
    while (store_->has_work(at(1s))) {
      const std::uint64_t before = stream.bytes();
      EXPECT_EQ(store_->commit(at(1s)).disk, Errc::ok);
      most = std::max(most, before - stream.bytes());
    }
    return most;
  }
  // The bytes of the blocks whose topics a commit removes.
  static std::uint64_t most_of(std::uint64_t bytes) {
    return bytes / kBlocks * (StoredStream::kDropTopicsPerCommit / kTopics + 1);
  }
};

TEST_F(TopicRowsTest, APurgeOfBlocksWithManyTopicsTakesFewOfThemInACommit) {
  StoredStream& stream = declare({});
  fill(stream);
  const std::uint64_t bytes = stream.bytes();
  ASSERT_TRUE(store_->purge_before(stream, stream.next()));
  EXPECT_LE(bytes - stream.bytes(), most_of(bytes));
  EXPECT_LE(commit_all(stream), most_of(bytes));
  EXPECT_EQ(stream.bytes(), 0U);
}

TEST_F(TopicRowsTest, FinishedJobsOfManyTopicsMakeRoomInSeveralCommits) {
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.when_full = Discard::refuse;
  StoredStream& stream = declare(settings);
  fill(stream);
  const std::uint64_t bytes = stream.bytes();
  settings.bytes_max = bytes + bytes / kBlocks;
  ASSERT_TRUE(store_->declare("s", settings, true, at(1s)));
  StoredConsumer& consumer = **store_->consumer(stream, "c", {.ack_wait = 1h}, false);
  for (std::uint64_t job = 1; job < stream.next(); ++job) {
    ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(1s)));
    EXPECT_TRUE(job == 1 || store_->ack(consumer, job, false));
  }
  EXPECT_LE(commit_all(stream), most_of(bytes) + bytes / kBlocks);
  EXPECT_LT(stream.bytes(), settings.bytes_max / 8 * 7) << "as far as it must";
}

TEST_F(RetentionTest, AFullTableOfTheLatestRefusesNewKeysAndTakesNewValuesAndErasures) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.when_full = Discard::refuse;
  settings.bytes_max = 65'536;
  StoredStream& stream = declare(settings);
  const std::string body(1000, 'x');
  int keys = 0;
  for (;; ++keys) {  // in one turn
    const std::string topic = "k." + std::to_string(100 + keys);
    const auto appended = store_->append(stream, {.topic = topic, .body = as_bytes(body)}, {}, at(1s));
    if (!appended) {
      EXPECT_EQ(appended.error(), Errc::resource_exhausted);
      break;
    }
  }
  EXPECT_GT(keys, 55);
  for (int i = 0; i < 200; ++i) {  // values that take the place of others, of this turn and of earlier ones
    ASSERT_TRUE(store_->append(stream, {.topic = "k.100", .body = as_bytes(body)}, {}, at(1s))) << i;
    if (i == 100) {
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_LE(stream.bytes(), 65'536U);
  EXPECT_EQ(stream.topics_after("", 1000, kDay)->topics.size(), static_cast<std::size_t>(keys));
  EXPECT_EQ(store_->append(stream, {.topic = "k.999", .body = as_bytes(body)}, {}, at(1s)).error(),
            Errc::resource_exhausted);
  append(stream, {.topic = "k.101", .erased = true});
  append(stream, {.topic = "k.102", .erased = true});
  append(stream, {.topic = "k.999", .body = as_bytes(body)});
  EXPECT_EQ(stream.evicted(), 0U);
}

TEST_F(RetentionTest, AKeyThatIsDroppedForRoomIsErasedAndCounted) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.bytes_max = 65'536;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1000}}) {
    const std::string body(size, 'x');
    StoredStream& stream = declare(settings, "s" + std::to_string(size));
    StoredReader reader = *stream.open_reader("", {}, kDay);
    std::map<std::string, bool> told;  // topic: it has a value
    constexpr int kKeys = 3000;
    for (int i = 0; i < kKeys; ++i) {
      const std::string topic = "k." + std::to_string(i);
      ASSERT_TRUE(store_->append(stream, {.topic = topic, .body = as_bytes(body)}, {}, at(1s)));
      if (i % 10 == 9) {
        do {
          ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
          for (auto message = stream.read(reader, kDay); *message; message = stream.read(reader, kDay)) {
            told[std::string((*message)->message.topic)] = !(*message)->message.erased;
          }
        } while (store_->has_work(at(1s)));
        ASSERT_LE(stream.bytes(), 65'536U);
      }
    }
    const std::vector<TopicPage::Entry> live = stream.topics_after("", std::size_t{10} * kKeys, kDay)->topics;
    EXPECT_GE(live.size() * (size + 60), 65'536U * 3 / 4) << "erasures push out no values";
    EXPECT_EQ(stream.evicted(), kKeys - live.size());
    EXPECT_EQ(std::count_if(told.begin(), told.end(), [](const auto& each) { return each.second; }),
              static_cast<std::ptrdiff_t>(live.size()));
  }
  EXPECT_EQ(store_->counts().evicted, store_->find("s0")->evicted() + store_->find("s1000")->evicted());
}

TEST_F(RetentionTest, JobsThatAreDroppedForRoomAreCountedUnlessTheyWereAcknowledged) {
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.bytes_max = 65'536;
  StoredStream& stream = declare(settings);
  StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
  const std::string body(8000, 'x');
  for (int i = 0; i < 8; ++i) {
    append(stream, {.topic = "a", .body = as_bytes(body)});
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(1s)));
  }
  EXPECT_TRUE(store_->ack(consumer, 2, false));
  for (int i = 0; i < 5; ++i) {
    append(stream, {.topic = "a", .body = as_bytes(body)});
  }
  EXPECT_EQ(stream.first(), 6U);
  EXPECT_EQ(stream.evicted(), 4U) << "1, 3, and 4 and 5, which nobody had got";
  EXPECT_EQ(stream.dropped_unread(), 4U);
}

TEST_F(RetentionTest, FinishedJobsBehindOneThatIsNotMakeRoomForOthers) {
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.when_full = Discard::refuse;
  settings.bytes_max = 256 * 1024;
  StoredStream* stream = &declare(settings);
  ASSERT_TRUE(store_->consumer(*stream, "c", {}, false));
  const std::string body(2000, 'x');
  std::uint64_t stored = 0;
  const auto fill = [&] {
    while (store_->append(*stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1s))) {
      ++stored;
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
  };
  fill();
  for (int pass = 0; pass < 3; ++pass) {
    StoredConsumer& consumer = *stream->find_consumer("c");
    for (auto job = *store_->next_delivery(*stream, consumer, at(1s)); job;
         job = *store_->next_delivery(*stream, consumer, at(1s))) {
      if (job->read.message.sequence != 1 && job->read.message.sequence != 50) {
        EXPECT_TRUE(store_->ack(consumer, job->read.message.sequence, true));
      }
    }
    int commits = 0;
    for (; store_->has_work(at(1s)) && commits < 50; ++commits) {
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
    ASSERT_LT(commits, 50);
    EXPECT_EQ(stream->first(), 1U);
    EXPECT_TRUE(*stream->message_at(50, kDay));
    EXPECT_FALSE(*stream->message_at(51, kDay));
    const std::uint64_t before = stored;
    fill();
    EXPECT_GE(stored - before, 120U);
    open(2s);
    stream = store_->find("s");
    EXPECT_EQ(stream->next(), stored + 1);
    const auto again = *store_->next_delivery(*stream, *stream->find_consumer("c"), at(60s));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->read.message.sequence, 1U);
  }
  EXPECT_EQ(stream->evicted(), 0U);
}

TEST_F(RetentionTest, JobsThatEarlierLivesFinishedMakeRoom) {
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.when_full = Discard::refuse;
  settings.bytes_max = 256 * 1024;
  ASSERT_TRUE(store_->consumer(declare(settings), "c", {}, false));
  const std::string body(2000, 'x');
  for (int life = 0; life < 100; ++life) {  // few jobs each, and the first one never ends
    StoredStream& stream = *store_->find("s");
    while (store_->has_work(at(1s))) {
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
    for (int i = 0; i < 4; ++i) {
      const auto stored = store_->append(stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1s));
      ASSERT_TRUE(stored) << "life " << life << ": " << stored.error().message();
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
    StoredConsumer& consumer = *stream.find_consumer("c");
    for (auto job = *store_->next_delivery(stream, consumer, at(1s)); job;
         job = *store_->next_delivery(stream, consumer, at(1s))) {
      EXPECT_TRUE(job->read.message.sequence == 1 || store_->ack(consumer, job->read.message.sequence, true));
    }
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    open(1s);
  }
  EXPECT_EQ(store_->find("s")->first(), 1U);
}

// The unfinished ones before them are more than a commit reads.
TEST_F(RetentionTest, JobsFinishedFarBehindMakeRoomInLivesOfOneCommit) {
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.bytes_max = 128 * 1024;
  StoredStream& stream = declare(settings);
  StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
  const std::string body(100, 'x');
  while (stream.bytes() < settings.bytes_max / 16 * 15) {  // a block each
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1s)));
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  }
  const std::uint64_t middle = stream.next() / 2;
  ASSERT_GT(middle, StoredStream::kSweepRows);
  for (auto job = *store_->next_delivery(stream, consumer, at(1s)); job;
       job = *store_->next_delivery(stream, consumer, at(1s))) {
    ASSERT_TRUE(job->read.message.sequence < middle || store_->ack(consumer, job->read.message.sequence, true));
  }
  const std::uint64_t swept_below = settings.bytes_max / 8 * 7;
  for (int life = 0; life < 40; ++life) {
    ASSERT_EQ(store_->commit(at(1s + std::chrono::milliseconds(life))).disk, Errc::ok);
    ASSERT_TRUE(life != 0 || store_->find("s")->bytes() >= swept_below);
    open(1s + std::chrono::milliseconds(life));
  }
  EXPECT_LT(store_->find("s")->bytes(), swept_below);
}

// A program that is killed soon after each start must get beyond the first commit.
TEST_F(RetentionTest, ACommitRemovesFewFinishedJobsAtOnce) {
  constexpr std::uint64_t kBlockMost = 1100;
  StreamSettings settings;
  settings.keep = Keep::work;
  settings.bytes_max = 256 * 1024;
  StoredStream& stream = declare(settings);
  StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
  const std::string body(1000, 'x');
  while (stream.bytes() < settings.bytes_max / 16 * 15) {  // a block each
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes(body)}, {}, at(1s)));
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  }
  for (auto job = *store_->next_delivery(stream, consumer, at(1s)); job;
       job = *store_->next_delivery(stream, consumer, at(1s))) {
    ASSERT_TRUE(job->read.message.sequence == 1 || store_->ack(consumer, job->read.message.sequence, true));
  }
  const std::uint64_t full = stream.bytes();
  do {
    const std::uint64_t before = stream.bytes();
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    EXPECT_LE(before - stream.bytes(), StoredStream::kDropsPerCommit * kBlockMost);
  } while (store_->has_work(at(1s)));
  EXPECT_LT(stream.bytes(), full - StoredStream::kDropsPerCommit * kBlockMost / 4);
}

TEST_F(RetentionTest, AJobThatTakesLongLeavesTheStoreNothingToDo) {
  StreamSettings settings;
  settings.keep = Keep::work;
  StoredStream& stream = declare(settings);
  for (int i = 0; i < 100; ++i) {  // one block
    ASSERT_TRUE(store_->append(stream, {.topic = "a"}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(*store_->next_delivery(stream, consumer, at(1s)));
    EXPECT_TRUE(i > 50 || store_->ack(consumer, i, false));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_FALSE(store_->has_work(at(1s))) << "the block has messages that wait";
  for (std::uint64_t i = 51; i <= 100; ++i) {
    EXPECT_TRUE(store_->ack(consumer, i, false));
  }
  while (store_->has_work(at(1s))) {
    ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  }
  EXPECT_EQ(stream.bytes(), 0U);
}

// A stream that is full of small messages, and takes larger ones or more of them. Each round is a commit.
struct Replacement {
  const char* name;
  Keep keep;
  int small_ones;
  int small_per_commit;
  int per_round;
  std::size_t body;
};

class ReplacementTest : public StoreOnDisk, public testing::WithParamInterface<Replacement> {};

TEST_P(ReplacementTest, AsManyBytesLeaveAFullStreamAsCome) {
  const Replacement& shape = GetParam();
  StreamSettings settings;
  settings.keep = shape.keep;
  StoredStream& stream = declare(settings);
  int topics = 0;
  const auto commit_some = [&](int count, const std::string& body) {
    for (int i = 0; i < count; ++i) {
      const std::string topic = "t." + std::to_string(++topics);
      ASSERT_TRUE(store_->append(stream, {.topic = topic, .body = as_bytes(body)}, {}, at(1s)));
    }
    ASSERT_EQ(store_->commit(at(1s)).of(stream), Errc::ok);
  };
  while (topics < shape.small_ones) {
    ASSERT_NO_FATAL_FAILURE(commit_some(shape.small_per_commit, ""));
  }
  settings.bytes_max = stream.bytes();
  ASSERT_TRUE(store_->declare("s", settings, true, at(1s)));
  const std::string body(shape.body, 'x');
  const std::uint64_t round = shape.per_round * (shape.body + 100);
  for (int i = 0; i < 12; ++i) {
    ASSERT_NO_FATAL_FAILURE(commit_some(shape.per_round, body));
    // The erasures of a table's dropped keys are as large as small values, and leave with the next commit.
    ASSERT_LE(stream.bytes(), settings.bytes_max + 2 * round) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ReplacementTest,
                         testing::Values(Replacement{"BlocksOfManyTopics", Keep::log, 60'000, 1000, 1, 600'000},
                                         Replacement{"SmallBlocks", Keep::log, 2000, 1, 1, 16'000},
                                         Replacement{"SmallValues", Keep::latest, 4000, 1000, 1, 16'000},
                                         Replacement{"ManySmallValues", Keep::latest, 4000, 1000, 1000, 0}),
                         [](const auto& shape) { return std::string(shape.param.name); });

// A purge removes messages of one life of the stream, and a sequence counts in one life.
class InstanceTest : public StoreOnDisk {};

TEST_F(InstanceTest, EachLifeOfAStreamHasANumberOfItsOwnAlsoInAnotherFile) {
  TestDisk other_disk;
  auto other = Store::open({"store.db", other_disk.name()}, at(1s));
  ASSERT_TRUE(other);
  std::set<std::uint64_t> lives;
  for (const Survives survives : {Survives::power, Survives::nothing}) {
    StreamSettings settings;
    settings.survives = survives;
    for (Store* store : {store_.get(), store_.get(), other->get()}) {
      StoredStream& stream = **store->declare("s", settings, false, at(1s));
      EXPECT_TRUE(lives.insert(store->instance_of(stream)).second);
      ASSERT_TRUE(store->remove("s"));
    }
  }
  const std::uint64_t kept = store_->instance_of(declare({}));
  open(2s);
  EXPECT_EQ(store_->instance_of(*store_->find("s")), kept);
}

// Regression: a disk that was full at the first open, and had room for a stream later.
TEST_F(InstanceTest, ALifeThatBeganOnAFullDiskOutlivesTheHub) {
  bool had_no_room = false;
  for (std::uint64_t room = 0; room < 1U << 20U; room += kSanitized ? 3 * 4096 : 4096) {
    TestDisk disk;
    disk.set_room(room);
    const auto open_at = [&disk](Duration since) { return Store::open({"store.db", disk.name()}, at(since)); };
    auto store = open_at(1s);
    if (!store) {
      had_no_room = true;
      continue;
    }
    disk.set_room(~std::uint64_t{0});
    const std::uint64_t life = (*store)->instance_of(**(*store)->declare("s", {}, false, at(1s)));
    (*store).reset();
    store = open_at(2s);
    ASSERT_TRUE(store);
    EXPECT_EQ((*store)->instance_of(*(*store)->find("s")), life) << room << " bytes";
  }
  EXPECT_TRUE(had_no_room);
}

TEST_F(InstanceTest, ASequenceOfAnotherLifeOfTheStreamIsAConflict) {
  StoredStream* stream = &declare({});
  const std::uint64_t life = store_->instance_of(*stream);
  EXPECT_EQ(append(*stream, {.topic = "a"}), 1U);
  EXPECT_EQ(append(*stream, {.topic = "a", .id = "two"}, 1s, {.last = 1, .instance = life}), 2U);
  ASSERT_TRUE(store_->remove("s"));
  stream = &declare({});
  EXPECT_EQ(append(*stream, {.topic = "a"}), 1U);
  EXPECT_EQ(store_->append(*stream, {.topic = "a"}, {.last = 1, .instance = life}, at(1s)).error(), Errc::conflict);
  EXPECT_EQ(store_->purge_before(*stream, 2, life).error(), Errc::conflict);
  EXPECT_EQ(append(*stream, {.topic = "b"}, 1s, {.last = 0, .instance = life}), 2U);
  EXPECT_EQ(append(*stream, {.topic = "a"}, 1s, {.last = 1}), 3U);
  EXPECT_TRUE(store_->purge_before(*stream, 2, store_->instance_of(*stream)));
  EXPECT_EQ(stream->first(), 2U);
}

}  // namespace
}  // namespace weft::store

#endif
