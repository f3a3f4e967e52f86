// SPDX-License-Identifier: MIT
// Rows that changed on the disk: reported, and the rest of the store is whole.
#include "weft/store/row_sum.h"

#include <filesystem>
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

class DamageTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = *sys::make_private_directory();
    open();
    for (const char* name : {"log", "work", "latest", "other"}) {
      StreamSettings settings;
      settings.keep = std::string(name) == "work"     ? Keep::work
                      : std::string(name) == "latest" ? Keep::latest
                                                      : Keep::log;
      ASSERT_TRUE(store_->declare(name, settings, false, kNow));
    }
    ASSERT_TRUE(store_->consumer(*store_->find("work"), "c", {}, false));
    for (const char* name : {"log", "work", "latest", "other"}) {
      StoredStream& stream = *store_->find(name);
      for (int i = 1; i <= 5; ++i) {
        const std::string topic = "t." + std::to_string(i);
        ASSERT_TRUE(store_->append(stream, {.topic = topic, .body = as_bytes(topic)}, {}, kNow));
        ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
      }
    }
  }
  void TearDown() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }
  void open() {
    store_.reset();
    auto opened = Store::open({directory_ + "/store.db"}, kNow);
    ASSERT_TRUE(opened) << opened.error().message();
    store_ = *std::move(opened);
  }
  // Changes the file as a flipped bit does: behind the back of the store.
  void damage(const std::string& sql) {
    store_.reset();
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open((directory_ + "/store.db").c_str(), &connection), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    EXPECT_EQ(sqlite3_changes(connection), 1) << sql;
    sqlite3_close(connection);
    open();
  }
  std::string row_of(const std::string& stream) { return std::to_string(store_->find(stream)->id()); }
  // The bodies that are read, `!` for each damaged place.
  static std::string read(StoredStream& stream, std::string_view filter = "") {
    StoredReader reader = *stream.open_reader(filter, {}, kNow.wall);
    std::string all;
    for (int i = 0; i < 20; ++i) {
      const auto message = stream.read(reader, kNow.wall);
      if (!message) {
        EXPECT_EQ(message.error(), Errc::corrupt);
        all += "! ";
        reader = *stream.open_reader(filter, From::sequence(reader.cursor.next + 1), kNow.wall);
        continue;
      }
      if (!*message) {
        return all;
      }
      EXPECT_EQ(as_text((*message)->message.body), (*message)->message.topic);
      all += std::string((*message)->message.topic) + " ";
    }
    return all;
  }
  std::string deliver(const std::string& name) {
    StoredStream& stream = *store_->find(name);
    std::string all;
    while (true) {
      const auto delivery = store_->next_delivery(stream, **store_->consumer(stream, "c", {}, false), kNow);
      if (!delivery || !*delivery) {
        EXPECT_TRUE(delivery) << delivery.error().message();
        return all;
      }
      all += std::string((*delivery)->read.message.topic) + " ";
    }
  }

  std::string directory_;
  std::unique_ptr<Store> store_;
};

constexpr const char* kAll = "t.1 t.2 t.3 t.4 t.5 ";

TEST_F(DamageTest, ADamagedStreamLeavesTheOthersWholeAndIsMendedOrRemoved) {
  for (const char* change : {"settings='keep=work'||char(10)", "settings='x'", "next=2", "purged=4", "has_ids=2"}) {
    SCOPED_TRACE(change);
    damage("UPDATE stream SET " + std::string(change) + " WHERE name='log'");
    EXPECT_EQ(store_->find("log"), nullptr);
    EXPECT_EQ(store_->absence_of("log"), Errc::corrupt);
    EXPECT_EQ(store_->absence_of("none"), Errc::not_found);
    EXPECT_EQ(store_->names_after("", 10), (std::vector<std::string>{"latest", "log", "other", "work"}));
    EXPECT_EQ(read(*store_->find("other")), kAll);
    EXPECT_EQ(store_->declare("log", {}, false, kNow).error(), Errc::corrupt);
    ASSERT_TRUE(store_->declare("log", {}, true, kNow));
    for (int pass = 0; pass < 2; ++pass) {
      EXPECT_EQ(read(*store_->find("log")), kAll);
      EXPECT_EQ(store_->find("log")->next(), 6U);
      open();
    }
  }
  damage("UPDATE stream SET name='gol' WHERE name='log'");
  EXPECT_EQ(store_->absence_of("gol"), Errc::corrupt);
  ASSERT_TRUE(store_->remove("gol"));
  while (store_->has_work(kNow)) {
    ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
  }
  open();
  EXPECT_EQ(store_->names_after("", 10), (std::vector<std::string>{"latest", "other", "work"}));
}

TEST_F(DamageTest, ADamagedConsumerGetsAgainWhatTheStreamHas) {
  const auto acknowledge = [this] {
    StoredStream& stream = *store_->find("work");
    StoredConsumer& consumer = **store_->consumer(stream, "c", {}, false);
    ASSERT_TRUE(*store_->next_delivery(stream, consumer, kNow));
    EXPECT_TRUE(store_->ack(consumer, 2, true) || store_->ack(consumer, 1, true));
    ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
  };
  acknowledge();
  EXPECT_EQ(store_->find("work")->first(), 2U);
  const std::string all = "t.2 t.3 t.4 t.5 ";
  for (const char* change :
       {"next=5", "next=-1", "pending=x'0101'", "settings='ack_wait=1000000'||char(10)", "settings='x'"}) {
    SCOPED_TRACE(change);
    damage("UPDATE consumer SET " + std::string(change) + " WHERE name='c'");
    EXPECT_EQ(store_->find("work")->damaged(), 1U);
    if (store_->find("work")->find_consumer("c") != nullptr) {  // its settings may have another value
      ASSERT_TRUE(store_->consumer(*store_->find("work"), "c", {}, true));
    }
    EXPECT_EQ(deliver("work"), all);
    ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
    ASSERT_TRUE(store_->remove_consumer(*store_->find("work"), "c"));
    ASSERT_TRUE(store_->consumer(*store_->find("work"), "c", {}, false));
    ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
  }
}

TEST_F(DamageTest, ADamagedRowOfATopicIsReportedUntilItsNextMessage) {
  damage("UPDATE topic SET last=1 WHERE topic='t.4' AND stream=" + row_of("log"));
  StoredStream& stream = *store_->find("log");
  EXPECT_EQ(stream.newest_of("t.4", kNow.wall).error(), Errc::corrupt);
  EXPECT_EQ(store_->append(stream, {.topic = "t.4"}, {.last = 1}, kNow).error(), Errc::corrupt);
  EXPECT_EQ(stream.topics_after("", 10, kNow.wall)->topics.size(), 4U);
  EXPECT_EQ(stream.damaged(), 1U);
  EXPECT_EQ(read(stream), kAll);
  ASSERT_TRUE(store_->append(stream, {.topic = "t.4"}, {}, kNow));
  ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
  EXPECT_TRUE(*stream.newest_of("t.4", kNow.wall));
  EXPECT_TRUE(store_->append(stream, {.topic = "t.4"}, {.last = 6}, kNow));
}

TEST_F(DamageTest, ADamagedRowOfABlockHidesNoOtherMessage) {
  const std::string where = " WHERE last=3 AND stream=" + row_of("log");
  const std::string original =
      "UPDATE block SET topics=(SELECT t FROM kept), first=3, time=(SELECT w FROM kept)" + where;
  damage("CREATE TABLE kept AS SELECT topics AS t, time AS w FROM block" + where + "; UPDATE block SET topics=topics" +
         where);
  for (const char* change : {"topics=replace(topics,'3','8')", "topics='t.8'||char(1)||'00000000'", "topics='x'"}) {
    SCOPED_TRACE(change);
    damage("UPDATE block SET " + std::string(change) + where);
    EXPECT_EQ(read(*store_->find("log")), kAll);
    EXPECT_EQ(read(*store_->find("log"), "t.3"), "t.3 ");
    damage(original);
  }
  for (const char* change : {"first=2", "first=1", "first=4", "time=7", "time=time+1000000000000000000"}) {
    SCOPED_TRACE(change);
    damage("UPDATE block SET " + std::string(change) + where);
    StoredStream& stream = *store_->find("log");
    EXPECT_EQ(stream.next(), 6U);
    EXPECT_EQ(read(stream), "t.1 t.2 ! t.4 t.5 ");
    EXPECT_EQ(deliver("log"), "t.1 t.2 t.4 t.5 ");
    EXPECT_EQ(stream.damaged(), 1U);
    EXPECT_LE(stream.open_reader("", From::time(kNow.wall), kNow.wall)->cursor.next, 3U);
    damage(original);
  }
  // The newest and the oldest one.
  for (const char* last : {"5", "1"}) {
    for (const char* change : {"last=1000000000000", "time=9000000000000000000", "time=7", "first=70"}) {
      SCOPED_TRACE(std::string(last) + " " + change);
      damage("UPDATE block SET " + std::string(change) + " WHERE last=" + last + " AND stream=" + row_of("other"));
      StoredStream& stream = *store_->find("other");
      StreamSettings aging;
      aging.age_max = 1h;
      ASSERT_TRUE(store_->declare("other", aging, true, kNow));
      EXPECT_FALSE(store_->has_work(kNow)) << "a damaged time ages nothing";
      EXPECT_LE(stream.next(), 2'000'000U);
      const auto appended = store_->append(stream, {.topic = "new"}, {}, kNow);
      ASSERT_TRUE(appended);
      ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
      const auto newest = stream.message_at(appended->sequence, kNow.wall);
      ASSERT_TRUE(newest && *newest);
      EXPECT_EQ((*newest)->message.time, kNow.wall);
      const std::string delivered = deliver("other");
      EXPECT_NE(delivered.find("t.2 t.3 t.4 "), std::string::npos);
      EXPECT_NE(delivered.find("new "), std::string::npos);
      ASSERT_TRUE(store_->remove("other"));
      ASSERT_TRUE(store_->declare("other", {}, false, kNow));
      for (int i = 1; i <= 5; ++i) {
        const std::string topic = "t." + std::to_string(i);
        ASSERT_TRUE(store_->append(*store_->find("other"), {.topic = topic, .body = as_bytes(topic)}, {}, kNow));
        ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
      }
      while (store_->has_work(kNow)) {
        ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
      }
    }
  }
}

TEST_F(DamageTest, ADamagedRowOfAValueIsReportedAndHidesNoOther) {
  for (const char* change : {"erased=erased+1", "time=7", "topic='t.9'", "erased=7"}) {
    SCOPED_TRACE(change);
    damage("UPDATE kv SET " + std::string(change) + " WHERE revision=3 AND stream=" + row_of("latest"));
    StoredStream& stream = *store_->find("latest");
    EXPECT_EQ(read(stream), "t.1 t.2 ! t.4 t.5 ");
    EXPECT_EQ(deliver("latest"), "t.1 t.2 t.4 t.5 ");
    EXPECT_EQ(stream.message_at(3, kNow.wall).error(), Errc::corrupt);
    EXPECT_EQ(stream.topics_after("", 100, kNow.wall)->topics.size(), 4U);
    EXPECT_GE(stream.damaged(), 1U);
    ASSERT_TRUE(store_->remove("latest"));
    StreamSettings settings;
    settings.keep = Keep::latest;
    ASSERT_TRUE(store_->declare("latest", settings, false, kNow));
    for (int i = 1; i <= 5; ++i) {
      const std::string topic = "t." + std::to_string(i);
      ASSERT_TRUE(store_->append(*store_->find("latest"), {.topic = topic, .body = as_bytes(topic)}, {}, kNow));
    }
    ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
    while (store_->has_work(kNow)) {
      ASSERT_EQ(store_->commit(kNow).disk, Errc::ok);
    }
  }
}

}  // namespace
}  // namespace weft::store

#endif
