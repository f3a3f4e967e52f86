// SPDX-License-Identifier: MIT
#include "weft/store/schema.h"

#include <array>
#include <cstdint>

namespace weft::store {
namespace {

constexpr std::int32_t kApplication = 0x57454654;  // "WEFT"

// stream.next: the sequence of the next message, if no block is left that has it.
// block.topics: the topics in it, one a line; NULL: too many. block.time: of its newest message, ns since 1970.
// consumer.next: the first sequence that was never delivered; pending: see consumer_state.h.
// hub.incarnation: see Store::incarnation().
// kv: the values of streams that keep the latest.
// sum: the checksum of the other columns; NULL: a row that an older format wrote, and nothing changed since. Rows of
// blocks and values have theirs in `topics` and `erased`, before the bytes: see row_sum.h.
// stream.purged: messages below this sequence are gone, though their rows may be there. A stream whose name begins with
// kGoneMark is removed; its rows go a part at a time.
// topic.expires, kv.expires: the time from which on the message is not read; NULL: never. block.expires: the time at
// which half of the bytes of the block are of such messages, or all of its messages are; NULL: never.
// delayed: messages until they are due. bytes: a block of one message, whose time is `due` and whose sequence is the
// number. delayed_id: like `id`, with their numbers.
// id: the ids of the window, see id_rows.h. stream.has_ids: 0 until the ids of an older format's messages are in it.
constexpr std::array<const char*, kFormat> kSteps{
    "CREATE TABLE stream(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL,"
    " next INTEGER NOT NULL);"
    "CREATE TABLE block(stream INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, time INTEGER NOT NULL,"
    " topics TEXT, bytes BLOB NOT NULL);"
    "CREATE UNIQUE INDEX block_last ON block(stream, last);"
    "CREATE TABLE topic(stream INTEGER NOT NULL, topic TEXT NOT NULL, last INTEGER NOT NULL,"
    " PRIMARY KEY(stream, topic)) WITHOUT ROWID;"
    "CREATE TABLE consumer(stream INTEGER NOT NULL, name TEXT NOT NULL, settings TEXT NOT NULL, next INTEGER NOT NULL,"
    " pending BLOB NOT NULL, PRIMARY KEY(stream, name));",

    "CREATE TABLE kv(stream INTEGER NOT NULL, topic TEXT NOT NULL, revision INTEGER NOT NULL, time INTEGER NOT NULL,"
    " erased INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(stream, revision));"
    "CREATE INDEX kv_topic ON kv(stream, topic, revision);"
    "CREATE TABLE hub(id INTEGER PRIMARY KEY CHECK(id=1), incarnation INTEGER NOT NULL);",

    "CREATE TABLE id(stream INTEGER NOT NULL, last INTEGER NOT NULL, bytes BLOB NOT NULL);"
    "CREATE UNIQUE INDEX id_last ON id(stream, last);"
    "ALTER TABLE stream ADD COLUMN has_ids INTEGER NOT NULL DEFAULT 0;",

    "ALTER TABLE stream ADD COLUMN purged INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE stream ADD COLUMN sum INTEGER;"
    "ALTER TABLE consumer ADD COLUMN sum INTEGER;"
    "ALTER TABLE topic ADD COLUMN sum INTEGER;"
    "UPDATE stream SET sum=weft_sum(id, name, settings, next, has_ids, purged);"
    "UPDATE consumer SET sum=weft_sum(stream, name, settings, next, pending);",

    "ALTER TABLE block ADD COLUMN expires INTEGER;"
    "ALTER TABLE topic ADD COLUMN expires INTEGER;"
    "ALTER TABLE kv ADD COLUMN expires INTEGER;"
    "CREATE INDEX block_expires ON block(stream, expires) WHERE expires IS NOT NULL;"
    "CREATE INDEX kv_expires ON kv(stream, expires) WHERE expires IS NOT NULL;",

    "CREATE TABLE delayed(stream INTEGER NOT NULL, due INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE INDEX delayed_due ON delayed(stream, due, number);"
    "CREATE TABLE delayed_id(stream INTEGER NOT NULL, last INTEGER NOT NULL, bytes BLOB NOT NULL);"
    "CREATE INDEX delayed_id_last ON delayed_id(stream, last);",
};

Result<void> upgrade(Database& database, int from) {
  WEFT_TRY(database.begin(Flush::power));
  const auto run = [&]() -> Result<void> {
    for (int step = from; step < kFormat; ++step) {
      WEFT_TRY(database.execute(kSteps[static_cast<std::size_t>(step)]));
    }
    WEFT_TRY(database.set_application_id(kApplication));
    WEFT_TRY(database.set_user_version(kFormat));
    return database.commit();
  };
  const Result<void> done = run();
  if (!done) {
    database.rollback();
  }
  return done;
}

}  // namespace

Result<Database> open_database(const DatabaseOptions& options) {
  Database database = WEFT_TRY(Database::open(options));
  const std::int64_t version = WEFT_TRY(database.user_version());
  const std::int64_t application = WEFT_TRY(database.application_id());
  if (version < 0 || application != (version == 0 ? 0 : kApplication)) {
    return Error(Errc::corrupt, "the file is another program's");
  }
  if (version > kFormat) {
    return Error(Errc::not_supported, "a newer build made the store");
  }
  if (version < kFormat) {
    WEFT_TRY(upgrade(database, static_cast<int>(version)));
  }
  return database;
}

}  // namespace weft::store
