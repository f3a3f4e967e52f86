// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/store/database.h"
#include "weft/store/delayed.h"
#include "weft/store/id_rows.h"
#include "weft/store/latest.h"
#include "weft/store/log.h"
#include "weft/store/schema.h"
#include "weft/store/store.h"

namespace weft::store {

// Side: one database of a store, and the statements that the store itself runs.
struct Store::Side {
  Database database;
  LogSql log;
  LatestSql latest;
  IdSql ids;
  DelayedSql delayed;
  Statement insert_stream, update_stream, remove_stream, list_streams, set_has_ids, set_purged, set_name, set_sum,
      mend_stream;
  Statement write_consumer, remove_consumer, remove_consumers, list_consumers;
  Statement clear_blocks, clear_topics, clear_values, clear_ids, clear_delayed, clear_delayed_ids;
  std::vector<std::uint32_t> gone{};  // removed streams that still have rows

  [[nodiscard]] static Result<std::unique_ptr<Side>> open(const DatabaseOptions& options) {
    auto side = std::make_unique<Side>();
    side->database = WEFT_TRY(open_database(options));
    side->log = WEFT_TRY(LogSql::prepare(side->database));
    side->latest = WEFT_TRY(LatestSql::prepare(side->database));
    side->ids = WEFT_TRY(IdSql::prepare(side->database));
    side->delayed = WEFT_TRY(DelayedSql::prepare(side->database));
    const Database::Prepared all[] = {
        {&side->insert_stream, "INSERT INTO stream(name, settings, next, has_ids) VALUES(?,?,1,1) RETURNING id"},
        {&side->update_stream, "UPDATE stream SET settings=? WHERE id=?"},
        {&side->mend_stream, "UPDATE stream SET name=?, settings=?, next=?, purged=1, has_ids=1 WHERE id=?"},
        {&side->remove_stream, "DELETE FROM stream WHERE id=?"},
        {&side->list_streams,
         "SELECT id, name, settings, next, has_ids, purged,"
         " sum IS NULL OR sum=weft_sum(id, name, settings, next, has_ids, purged) FROM stream ORDER BY id"},
        {&side->set_has_ids, "UPDATE stream SET has_ids=1 WHERE id=?"},
        {&side->set_purged, "UPDATE stream SET purged=max(purged, ?1), next=max(next, ?2) WHERE id=?3"},
        {&side->set_name, "UPDATE stream SET name=? WHERE id=?"},
        {&side->set_sum, "UPDATE stream SET sum=weft_sum(id, name, settings, next, has_ids, purged) WHERE id=?"},
        {&side->write_consumer,
         "INSERT INTO consumer(stream, name, settings, next, pending, sum)"
         " VALUES(?1,?2,?3,?4,?5,weft_sum(?1,?2,?3,?4,?5)) ON CONFLICT(stream, name) DO UPDATE SET"
         " settings=excluded.settings, next=excluded.next, pending=excluded.pending, sum=excluded.sum"},
        {&side->remove_consumer, "DELETE FROM consumer WHERE stream=? AND name=?"},
        {&side->remove_consumers, "DELETE FROM consumer WHERE stream=?"},
        {&side->list_consumers,
         "SELECT name, settings, next, pending, sum IS NULL OR sum=weft_sum(stream, name, settings, next, pending)"
         " FROM consumer WHERE stream=?"},
        {&side->clear_blocks,
         "DELETE FROM block WHERE rowid IN (SELECT rowid FROM block WHERE stream=? LIMIT 32) RETURNING 1"},
        {&side->clear_topics,
         "DELETE FROM topic WHERE stream=?1 AND topic IN (SELECT topic FROM topic WHERE stream=?1 LIMIT 512) RETURNING "
         "1"},
        {&side->clear_values,
         "DELETE FROM kv WHERE rowid IN (SELECT rowid FROM kv WHERE stream=? LIMIT 128) RETURNING 1"},
        {&side->clear_ids, "DELETE FROM id WHERE rowid IN (SELECT rowid FROM id WHERE stream=? LIMIT 128) RETURNING 1"},
        {&side->clear_delayed,
         "DELETE FROM delayed WHERE rowid IN (SELECT rowid FROM delayed WHERE stream=? LIMIT 128) RETURNING 1"},
        {&side->clear_delayed_ids,
         "DELETE FROM delayed_id WHERE rowid IN (SELECT rowid FROM delayed_id WHERE stream=? LIMIT 128) RETURNING 1"},
    };
    WEFT_TRY(side->database.prepare_all(all));
    return side;
  }

  // Inside a transaction: a change of the row of a stream, and its checksum.
  [[nodiscard]] Result<void> change(std::uint32_t stream, Statement& statement) {
    WEFT_TRY(statement.run());
    return set_sum.set(0, stream).run();
  }
};

struct Store::StreamRow {
  std::uint32_t id;
  std::string name;
  std::string settings;
  std::uint64_t next;
  std::uint64_t purged;
  bool has_ids;
  bool whole;
};

inline constexpr Error kDamagedStream(Errc::corrupt, "the rows of the stream are damaged: redeclare or remove it");

// Fails with invalid_argument if the name has a wrong form.
[[nodiscard]] Result<void> check_stream_name(std::string_view name) noexcept;

}  // namespace weft::store
