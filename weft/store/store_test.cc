// SPDX-License-Identifier: MIT
#include "weft/store/store.h"

#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/store/test_store.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE

namespace weft::store {
namespace {

using namespace std::chrono_literals;

class StoreTest : public StoreOnDisk {
 protected:
  Error refused(StoredStream& stream, const NewMessage& message, const Expect& expect = {}) {
    return store_->append(stream, message, expect, at(1s)).error();
  }
  static std::string read(StoredStream& stream, std::string_view filter = "", const From& from = {}) {
    auto reader = stream.open_reader(filter, from, kDay);
    EXPECT_TRUE(reader) << reader.error().message();
    std::string all;
    for (;;) {
      const auto message = stream.read(*reader, kDay);
      EXPECT_TRUE(message) << message.error().message();
      if (!message || !*message) {
        return all;
      }
      const StoredMessage& found = (*message)->message;
      all += std::to_string(found.sequence) + (found.erased ? "-" : "") + ":" + std::string(as_text(found.body)) + " ";
    }
  }
  std::vector<std::uint64_t> deliver(StoredStream& stream, StoredConsumer& consumer, Duration since) {
    std::vector<std::uint64_t> all;
    for (;;) {
      const auto delivery = store_->next_delivery(stream, consumer, at(since));
      EXPECT_TRUE(delivery) << delivery.error().message();
      if (!delivery || !*delivery) {
        return all;
      }
      all.push_back((*delivery)->read.message.sequence);
    }
  }
};

using Sequences = std::vector<std::uint64_t>;

TEST_F(StoreTest, AMessageIsReadAfterItsCommitAndNotBefore) {
  StoredStream& stream = declare({});
  ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes("one")}, {}, at(1s)));
  EXPECT_EQ(read(stream), "");
  EXPECT_TRUE(store_->has_work(at(1s)));
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_FALSE(store_->has_work(at(1s)));
  EXPECT_EQ(read(stream), "1:one ");
}

TEST_F(StoreTest, AReaderBeginsWhereItIsTold) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a.x", .body = as_bytes("1")}, 1s);
  append(stream, {.topic = "b.x", .body = as_bytes("2")}, 2s);
  append(stream, {.topic = "a.x", .body = as_bytes("3")}, 3s);
  append(stream, {.topic = "c.x", .body = as_bytes("4")}, 4s);
  for (int pass = 0; pass < 2; ++pass) {  // from the cache, then from the file
    StoredStream& s = *store_->find("s");
    EXPECT_EQ(read(s), "1:1 2:2 3:3 4:4 ");
    EXPECT_EQ(read(s, "", From::last()), "4:4 ");
    EXPECT_EQ(read(s, "", From::next()), "");
    EXPECT_EQ(read(s, "", From::sequence(3)), "3:3 4:4 ");
    EXPECT_EQ(read(s, "", From::sequence(99)), "");
    EXPECT_EQ(read(s, "", From::time(kDay + 2s)), "2:2 3:3 4:4 ");
    EXPECT_EQ(read(s, "", From::time(kDay + 5s)), "");
    EXPECT_EQ(read(s, "", From::last_per_topic()), "2:2 3:3 4:4 ");
    EXPECT_EQ(read(s, "a.*"), "1:1 3:3 ");
    EXPECT_EQ(read(s, "a.>", From::last()), "3:3 ");
    EXPECT_EQ(read(s, "b.x", From::last_per_topic()), "2:2 ");
    EXPECT_EQ(read(s, "nobody"), "");
    EXPECT_EQ(s.open_reader("a.*x", {}, kDay).error(), Errc::invalid_argument);
    open(5s);
  }
}

TEST_F(StoreTest, AnIdIsStoredOnceWithinItsWindowAlsoAfterAnOpen) {
  StreamSettings settings;
  settings.same_id_window = 10s;
  StoredStream& stream = declare(settings);
  EXPECT_EQ(append(stream, {.topic = "a", .id = "x"}, 1s), 1U);
  EXPECT_EQ(append(stream, {.topic = "a", .id = "x"}, 2s), 1U);
  const auto twice = store_->append(stream, {.topic = "a", .id = "y"}, {}, at(3s));
  const auto again = store_->append(stream, {.topic = "a", .id = "y"}, {}, at(3s));
  EXPECT_FALSE(twice->duplicate);
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(again->sequence, twice->sequence);
  ASSERT_EQ(store_->commit(at(3s)).disk, Errc::ok);
  open(4s);
  EXPECT_TRUE(store_->append(*store_->find("s"), {.topic = "a", .id = "x"}, {}, at(4s))->duplicate);
  append(*store_->find("s"), {.topic = "a"}, 12s);
  EXPECT_FALSE(store_->append(*store_->find("s"), {.topic = "a", .id = "x"}, {}, at(12s))->duplicate);
  EXPECT_TRUE(store_->append(*store_->find("s"), {.topic = "a", .id = "y"}, {}, at(12s))->duplicate);
}

// Each way in which a message leaves within the window of its id.
TEST_F(StoreTest, AnIdIsKnownAfterAnOpenWhenANewerValueTookItsMessage) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  StoredStream& stream = declare(settings);
  EXPECT_EQ(append(stream, {.topic = "k", .id = "h-1", .body = as_bytes("old")}), 1U);
  EXPECT_EQ(append(stream, {.topic = "k", .id = "h-2", .body = as_bytes("new")}), 2U);
  open(2s);
  StoredStream& again = *store_->find("s");
  EXPECT_EQ(append(again, {.topic = "k", .id = "h-1", .body = as_bytes("old")}, 2s), 1U);
  EXPECT_EQ(append(again, {.topic = "k", .id = "h-2", .body = as_bytes("new")}, 2s), 2U);
  EXPECT_EQ(read(again), "2:new ");
  ASSERT_TRUE(store_->purge_topic(again, "k"));
  open(3s);
  EXPECT_EQ(append(*store_->find("s"), {.topic = "k", .id = "h-2"}, 3s), 2U);
  EXPECT_EQ(read(*store_->find("s")), "");
}

TEST_F(StoreTest, AnIdIsKnownAfterAnOpenWhenAnAcknowledgementTookItsMessage) {
  StreamSettings settings;
  settings.keep = Keep::work;
  StoredStream& stream = declare(settings);
  const auto consumer = store_->consumer(stream, "c", {}, false);
  ASSERT_TRUE(consumer);
  append(stream, {.topic = "job", .id = "job-1"});
  append(stream, {.topic = "job", .id = "job-2"});
  for (const std::uint64_t sequence : deliver(stream, **consumer, 1s)) {
    EXPECT_TRUE(store_->ack(**consumer, sequence, true));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  ASSERT_EQ(stream.first(), 3U);
  open(2s);
  StoredStream& again = *store_->find("s");
  EXPECT_TRUE(store_->append(again, {.topic = "job", .id = "job-1"}, {}, at(2s))->duplicate);
  EXPECT_TRUE(store_->append(again, {.topic = "job", .id = "job-2"}, {}, at(2s))->duplicate);
  ASSERT_EQ(store_->commit(at(2s)).disk, Errc::ok);
  EXPECT_EQ(deliver(again, *again.find_consumer("c"), 2s), Sequences{});
}

TEST_F(StoreTest, AnIdIsKnownAfterAnOpenWhenRetentionOrAPurgeTookItsMessage) {
  StreamSettings settings;
  settings.age_max = 1s;
  StoredStream& stream = declare(settings);
  append(stream, {.topic = "a", .id = "x"}, 1s);
  append(stream, {.topic = "a", .id = "y"}, 4s);  // x is older than a second
  ASSERT_EQ(stream.first(), 2U);
  ASSERT_TRUE(store_->purge_before(stream, 3));
  open(5s);
  EXPECT_EQ(append(*store_->find("s"), {.topic = "a", .id = "x"}, 5s), 1U);
  EXPECT_EQ(append(*store_->find("s"), {.topic = "a", .id = "y"}, 5s), 2U);
  EXPECT_EQ(append(*store_->find("s"), {.topic = "a", .id = "z"}, 5s), 3U);
}

TEST_F(StoreTest, ACompareAndSetThatIsSentAgainGetsItsFirstAnswer) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  StoredStream& stream = declare(settings);
  EXPECT_EQ(append(stream, {.topic = "k", .id = "1"}, 1s, {.last = 0}), 1U);
  EXPECT_EQ(append(stream, {.topic = "k", .id = "2"}, 1s, {.last = 1}), 2U);
  for (int pass = 0; pass < 2; ++pass) {
    StoredStream& s = *store_->find("s");
    EXPECT_EQ(append(s, {.topic = "k", .id = "1"}, 2s, {.last = 0}), 1U);
    EXPECT_EQ(append(s, {.topic = "k", .id = "2"}, 2s, {.last = 1}), 2U);
    EXPECT_EQ(append(s, {.topic = "k", .id = "1"}, 2s, {.absent = true}), 1U);
    EXPECT_EQ(refused(s, {.topic = "k", .id = "3"}, {.last = 1}), Errc::conflict);
    open(2s);
  }
}

TEST_F(StoreTest, TheRowsOfIdsGoWithTheWindowAndWithTheStream) {
  StreamSettings settings;
  settings.same_id_window = 2s;
  StoredStream* stream = &declare(settings);
  const std::string id(200, 'i');
  std::uint64_t size = 0;
  for (int i = 0; i < 3000; ++i) {
    append(*stream, {.topic = "a", .id = id + std::to_string(i)}, std::chrono::milliseconds(100 * i));
    ASSERT_TRUE(store_->purge_before(*stream, stream->next()));
    if (i == 1500) {
      size = disk_.files().at("store.db")->live.size();
    }
  }
  EXPECT_LE(disk_.files().at("store.db")->live.size(), size + 65'536);
  ASSERT_TRUE(store_->remove("s"));
  stream = &declare(settings);
  EXPECT_FALSE(store_->append(*stream, {.topic = "a", .id = id + "2999"}, {}, at(300s))->duplicate);
}

TEST_F(StoreTest, AnIdOfAFailedCommitIsNotADuplicate) {
  StoredStream& stream = declare({});
  disk_.set_room(disk_.bytes());
  ASSERT_TRUE(store_->append(stream, {.topic = "a", .id = "x", .body = as_bytes("1")}, {}, at(1s)));
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::resource_exhausted);
  disk_.set_room(1 << 30);
  EXPECT_EQ(append(stream, {.topic = "a", .id = "x", .body = as_bytes("2")}), 1U);
  EXPECT_EQ(read(stream), "1:2 ");
}

TEST_F(StoreTest, ADiskThatTakesNoWritesIsReadAndIsNoBrokenOne) {
  StoredStream& stream = declare({});
  EXPECT_EQ(append(stream, {.topic = "a", .body = as_bytes("1")}), 1U);
  for (const auto& [refusal, error] :
       {std::pair{EROFS, Errc::not_permitted}, std::pair{EDQUOT, Errc::resource_exhausted}}) {
    disk_.refuse_writes(refusal);
    ASSERT_TRUE(store_->append(stream, {.topic = "a", .body = as_bytes("refused")}, {}, at(1s)));
    EXPECT_EQ(store_->commit(at(1s)).disk, error);
    EXPECT_EQ(read(stream), "1:1 ");
    disk_.refuse_writes(0);
  }
  EXPECT_EQ(append(stream, {.topic = "a", .body = as_bytes("2")}), 2U);
  EXPECT_EQ(read(stream), "1:1 2:2 ");
}

TEST_F(StoreTest, AnExpectedSequenceThatDiffersIsAConflictAlsoWithinATurn) {
  StoredStream& stream = declare({});
  EXPECT_EQ(append(stream, {.topic = "a"}, 1s, {.last = 0}), 1U);
  EXPECT_EQ(refused(stream, {.topic = "a"}, {.last = 0}), Errc::conflict);
  EXPECT_EQ(append(stream, {.topic = "b"}, 1s, {.last = 0}), 2U);
  EXPECT_EQ(append(stream, {.topic = "a"}, 1s, {.last = 1}), 3U);
  ASSERT_TRUE(store_->append(stream, {.topic = "a"}, {.last = 3}, at(1s)));
  EXPECT_EQ(refused(stream, {.topic = "a"}, {.last = 3}), Errc::conflict);
  ASSERT_TRUE(store_->append(stream, {.topic = "a"}, {.last = 4}, at(1s)));
}

TEST_F(StoreTest, AStreamTakesOnlyItsTopicsAndOnlyTopicsOfTheRightForm) {
  StreamSettings settings;
  settings.topics = {"orders.>", "px.*"};
  StoredStream& stream = declare(settings);
  EXPECT_EQ(append(stream, {.topic = "orders.eu.1"}), 1U);
  EXPECT_EQ(refused(stream, {.topic = "orders"}), Errc::invalid_argument);
  EXPECT_EQ(refused(stream, {.topic = "px.a.b"}), Errc::invalid_argument);
  EXPECT_EQ(refused(stream, {.topic = "px..a"}), Errc::invalid_argument);
  EXPECT_EQ(refused(stream, {.topic = ""}), Errc::invalid_argument);
  EXPECT_EQ(store_->find_topic("px.a"), &stream);
  EXPECT_EQ(store_->find_topic("py.a"), nullptr);
}

TEST_F(StoreTest, ADeclarationWithOtherSettingsIsAConflictUnlessItSaysSo) {
  StreamSettings settings;
  declare(settings);
  settings.age_max = 1h;
  EXPECT_EQ(store_->declare("s", settings, false, at(0s)).error(), Errc::conflict);
  EXPECT_TRUE(store_->declare("s", settings, true, at(0s)));
  open(1s);
  EXPECT_TRUE(store_->declare("s", settings, false, at(0s)));
  settings.keep = Keep::latest;
  EXPECT_EQ(store_->declare("s", settings, true, at(0s)).error(), Errc::not_supported);
  EXPECT_EQ(store_->declare("a b", {}, false, at(0s)).error(), Errc::invalid_argument);
  settings = {};
  settings.survives = Survives::machine;
  EXPECT_EQ(store_->declare("m", settings, false, at(0s)).error(), Errc::not_supported);
}

TEST_F(StoreTest, AStreamThatIsRemovedIsGoneWithAllThatItHad) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a"});
  ASSERT_TRUE(store_->consumer(stream, "c", {}, false));
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  ASSERT_TRUE(store_->remove("s"));
  EXPECT_EQ(store_->remove("s").error(), Errc::not_found);
  open(1s);
  EXPECT_EQ(store_->find("s"), nullptr);
  StoredStream& again = declare({});
  EXPECT_EQ(read(again), "");
  EXPECT_EQ(append(again, {.topic = "a"}), 1U);
  EXPECT_EQ(again.find_consumer("c"), nullptr);
}

TEST_F(StoreTest, RetentionByBytesDropsTheOldestOrRefusesTheNewest) {
  const std::string body(8000, 'x');
  StreamSettings settings;
  settings.bytes_max = 65'536;
  StoredStream& oldest = declare(settings);
  settings.when_full = Discard::refuse;
  StoredStream& refuse = declare(settings, "refuse");
  for (int i = 0; i < 20; ++i) {
    append(oldest, {.topic = "a." + std::to_string(i), .body = as_bytes(body)});
  }
  EXPECT_LE(oldest.bytes(), 65'536U);
  EXPECT_EQ(oldest.first(), 13U);
  EXPECT_EQ(oldest.topics_after("", 100, kDay)->topics.size(), 8U);
  for (int i = 0; i < 8; ++i) {
    append(refuse, {.topic = "a", .body = as_bytes(body)});
  }
  EXPECT_EQ(refused(refuse, {.topic = "a", .body = as_bytes(body)}), Errc::resource_exhausted);
  EXPECT_EQ(refused(oldest, {.topic = "a", .body = as_bytes(std::string(70'000, 'x'))}), Errc::message_too_large);
  open(1s);
  EXPECT_EQ(store_->find("s")->first(), 13U);
  EXPECT_LE(store_->find("s")->bytes(), 65'536U);
}

TEST_F(StoreTest, RetentionByAgeDropsAndNoSequenceIsGivenTwice) {
  StreamSettings settings;
  settings.age_max = 10s;
  StoredStream& stream = declare(settings);
  append(stream, {.topic = "a"}, 1s);
  append(stream, {.topic = "a"}, 2s);
  EXPECT_FALSE(store_->has_work(at(11s)));
  EXPECT_TRUE(store_->has_work(at(11s + 1ns)));
  ASSERT_EQ(store_->commit(at(11s + 1ns)).disk, Errc::ok);
  EXPECT_EQ(stream.first(), 2U);
  ASSERT_EQ(store_->commit(at(60s)).disk, Errc::ok);
  EXPECT_EQ(read(stream), "");
  open(61s);
  EXPECT_EQ(append(*store_->find("s"), {.topic = "a"}, 61s), 3U);
}

TEST_F(StoreTest, AClockThatJumpsBackReordersNothingAndDropsNothing) {
  StreamSettings settings;
  settings.age_max = 10s;
  StoredStream& stream = declare(settings);
  append(stream, {.topic = "a", .id = "x", .body = as_bytes("1")}, 100s);
  append(stream, {.topic = "a", .body = as_bytes("2")}, -100s);
  EXPECT_EQ(read(stream), "1:1 2:2 ");
  EXPECT_EQ(stream.message_at(2, kDay)->value().message.time, kDay + 100s);
  EXPECT_TRUE(store_->append(stream, {.topic = "a", .id = "x"}, {}, at(-100s))->duplicate);
  EXPECT_EQ(read(stream, "", From::time(kDay + 100s)), "1:1 2:2 ");
  open(-100s);
  EXPECT_EQ(read(*store_->find("s")), "1:1 2:2 ");
  EXPECT_TRUE(store_->append(*store_->find("s"), {.topic = "a", .id = "x"}, {}, at(-100s))->duplicate);
}

TEST_F(StoreTest, AClockThatJumpsForwardAndComesBackKeepsTheOrderTheIdsAndTheWaits) {
  StreamSettings settings;
  settings.age_max = 100s;
  settings.same_id_window = 10s;
  StoredStream& stream = declare(settings);
  ConsumerSettings waits;
  waits.ack_wait = 30s;
  append(stream, {.topic = "a", .id = "x", .body = as_bytes("1")}, 0s);
  StoredConsumer& consumer = **store_->consumer(stream, "c", waits, false);
  // The steady clock times deliveries: a jump of the time of day makes none due.
  const auto jumped = [](Duration wall, Duration steady) { return Now{kDay + wall, Instant(steady)}; };
  ASSERT_TRUE(*store_->next_delivery(stream, consumer, jumped(0s, 1h)));
  EXPECT_FALSE(*store_->next_delivery(stream, consumer, jumped(1'000'000s, 1h + 29s)));
  const auto again = store_->next_delivery(stream, consumer, jumped(-1'000'000s, 1h + 31s));
  ASSERT_TRUE(again && *again);
  EXPECT_EQ((*again)->tries, 2U);
  // A second message a year later, by the clock: the first one is older than its age, and its id is forgotten.
  constexpr auto kYear = std::chrono::hours(365 * 24);
  append(stream, {.topic = "a", .id = "y", .body = as_bytes("2")}, kYear);
  ASSERT_EQ(store_->commit(at(kYear)).disk, Errc::ok);
  EXPECT_EQ(read(stream), "2:2 ");
  EXPECT_FALSE(store_->append(stream, {.topic = "a", .id = "x", .body = as_bytes("3")}, {}, at(kYear))->duplicate);
  ASSERT_EQ(store_->commit(at(kYear)).disk, Errc::ok);
  // The clock is set right, also while no process hosts: stored messages stay, times continue from the newest, ids
  // hold.
  open(20s);
  StoredStream& after = *store_->find("s");
  EXPECT_TRUE(store_->append(after, {.topic = "a", .id = "y"}, {}, at(20s))->duplicate);
  append(after, {.topic = "a", .id = "z", .body = as_bytes("4")}, 30s);
  EXPECT_EQ(read(after), "2:2 3:3 4:4 ");
  EXPECT_EQ(after.message_at(4, kDay)->value().message.time, kDay + kYear);
  EXPECT_FALSE(store_->has_work(at(1000s))) << "no message is older than the clock says";
  // Until the clock has come as far, the bound of bytes holds, not that of the age; then the age again.
  EXPECT_TRUE(store_->has_work(at(kYear + 101s)));
}

TEST_F(StoreTest, MembersOfAConsumerShareItAndWhatIsNotAcknowledgedComesAgain) {
  StoredStream& stream = declare({});
  for (int i = 0; i < 4; ++i) {
    append(stream, {.topic = i % 2 == 0 ? "even" : "odd"});
  }
  ConsumerSettings settings;
  settings.filter = "even";
  settings.ack_wait = 10s;
  StoredConsumer& even = **store_->consumer(stream, "even", settings, false);
  StoredConsumer& all = **store_->consumer(stream, "all", {}, false);
  EXPECT_EQ(deliver(stream, even, 1s), (Sequences{1, 3}));
  EXPECT_EQ(deliver(stream, all, 1s), (Sequences{1, 2, 3, 4}));
  EXPECT_TRUE(store_->ack(even, 3, true));
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_EQ(deliver(stream, even, 2s), Sequences());
  EXPECT_EQ(deliver(stream, even, 11s), Sequences{1});
  open(20s);
  StoredStream& again = *store_->find("s");
  EXPECT_EQ(deliver(again, *again.find_consumer("even"), 20s), Sequences());
  EXPECT_EQ(deliver(again, *again.find_consumer("even"), 30s), Sequences{1});
  EXPECT_EQ(store_->consumer(again, "even", {}, false).error(), Errc::conflict);
  settings.ack_wait = 1s;
  EXPECT_TRUE(store_->consumer(again, "even", settings, true));
  settings.filter = "odd";
  EXPECT_EQ(store_->consumer(again, "even", settings, true).error(), Errc::not_supported);
}

TEST_F(StoreTest, AConsumerMovesWithADeclarationOfAnotherBegin) {
  StoredStream& stream = declare({});
  for (const char* topic : {"a", "b", "a", "b"}) {
    append(stream, {.topic = topic});
  }
  ConsumerSettings settings;
  StoredConsumer& consumer = **store_->consumer(stream, "c", settings, false);
  EXPECT_EQ(deliver(stream, consumer, 1s), (Sequences{1, 2, 3, 4}));
  settings.from = From::sequence(3);
  ASSERT_TRUE(store_->consumer(stream, "c", settings, true));
  EXPECT_FALSE(store_->ack(consumer, 2, true)) << "what waited is forgotten";
  EXPECT_EQ(deliver(stream, consumer, 2s), (Sequences{3, 4}));
  ASSERT_TRUE(store_->consumer(stream, "c", settings, true));
  EXPECT_EQ(deliver(stream, consumer, 2s), Sequences()) << "the same begin moves nothing";
  ASSERT_EQ(store_->commit(at(2s)).disk, Errc::ok);
  open(3s);
  StoredConsumer& moved = *store_->find("s")->find_consumer("c");
  EXPECT_EQ(deliver(*moved.stream, moved, 60s), (Sequences{3, 4}));
  settings.from = From::first();
  ASSERT_TRUE(store_->consumer(*moved.stream, "c", settings, true));
  EXPECT_EQ(deliver(*moved.stream, moved, 61s), (Sequences{1, 2, 3, 4}));
}

TEST_F(StoreTest, AMessageBeyondTriesMaxGoesToTheDeadLettersOnce) {
  StreamSettings dead_settings;
  dead_settings.topics = {"dead.*"};
  StoredStream& dead = declare(dead_settings, "dead");
  StoredStream& stream = declare({});
  append(stream, {.topic = "a", .headers = as_bytes("H"), .body = as_bytes("poison")});
  append(stream, {.topic = "a", .body = as_bytes("good")});
  ConsumerSettings settings;
  settings.ack_wait = 1s;
  settings.tries_max = 2;
  settings.dead_letters = "dead.s";
  StoredConsumer& consumer = **store_->consumer(stream, "c", settings, false);
  EXPECT_EQ(deliver(stream, consumer, 1s), (Sequences{1, 2}));
  EXPECT_TRUE(store_->ack(consumer, 2, false));
  EXPECT_EQ(deliver(stream, consumer, 2s), Sequences{1});
  EXPECT_EQ(deliver(stream, consumer, 3s), Sequences());
  EXPECT_EQ(consumer.state.waiting(), 1U);  // until the letter is durable
  ASSERT_EQ(store_->commit(at(3s)).disk, Errc::ok);
  EXPECT_EQ(consumer.state.waiting(), 0U);
  EXPECT_EQ(read(dead), "1:poison ");
  EXPECT_EQ(dead.message_at(1, kDay)->value().message.id, "s:1:c");
  EXPECT_EQ(store_->counts().dead_letters, 1U);
  // The process dies before the consumer's state is on the disk: the same letter again is a duplicate.
  disk_.die_at(1);
  store_.reset();
  disk_.lose_power(0);
  open(4s);
  StoredStream& again = *store_->find("s");
  EXPECT_EQ(deliver(again, *again.find_consumer("c"), 100s), Sequences());
  ASSERT_EQ(store_->commit(at(100s)).disk, Errc::ok);
  EXPECT_EQ(read(*store_->find("dead")), "1:poison ");
  EXPECT_EQ(again.find_consumer("c")->state.waiting(), 0U);
}

TEST_F(StoreTest, WithoutATopicOfDeadLettersWhatIsExhaustedIsDroppedAndCounted) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a"});
  ConsumerSettings settings;
  settings.ack_wait = 1s;
  settings.tries_max = 1;
  StoredConsumer& consumer = **store_->consumer(stream, "c", settings, false);
  EXPECT_EQ(deliver(stream, consumer, 1s), Sequences{1});
  EXPECT_EQ(deliver(stream, consumer, 2s), Sequences());
  EXPECT_EQ(consumer.state.waiting(), 0U);
  EXPECT_EQ(store_->counts().dead_dropped, 1U);
}

TEST_F(StoreTest, ADeadLetterThatNoStreamTakesIsTriedAgain) {
  StoredStream& stream = declare({});
  append(stream, {.topic = "a"});
  ConsumerSettings settings;
  settings.ack_wait = 1s;
  settings.tries_max = 1;
  settings.dead_letters = "dead.s";
  StoredConsumer& consumer = **store_->consumer(stream, "c", settings, false);
  EXPECT_EQ(deliver(stream, consumer, 1s), Sequences{1});
  EXPECT_EQ(deliver(stream, consumer, 2s), Sequences());
  EXPECT_EQ(consumer.state.waiting(), 1U);
  StreamSettings dead_settings;
  dead_settings.topics = {"dead.*"};
  StoredStream& dead = declare(dead_settings, "dead");
  EXPECT_EQ(deliver(stream, consumer, 3s), Sequences());
  ASSERT_EQ(store_->commit(at(3s)).disk, Errc::ok);
  EXPECT_EQ(read(dead), "1: ");
  EXPECT_EQ(consumer.state.waiting(), 0U);
}

TEST_F(StoreTest, AWorkStreamDropsWhatItsConsumerAcknowledged) {
  StreamSettings settings;
  settings.keep = Keep::work;
  StoredStream& stream = declare(settings);
  for (int i = 0; i < 3; ++i) {
    append(stream, {.topic = "a"});
  }
  StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
  EXPECT_EQ(store_->consumer(stream, "d", {}, false).error(), Errc::conflict);
  EXPECT_EQ(stream.open_reader("", {}, kDay).error(), Errc::not_supported);
  EXPECT_EQ(deliver(stream, consumer, 1s), (Sequences{1, 2, 3}));
  store_->ack(consumer, 2, false);
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_EQ(stream.first(), 1U);
  store_->ack(consumer, 1, false);
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_EQ(stream.first(), 3U);
  open(2s);
  StoredStream& again = *store_->find("s");
  EXPECT_EQ(deliver(again, *again.find_consumer("c"), 100s), Sequences{3});
}

TEST_F(StoreTest, ALatestStreamKeepsTheNewestValuesOfEachTopic) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.history = 2;
  StoredStream& stream = declare(settings);
  for (const char* body : {"1", "2", "3"}) {
    append(stream, {.topic = "k", .body = as_bytes(body)});
  }
  append(stream, {.topic = "other", .body = as_bytes("x")});
  EXPECT_EQ(read(stream), "2:2 3:3 4:x ");
  EXPECT_EQ(read(stream, "", From::last_per_topic()), "3:3 4:x ");
  EXPECT_EQ(as_text(stream.newest_of("k", kDay)->value().message.body), "3");
  EXPECT_FALSE(stream.newest_of("none", kDay)->has_value());
  EXPECT_EQ(live_topics(stream), (std::vector<std::string>{"k", "other"}));
  EXPECT_EQ(refused(stream, {.topic = "k"}, {.absent = true}), Errc::conflict);
  EXPECT_EQ(refused(stream, {.topic = "k"}, {.last = 2}), Errc::conflict);
  append(stream, {.topic = "k", .erased = true}, 1s, {.last = 3});
  EXPECT_EQ(live_topics(stream), std::vector<std::string>{"other"});
  EXPECT_TRUE(stream.newest_of("k", kDay)->value().message.erased);
  EXPECT_EQ(append(stream, {.topic = "k", .body = as_bytes("new")}, 1s, {.absent = true}), 6U);
  open(1s);
  StoredStream& again = *store_->find("s");
  EXPECT_EQ(read(again), "4:x 5-: 6:new ");
  ASSERT_TRUE(store_->purge_topic(again, "k"));
  EXPECT_EQ(read(again), "4:x ");
  EXPECT_EQ(append(again, {.topic = "k"}, 1s), 7U);
}

TEST_F(StoreTest, ALatestStreamHasTheBoundOfItsBytes) {
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.bytes_max = 65'536;
  StoredStream& stream = declare(settings);
  const std::string body(8000, 'x');
  for (int i = 0; i < 20; ++i) {
    append(stream, {.topic = "k" + std::to_string(i), .body = as_bytes(body)});
  }
  EXPECT_LE(stream.bytes(), 65'536U);
  EXPECT_EQ(stream.topics_after("", 100, kDay)->topics.size(), 8U);
  for (int i = 0; i < 20; ++i) {
    append(stream, {.topic = "k19", .body = as_bytes(body)});
  }
  EXPECT_EQ(stream.topics_after("", 100, kDay)->topics.size(), 8U);
}

TEST_F(StoreTest, AStreamThatSurvivesNothingIsOnNoDisk) {
  StreamSettings settings;
  settings.survives = Survives::nothing;
  StoredStream& stream = declare(settings);
  disk_.set_room(disk_.bytes());
  const std::uint64_t syncs = disk_.syncs();
  EXPECT_EQ(append(stream, {.topic = "a", .body = as_bytes("1")}), 1U);
  EXPECT_EQ(read(stream), "1:1 ");
  EXPECT_EQ(disk_.syncs(), syncs);
  disk_.set_room(1 << 30);
  open(1s);
  EXPECT_EQ(store_->find("s"), nullptr);
}

TEST_F(StoreTest, AnIncarnationIsLargerThanTheOneBeforeAlsoWhenTheClockWentBack) {
  const std::uint64_t first = store_->incarnation();
  EXPECT_GE(first, 1'700'000'000'000'000'000U);
  open(-1h);
  const std::uint64_t second = store_->incarnation();
  EXPECT_GE(second, first + (std::uint64_t{1} << 40U));
  open(1000h);
  EXPECT_GE(store_->incarnation(), second + (std::uint64_t{1} << 40U));
}

TEST_F(StoreTest, AStoreWithoutAFileRefusesWhatItCannotKeep) {
  auto store = Store::open({}, at(0s));
  ASSERT_TRUE(store);
  EXPECT_EQ((*store)->declare("s", {}, false, at(0s)).error(), Errc::not_supported);
  StreamSettings settings;
  settings.survives = Survives::nothing;
  EXPECT_TRUE((*store)->declare("s", settings, false, at(0s)));
}

TEST_F(StoreTest, OneFlushToTheDiskIsSharedByATurn) {
  StoredStream& stream = declare({});
  StoredStream& other = declare({}, "other");
  const std::uint64_t syncs = disk_.syncs();
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store_->append(stream, {.topic = "a"}, {}, at(1s)));
    ASSERT_TRUE(store_->append(other, {.topic = "a"}, {}, at(1s)));
  }
  ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
  EXPECT_EQ(disk_.syncs(), syncs + 1);
  EXPECT_EQ(store_->counts().appended, 200U);
}

}  // namespace
}  // namespace weft::store

#endif
