// SPDX-License-Identifier: MIT
#include "weft/store/delayed.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "weft/store/schema.h"
#include "weft/store/test_store.h"
#include "weft/sys/path.h"

#ifdef WEFT_HAVE_SQLITE
#include <sqlite3.h>

namespace weft::store {
namespace {

using namespace std::chrono_literals;

using Texts = std::vector<std::string>;

Texts read_all(StoredStream& stream, Duration since) {
  Texts all;
  StoredReader reader = *stream.open_reader("", From::first(), at(since).wall);
  for (auto read = stream.read(reader, at(since).wall); read && *read; read = stream.read(reader, at(since).wall)) {
    all.emplace_back(as_text((*read)->message.body));
  }
  return all;
}

StreamSettings of_kind(Keep keep, Discard when_full, std::uint64_t bytes_max = 1 << 20) {
  StreamSettings settings;
  settings.keep = keep;
  settings.when_full = when_full;
  settings.bytes_max = bytes_max;
  return settings;
}

class Delayed : public StoreOnDisk {
 protected:
  Result<Appended> publish(StoredStream& stream, std::string_view body, Duration delay, Duration since,
                           std::string_view id = {}) {
    return store_->append(stream, {.topic = "t", .id = id, .body = as_bytes(body), .delay = delay}, {}, at(since));
  }
  void commit(Duration since) {
    const auto done = store_->commit(at(since));
    ASSERT_EQ(done.disk, Errc::ok) << done.disk.message();
    ASSERT_EQ(done.memory, Errc::ok);
  }
  StoredStream& find(std::string_view name = "s") { return *store_->find(name); }
};

TEST_F(Delayed, AMessageIsReadableFromItsTimeOn) {
  StoredStream& s = declare({});
  const auto kept = publish(s, "later", 10s, 1s);
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(kept->sequence, 0U);
  EXPECT_FALSE(kept->duplicate);
  EXPECT_TRUE(store_->has_work(at(1s)));
  commit(1s);
  EXPECT_EQ(store_->counts().delayed, 1U);
  EXPECT_EQ(store_->counts().appended, 0U);
  EXPECT_FALSE(store_->has_work(at(11s - 1ns)));
  EXPECT_EQ(store_->next_age(), at(11s).wall - 1ns);
  commit(11s - 1ns);
  EXPECT_EQ(s.next(), 1U);
  ASSERT_TRUE(store_->has_work(at(11s)));
  commit(11s);
  EXPECT_EQ(store_->stored(), std::vector<StoredStream*>{&s});
  const auto message = s.message_at(1, at(11s).wall);
  ASSERT_TRUE(message && *message);
  EXPECT_EQ(as_text((*message)->message.body), "later");
  EXPECT_EQ((*message)->message.time, at(11s).wall) << "its time is that of its entry";
  EXPECT_EQ(s.delayed().count(), 0U);
  EXPECT_EQ(s.delayed().bytes(), 0U);
  EXPECT_EQ(store_->counts().appended, 1U);
  EXPECT_FALSE(store_->has_work(at(24h)));
}

TEST_F(Delayed, MessagesEnterInTheOrderOfTheirTimesAndThenOfTheirPublishes) {
  StoredStream& s = declare({});
  ASSERT_TRUE(publish(s, "c1", 3s, 1s));
  ASSERT_TRUE(publish(s, "b", 2s, 1s));
  ASSERT_TRUE(publish(s, "c2", 3s, 1s));
  commit(1s);
  ASSERT_TRUE(publish(s, "a", 1s, 1s));
  ASSERT_TRUE(publish(s, "c3", 2s, 2s - 1ns));
  ASSERT_TRUE(publish(s, "c4", 2s, 2s));
  commit(2s - 1ns);
  EXPECT_EQ(read_all(s, 2s), Texts{});
  commit(2s);
  EXPECT_EQ(read_all(s, 2s), Texts{"a"});
  commit(1h);
  EXPECT_EQ(read_all(s, 1h), (Texts{"a", "b", "c3", "c1", "c2", "c4"}));
}

TEST_F(Delayed, ANewStoreHasTheMessagesAndThoseThatAreDueEnterAtOnce) {
  declare({});
  ASSERT_TRUE(publish(find(), "one", 10s, 1s));
  ASSERT_TRUE(publish(find(), "two", 20s, 1s));
  ASSERT_TRUE(publish(find(), "three", 24h * 365 * 100, 1s));
  commit(1s);
  disk_.lose_power(0);
  open(15s);
  EXPECT_EQ(find().delayed().count(), 3U);
  EXPECT_TRUE(store_->has_work(at(15s)));
  commit(15s);
  EXPECT_EQ(read_all(find(), 15s), Texts{"one"});
  disk_.lose_power(0);
  open(2s);  // the clock went back
  EXPECT_FALSE(store_->has_work(at(20s)));
  commit(20s);
  EXPECT_EQ(read_all(find(), 20s), Texts{"one"});
  commit(30s);
  ASSERT_TRUE(publish(find(), "four", 1s, 30s));
  commit(30s);
  open(24h * 365 * 99);
  commit(24h * 365 * 99);
  EXPECT_EQ(read_all(find(), 24h * 365 * 99), (Texts{"one", "two", "four"}));
  EXPECT_EQ(find().delayed().count(), 1U);
}

TEST_F(Delayed, ATimeToLiveBeginsWhenTheMessageIsReadable) {
  StoredStream& s = declare({});
  ASSERT_TRUE(store_->append(s, {.topic = "t", .time_to_live = 5s, .delay = 10s}, {}, at(1s)));
  commit(1s);
  open(1s);
  commit(20s);  // late
  EXPECT_EQ(read_all(find(), 25s - 1ns).size(), 1U);
  EXPECT_EQ(read_all(find(), 25s).size(), 0U);
}

TEST_F(Delayed, AMessageKeepsAllItsFields) {
  StoredStream& s = declare(of_kind(Keep::latest, Discard::refuse));
  const std::string headers("\0h\xff", 3);
  append(s, {.topic = "k", .body = as_bytes("before")});
  ASSERT_TRUE(store_->append(
      s, {.topic = "k", .id = "i", .headers = as_bytes(headers), .body = as_bytes("v"), .erased = true, .delay = 1ns},
      {}, at(1s)));
  commit(1s);
  EXPECT_EQ(as_text((*s.newest_of("k", at(1s).wall))->message.body), "before");
  commit(2s);
  const auto newest = s.newest_of("k", at(2s).wall);
  ASSERT_TRUE(newest && *newest);
  const StoredMessage& message = (*newest)->message;
  EXPECT_EQ(message.id, "i");
  EXPECT_EQ(as_text(message.headers), headers);
  EXPECT_EQ(as_text(message.body), "v");
  EXPECT_TRUE(message.erased);
  EXPECT_EQ(message.sequence, 2U);
  EXPECT_EQ(message.expires, WallTime::max());
}

TEST_F(Delayed, AConsumerOfAWorkStreamGetsAMessageWhenItIsDue) {
  StoredStream& s = declare(of_kind(Keep::work, Discard::refuse));
  StoredConsumer& consumer = **store_->consumer(s, "c", {}, false);
  ASSERT_TRUE(publish(s, "job", 5s, 1s));
  commit(1s);
  EXPECT_FALSE(*store_->next_delivery(s, consumer, at(5s)));
  commit(6s);
  const auto job = *store_->next_delivery(s, consumer, at(6s));
  ASSERT_TRUE(job);
  EXPECT_EQ(as_text(job->read.message.body), "job");
  EXPECT_TRUE(store_->ack(consumer, 1, true));
  commit(7s);
  EXPECT_EQ(s.first(), 2U);
}

TEST_F(Delayed, AStreamInMemoryHasDelaysToo) {
  StreamSettings settings;
  settings.survives = Survives::nothing;
  StoredStream& s = declare(settings);
  ASSERT_TRUE(publish(s, "x", 5s, 1s));
  commit(1s);
  commit(6s);
  EXPECT_EQ(read_all(s, 6s), Texts{"x"});
  ASSERT_TRUE(publish(s, "y", 5s, 6s));
  commit(6s);
  open(7s);
  EXPECT_EQ(store_->find("s"), nullptr);
}

TEST_F(Delayed, AnIdCountsFromItsPublish) {
  StoredStream& s = declare({});  // a window of two minutes
  ASSERT_TRUE(publish(s, "one", 1min, 1s, "a"));
  const auto in_turn = publish(s, "twice", 1min, 1s, "a");
  ASSERT_TRUE(in_turn);
  EXPECT_TRUE(in_turn->duplicate);
  EXPECT_EQ(in_turn->sequence, 0U);
  ASSERT_TRUE(publish(s, "long", 1h, 1s, "b"));
  commit(1s);
  EXPECT_TRUE(publish(find(), "twice", 0s, 10s, "a")->duplicate) << "the same without a delay";
  EXPECT_TRUE(publish(find(), "twice", 5s, 10s, "b")->duplicate);
  EXPECT_EQ(append(s, {.topic = "t", .id = "c"}, 10s), 1U);
  const auto with_sequence = publish(find(), "twice", 5s, 10s, "c");
  EXPECT_TRUE(with_sequence->duplicate);
  EXPECT_EQ(with_sequence->sequence, 1U);
  open(70s);
  EXPECT_TRUE(publish(find(), "twice", 0s, 70s, "b")->duplicate);
  commit(70s);  // "one" enters
  EXPECT_EQ(find().next(), 3U);
  EXPECT_EQ(publish(find(), "twice", 0s, 80s, "a")->sequence, 0U) << "the first answer again";
  open(80s);
  EXPECT_TRUE(publish(find(), "twice", 0s, 80s, "a")->duplicate) << "its row is gone";
  append(find(), {.topic = "t"}, 122s);  // the time of a stream is that of its newest publish
  const auto again = publish(find(), "again", 0s, 122s, "a");
  EXPECT_FALSE(again->duplicate);
  EXPECT_EQ(again->sequence, 4U);
  const auto other = publish(find(), "again", 1s, 122s, "b");
  EXPECT_FALSE(other->duplicate) << "the first message of this id still waits";
  commit(122s);
  commit(2h);
  EXPECT_EQ(read_all(find(), 2h), (Texts{"", "one", "", "again", "again", "long"}));
  EXPECT_EQ(store_->counts().duplicates, 1U) << "of this life";
}

TEST_F(Delayed, WithoutAWindowOfIdsNoneIsCompared) {
  StreamSettings settings;
  settings.same_id_window = 0s;
  declare(settings);
  ASSERT_FALSE(publish(find(), "one", 1s, 1s, "a")->duplicate);
  commit(1s);
  open(1s);
  ASSERT_FALSE(publish(find(), "two", 1s, 1s, "a")->duplicate);
  commit(3s);
  commit(3s);
  EXPECT_EQ(read_all(find(), 3s), (Texts{"one", "two"}));
}

TEST_F(Delayed, WrongPublishesAreRefused) {
  StoredStream& s = declare({});
  for (const Duration wrong : {Duration(-1), Duration::min(), kDelayMax + 1ns, Duration::max()}) {
    EXPECT_EQ(publish(s, "x", wrong, 1s).error(), Errc::invalid_argument);
  }
  const NewMessage later{.topic = "t", .delay = 1s};
  EXPECT_EQ(store_->append(s, later, {.last = 0}, at(1s)).error(), Errc::invalid_argument);
  EXPECT_EQ(store_->append(s, later, {.absent = true}, at(1s)).error(), Errc::invalid_argument);
  const BatchEntry batch[] = {{{.topic = "t"}}, {later}};
  EXPECT_EQ(store_->append_all(s, batch, at(1s)).error(), Errc::invalid_argument);
  EXPECT_EQ(store_->append(s, {.topic = "", .delay = 1s}, {}, at(1s)).error(), Errc::invalid_argument);
  EXPECT_FALSE(store_->has_work(at(1s)));
  EXPECT_EQ(store_->counts().refused, 9U);
  ASSERT_TRUE(publish(s, "x", kDelayMax, 1s, "i"));
  const BatchEntry known[] = {{{.topic = "t"}}, {{.topic = "t", .id = "i"}}};
  EXPECT_EQ(store_->append_all(s, known, at(1s)).error(), Errc::conflict);
}

TEST_F(Delayed, DelayedBytesTakeTheRoomOfAStreamThatRefuses) {
  StoredStream& s = declare(of_kind(Keep::work, Discard::refuse, 64 * 1024));
  ASSERT_TRUE(store_->consumer(s, "c", {}, false));
  const std::string body(10'000, 'x');
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(publish(s, body, 5s, 1s));
    commit(1s);
    append(s, {.topic = "t", .body = as_bytes(body)});
  }
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(publish(find(), body, 5s, 1s).error(), Errc::resource_exhausted);
    EXPECT_EQ(publish(find(), body, 0s, 1s).error(), Errc::resource_exhausted);
    const BatchEntry batch[] = {{{.topic = "t", .body = as_bytes(body)}}};
    EXPECT_EQ(store_->append_all(find(), batch, at(1s)).error(), Errc::resource_exhausted);
    open(1s);
  }
  commit(10s);
  EXPECT_EQ(find().evicted(), 0U) << "the promised ones had their room";
  EXPECT_EQ(find().next() - find().first(), 6U);
  EXPECT_EQ(publish(find(), body, 5s, 10s).error(), Errc::resource_exhausted);
  StoredConsumer& consumer = *find().find_consumer("c");
  ASSERT_TRUE(*store_->next_delivery(find(), consumer, at(10s)));
  store_->ack(consumer, 1, true);
  commit(10s);
  EXPECT_TRUE(publish(find(), body, 5s, 10s));
}

TEST_F(Delayed, DelayedMessagesPushOutReadableOnesAndTakeHalfOfALog) {
  StoredStream& s = declare(of_kind(Keep::log, Discard::oldest, 64 * 1024));
  const std::string body(10'000, 'x');
  for (int i = 0; i < 6; ++i) {
    append(s, {.topic = "t", .body = as_bytes(body)});
  }
  EXPECT_EQ(s.first(), 1U);
  int taken = 0;
  while (publish(s, body, 5s, 1s)) {
    commit(1s);
    ++taken;
  }
  EXPECT_EQ(taken, 3);
  EXPECT_EQ(publish(s, body, 5s, 1s).error(), Errc::resource_exhausted);
  commit(1s);
  EXPECT_EQ(s.first(), 4U);
  append(s, {.topic = "t", .body = as_bytes(body)});
  commit(6s);
  EXPECT_EQ(s.next() - s.first(), 6U);
  EXPECT_EQ(s.next(), 11U);
  EXPECT_LE(s.bytes() + s.delayed().bytes(), 64U * 1024);
}

TEST_F(Delayed, AStreamHasAMillionOfThem) {
  StoredStream& s = declare({});
  for (std::uint64_t i = 0; i < DelayedMessages::kMessagesMax; ++i) {
    ASSERT_TRUE(publish(s, {}, 5s, 1s));
  }
  EXPECT_EQ(publish(s, {}, 5s, 1s).error(), Errc::resource_exhausted);
  EXPECT_TRUE(publish(s, {}, 0s, 1s));
}

TEST_F(Delayed, ManyThatAreDueEnterInParts) {
  StoredStream& s = declare({});
  StoredStream& other = declare({}, "other");
  constexpr std::uint64_t kMany = 3000;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(publish(s, std::to_string(i), 1s, 1s));
  }
  ASSERT_TRUE(publish(other, "alone", 2s, 1s));
  commit(1s);
  std::uint64_t commits = 0;
  for (; store_->has_work(at(5s)); ++commits) {
    ASSERT_LT(commits, 10U);
    commit(5s);
  }
  EXPECT_EQ(commits, 3U);
  EXPECT_EQ(read_all(other, 5s), Texts{"alone"});
  const Texts all = read_all(s, 5s);
  ASSERT_EQ(all.size(), kMany);
  for (std::uint64_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(all[i], std::to_string(i));
  }
}

TEST_F(Delayed, APurgeLeavesThemAndARemovalDoesNot) {
  StoredStream& s = declare({});
  append(s, {.topic = "t"});
  ASSERT_TRUE(publish(s, "later", 5s, 1s));
  EXPECT_EQ(store_->purge_before(s, 2).error(), Errc::invalid_state) << "within a turn";
  commit(1s);
  ASSERT_TRUE(store_->purge_before(s, 2));
  commit(6s);
  EXPECT_EQ(read_all(s, 6s), Texts{"later"});
  ASSERT_TRUE(publish(s, "gone", 5s, 6s, "i"));
  commit(6s);
  ASSERT_TRUE(store_->remove("s"));
  StoredStream& anew = declare({});
  EXPECT_FALSE(publish(anew, "x", 1s, 6s, "i")->duplicate);
  commit(6s);
  open(7s);
  commit(20s);
  EXPECT_EQ(read_all(find(), 20s), Texts{"x"});
}

TEST_F(Delayed, OtherSettingsChangeNoPromise) {
  StreamSettings settings;
  settings.topics = {"t"};
  StoredStream& s = declare(settings);
  const std::string large(100'000, 'x');
  ASSERT_TRUE(publish(s, large, 5s, 1s));
  ASSERT_TRUE(publish(s, "small", 6s, 1s));
  commit(1s);
  settings.topics = {"other"};
  settings.bytes_max = 64 * 1024;
  ASSERT_TRUE(store_->declare("s", settings, true, at(2s)));
  commit(6s);
  EXPECT_EQ(read_all(s, 6s), Texts{large});
  commit(7s);
  EXPECT_EQ(read_all(s, 7s).back(), "small");
}

TEST_F(Delayed, AFullDiskRefusesThemAndThoseThatAreDueWaitForRoom) {
  StoredStream& s = declare({});
  const std::string body(300'000, 'x');
  ASSERT_TRUE(publish(s, body, 5s, 1s, "a"));
  commit(1s);
  disk_.set_room(disk_.bytes());
  ASSERT_TRUE(publish(s, body, 5s, 1s, "b"));
  EXPECT_EQ(store_->commit(at(1s)).disk, Errc::resource_exhausted);
  EXPECT_EQ(s.delayed().count(), 1U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(store_->commit(at(6s)).disk, Errc::outcome_unknown);
    EXPECT_EQ(s.next(), 1U);
    EXPECT_TRUE(store_->has_work(at(6s)));
  }
  EXPECT_EQ(store_->counts().refused, 1U) << "of publishes";
  disk_.set_room(1 << 30);
  commit(6s);
  EXPECT_EQ(s.next(), 2U);
  EXPECT_FALSE(publish(s, body, 5s, 6s, "b")->duplicate) << "it was refused";
  EXPECT_TRUE(publish(s, body, 5s, 6s, "a")->duplicate);
  commit(20s);
  commit(20s);
  EXPECT_EQ(read_all(s, 20s).size(), 2U);
}

// On a file of the system, whose rows the test changes by SQL.
class DamagedDelayed : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = *sys::make_private_directory();
    open();
    StoredStream& s = **store_->declare("s", {}, false, at(0s));
    for (const char* body : {"one", "two", "three"}) {
      ASSERT_TRUE(store_->append(s, {.topic = "t", .id = body, .body = as_bytes(body), .delay = 10s}, {}, at(1s)));
      ASSERT_EQ(store_->commit(at(1s)).disk, Errc::ok);
    }
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void open() {
    store_.reset();
    auto opened = Store::open({directory_ + "/store.db"}, at(2s));
    ASSERT_TRUE(opened) << opened.error().message();
    store_ = *std::move(opened);
  }
  void change(const std::string& sql) {
    store_.reset();
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open((directory_ + "/store.db").c_str(), &connection), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    EXPECT_GT(sqlite3_total_changes(connection), 0);
    sqlite3_close(connection);
    open();
  }
  // Commits until there is no more to do at the time.
  Texts read(Duration since) {
    for (int i = 0; i < 10 && store_->has_work(at(since)); ++i) {
      EXPECT_EQ(store_->commit(at(since)).disk, Errc::ok);
    }
    EXPECT_FALSE(store_->has_work(at(since)));
    return read_all(*store_->find("s"), since);
  }
  [[nodiscard]] std::uint64_t damaged() { return store_->find("s")->damaged(); }

  std::string directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(DamagedDelayed, AWrongTimeIsMendedByTheMessage) {
  for (const char* due : {"0", "9000000000000000000", "-5", "'x'"}) {
    change("UPDATE delayed SET due=" + std::string(due) + " WHERE number=2");
    EXPECT_EQ(read(10s), Texts{});
    EXPECT_EQ(damaged(), 1U) << due;
  }
  change("UPDATE delayed SET sum=sum+1");
  EXPECT_EQ(read(11s), (Texts{"one", "two", "three"}));
  EXPECT_EQ(damaged(), 3U);
}

TEST_F(DamagedDelayed, AMessageThatIsNotWholeIsReportedAndTheOthersEnter) {
  change("UPDATE delayed SET bytes=CAST(substr(bytes, 1, length(bytes)-1) || 'X' AS BLOB) WHERE number=2");
  EXPECT_EQ(read(11s), (Texts{"one", "three"}));
  EXPECT_EQ(damaged(), 1U);
  EXPECT_EQ(store_->find("s")->delayed().count(), 0U);
  EXPECT_EQ(store_->find("s")->delayed().bytes(), 0U);
}

TEST_F(DamagedDelayed, AWrongNumberIsReportedAndNoNumberFollowsIt) {
  change("UPDATE delayed SET number=9223372036854775807 WHERE number=3");
  StoredStream& s = *store_->find("s");
  ASSERT_TRUE(store_->append(s, {.topic = "t", .body = as_bytes("four"), .delay = 8s}, {}, at(3s)));
  EXPECT_EQ(read(11s), (Texts{"one", "two", "four"}));
  EXPECT_EQ(damaged(), 1U);
}

TEST_F(DamagedDelayed, ARowOfIdsIsCounted) {
  change("UPDATE delayed_id SET bytes=x'00' WHERE last=2; UPDATE delayed_id SET last=9223372036854775807 WHERE last=3");
  StoredStream& s = *store_->find("s");
  EXPECT_EQ(damaged(), 2U);
  EXPECT_TRUE(store_->append(s, {.topic = "t", .id = "one"}, {}, at(3s))->duplicate);
  EXPECT_FALSE(store_->append(s, {.topic = "t", .id = "three", .delay = 1s}, {}, at(3s))->duplicate);
  EXPECT_EQ(read(11s).size(), 4U);
}

TEST_F(DamagedDelayed, AStoreOfTheFormatBeforeGetsDelays) {
  change("DELETE FROM delayed; DROP TABLE delayed; DROP TABLE delayed_id; PRAGMA user_version=5");
  StoredStream& s = *store_->find("s");
  ASSERT_TRUE(store_->append(s, {.topic = "t", .body = as_bytes("new"), .delay = 1s}, {}, at(3s)));
  ASSERT_EQ(store_->commit(at(3s)).disk, Errc::ok);
  open();
  EXPECT_EQ(read(4s), Texts{"new"});
  EXPECT_EQ(damaged(), 0U);
}

}  // namespace
}  // namespace weft::store

#endif
