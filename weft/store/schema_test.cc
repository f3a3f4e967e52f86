// SPDX-License-Identifier: MIT
#include "weft/store/schema.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "weft/store/store.h"
#include "weft/sys/path.h"
#include <gtest/gtest.h>

#ifdef WEFT_HAVE_SQLITE
#include <sqlite3.h>

namespace weft::store {
namespace {

using namespace std::chrono_literals;

const Now kNow{WallTime(1'700'000'000s), Instant(1h)};

class SchemaTest : public testing::Test {
 protected:
  void SetUp() override { directory_ = *sys::make_private_directory(); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  [[nodiscard]] std::string path() const { return directory_ + "/store.db"; }

  void run_sql(const std::string& sql) const {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &connection), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(connection);
  }

  std::string directory_;
};

TEST_F(SchemaTest, AStoreOfAnOlderFormatIsTakenToThisOneWithItsMessages) {
  // Format 1 as it was written: without values of topics.
  run_sql(R"sql(
    CREATE TABLE stream(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL,
      next INTEGER NOT NULL);
    CREATE TABLE block(stream INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, time INTEGER NOT NULL,
      topics TEXT, bytes BLOB NOT NULL);
    CREATE UNIQUE INDEX block_last ON block(stream, last);
    CREATE TABLE topic(stream INTEGER NOT NULL, topic TEXT NOT NULL, last INTEGER NOT NULL,
      PRIMARY KEY(stream, topic)) WITHOUT ROWID;
    CREATE TABLE consumer(stream INTEGER NOT NULL, name TEXT NOT NULL, settings TEXT NOT NULL, next INTEGER NOT NULL,
      pending BLOB NOT NULL, PRIMARY KEY(stream, name));
    INSERT INTO stream VALUES(1, 'old', 'keep=log' || char(10), 5);
    INSERT INTO block VALUES(1, 5, 5, 1700000000000000000, 'a' || char(10),
      x'010000006B59B6660000000100000001000000000000000517979CFE362A00000000000500000001000000006168656C6C6F');
    INSERT INTO consumer VALUES(1, 'c', '', 5, x'');
    PRAGMA application_id=1464157780; PRAGMA user_version=1;)sql");
  auto store = Store::open({path()}, kNow);
  ASSERT_TRUE(store) << store.error().message();
  StoredStream* stream = (*store)->find("old");
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->next(), 6U);
  EXPECT_NE(stream->find_consumer("c"), nullptr);
  StreamSettings latest;
  latest.keep = Keep::latest;
  ASSERT_TRUE((*store)->declare("new", latest, false, kNow));
  auto message = stream->message_at(5, kNow.wall);
  ASSERT_TRUE(message && *message) << message.error().message();
  EXPECT_EQ(as_text((*message)->message.body), "hello");
}

TEST_F(SchemaTest, TheIdsOfAnOlderFormatsMessagesAreKnown) {
  {
    auto store = Store::open({path()}, kNow);
    ASSERT_TRUE(store);
    auto stream = (*store)->declare("s", {}, false, kNow);
    ASSERT_TRUE(stream);
    ASSERT_TRUE((*store)->append(**stream, {.topic = "a", .id = "x"}, {}, kNow));
    ASSERT_EQ((*store)->commit(kNow).disk, Errc::ok);
  }
  // Format 2 had no rows of ids.
  run_sql(
      "DROP TABLE delayed; DROP TABLE delayed_id; DROP TABLE id; ALTER TABLE stream DROP COLUMN has_ids; ALTER TABLE "
      "stream DROP COLUMN purged; ALTER TABLE "
      "stream DROP COLUMN sum;"
      " ALTER TABLE consumer DROP COLUMN sum; ALTER TABLE topic DROP COLUMN sum; DROP INDEX block_expires; DROP INDEX "
      "kv_expires; ALTER TABLE block DROP COLUMN expires; ALTER TABLE topic DROP COLUMN expires; ALTER TABLE kv DROP "
      "COLUMN expires; "
      "PRAGMA user_version=2;");
  for (int pass = 0; pass < 2; ++pass) {
    auto store = Store::open({path()}, kNow);
    ASSERT_TRUE(store) << store.error().message();
    StoredStream& stream = *(*store)->find("s");
    EXPECT_TRUE((*store)->append(stream, {.topic = "a", .id = "x"}, {}, kNow)->duplicate);
    ASSERT_TRUE((*store)->purge_before(stream, 2));  // the second pass has nothing but the rows
  }
}

TEST_F(SchemaTest, AStoreWithoutTimesToLiveIsTakenToThisFormatAndGetsThem) {
  StreamSettings latest;
  latest.keep = Keep::latest;
  {
    auto store = Store::open({path()}, kNow);
    ASSERT_TRUE(store);
    for (const auto& [name, settings] : {std::pair("log", StreamSettings()), std::pair("kv", latest)}) {
      auto stream = (*store)->declare(name, settings, false, kNow);
      ASSERT_TRUE(stream);
      ASSERT_TRUE((*store)->append(**stream, {.topic = "a", .body = as_bytes("old")}, {}, kNow));
    }
    ASSERT_EQ((*store)->commit(kNow).disk, Errc::ok);
  }
  run_sql(
      "DROP TABLE delayed; DROP TABLE delayed_id; DROP INDEX block_expires; DROP INDEX kv_expires; ALTER TABLE block "
      "DROP COLUMN expires; "
      "ALTER TABLE topic DROP COLUMN expires; ALTER TABLE kv DROP COLUMN expires; PRAGMA user_version=4;");
  auto store = Store::open({path()}, kNow);
  ASSERT_TRUE(store) << store.error().message();
  for (const char* name : {"log", "kv"}) {
    StoredStream& stream = *(*store)->find(name);
    EXPECT_EQ(as_text((*stream.newest_of("a", kNow.wall))->message.body), "old") << name;
    ASSERT_TRUE((*store)->append(stream, {.topic = "b", .time_to_live = 1s}, {}, kNow));
    ASSERT_EQ((*store)->commit(kNow).disk, Errc::ok);
    EXPECT_TRUE(*stream.newest_of("b", kNow.wall)) << name;
    EXPECT_FALSE(*stream.newest_of("b", kNow.wall + 1s)) << name;
    EXPECT_EQ(stream.damaged(), 0U);
  }
}

TEST_F(SchemaTest, ADamagedRowOfIdsIsCountedAndTheStoreOpens) {
  {
    auto store = Store::open({path()}, kNow);
    ASSERT_TRUE(store);
    auto stream = (*store)->declare("s", {}, false, kNow);
    ASSERT_TRUE(stream);
    for (const char* id : {"first", "second"}) {
      ASSERT_TRUE((*store)->append(**stream, {.topic = "a", .id = id}, {}, kNow));
      ASSERT_EQ((*store)->commit(kNow).disk, Errc::ok);
    }
  }
  run_sql("UPDATE id SET bytes=x'00' WHERE last=1;");
  auto store = Store::open({path()}, kNow);
  ASSERT_TRUE(store) << store.error().message();
  StoredStream& stream = *(*store)->find("s");
  EXPECT_EQ(stream.damaged(), 1U);
  EXPECT_FALSE((*store)->append(stream, {.topic = "a", .id = "first"}, {}, kNow)->duplicate);
  EXPECT_TRUE((*store)->append(stream, {.topic = "a", .id = "second"}, {}, kNow)->duplicate);
}

TEST_F(SchemaTest, AStoreOfANewerBuildIsRefusedAndLeftAsItIs) {
  {
    ASSERT_TRUE(Store::open({path()}, kNow));
  }
  run_sql("PRAGMA user_version=" + std::to_string(kFormat + 1));
  EXPECT_EQ(Store::open({path()}, kNow).error(), Errc::not_supported);
  run_sql("PRAGMA user_version=" + std::to_string(kFormat));
  EXPECT_TRUE(Store::open({path()}, kNow));
}

TEST_F(SchemaTest, AFileOfAnotherProgramIsRefused) {
  run_sql("CREATE TABLE t(a); PRAGMA user_version=3;");
  EXPECT_EQ(Store::open({path()}, kNow).error(), Errc::corrupt);
  std::filesystem::remove(path());
  run_sql("CREATE TABLE t(a); PRAGMA application_id=7;");
  EXPECT_EQ(Store::open({path()}, kNow).error(), Errc::corrupt);
  std::ofstream(path()) << std::string(10'000, 'x');
  EXPECT_EQ(Store::open({path()}, kNow).error(), Errc::corrupt);
}

TEST_F(SchemaTest, AFlippedBitOfAMessageIsReportedAndNothingOfItsBlockIsRead) {
  {
    auto store = Store::open({path()}, kNow);
    ASSERT_TRUE(store);
    auto stream = (*store)->declare("s", {}, false, kNow);
    ASSERT_TRUE(stream);
    for (const char* body : {"first", "the second message", "third"}) {
      ASSERT_TRUE((*store)->append(**stream, {.topic = "a", .body = as_bytes(body)}, {}, kNow));
      ASSERT_EQ((*store)->commit(kNow).disk, Errc::ok);
    }
  }
  std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
  std::string all((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = all.find("the second message");
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file.put('T');
  file.close();
  auto store = Store::open({path()}, kNow);
  ASSERT_TRUE(store) << store.error().message();
  StoredStream* stream = (*store)->find("s");
  EXPECT_EQ(stream->damaged(), 0U);
  auto reader = stream->open_reader("", From::first(), kNow.wall);
  auto first = stream->read(*reader, kNow.wall);
  ASSERT_TRUE(first && *first);
  EXPECT_EQ(as_text((*first)->message.body), "first");
  EXPECT_EQ(stream->read(*reader, kNow.wall).error(), Errc::corrupt);
  EXPECT_EQ(stream->read(*reader, kNow.wall).error(), Errc::corrupt);  // it stays there
  EXPECT_EQ(stream->damaged(), 1U);
  auto behind = stream->open_reader("", From::sequence(3), kNow.wall);
  auto third = stream->read(*behind, kNow.wall);
  ASSERT_TRUE(third && *third);
  EXPECT_EQ(as_text((*third)->message.body), "third");
  // A consumer gets past it.
  StoredConsumer& consumer = **(*store)->consumer(*stream, "c", {}, false);
  EXPECT_EQ((*(*store)->next_delivery(*stream, consumer, kNow))->read.message.sequence, 1U);
  EXPECT_EQ((*(*store)->next_delivery(*stream, consumer, kNow))->read.message.sequence, 3U);
  EXPECT_EQ(consumer.state.waiting(), 2U);
  EXPECT_EQ(stream->damaged(), 1U);
  // The damaged block can be purged.
  ASSERT_TRUE((*store)->purge_before(*stream, 3));
  EXPECT_EQ(stream->first(), 3U);
}

TEST_F(SchemaTest, TwoStoresOfOneFileAreRefused) {
  auto store = Store::open({path()}, kNow);
  ASSERT_TRUE(store);
  EXPECT_EQ(Store::open({path()}, kNow).error(), Errc::conflict);
  store->reset();
  EXPECT_TRUE(Store::open({path()}, kNow));
}

TEST_F(SchemaTest, AFileThatCannotBeMadeIsAnError) {
  const auto store = Store::open({directory_ + "/no/such/folder/store.db"}, kNow);
  EXPECT_EQ(store.error(), Errc::system);
}

}  // namespace
}  // namespace weft::store

#endif
