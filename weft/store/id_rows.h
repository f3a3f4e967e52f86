// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/result.h"
#include "weft/store/database.h"
#include "weft/store/id_window.h"

namespace weft::store {

// IdSql: the statements of the ids of all streams of one database. `table`: `id`, or `delayed_id` of messages whose
// sequence is that of DelayedMessages.
class IdSql {
 public:
  [[nodiscard]] static Result<IdSql> prepare(Database& database, std::string_view table = "id");

  Statement insert, list, drop_before;
};

// The ids of a turn's stored messages, as rows of their own: they outlive the messages, which retention, a newer value
// or an acknowledgement removes within the window. A row has at most kIdsInRow ids:
//   0  CRC-32C of all bytes after this number    4  number of the stream
//   8  time of the newest message (8, ns)        16  sequence of the last id
//   24 the ids, one after the other
// An id: distance of its sequence from the one before it (varint), count of leading bytes that it shares with the id
// before it (1), count of its other bytes (1), these bytes. Numbers are big-endian.
inline constexpr std::size_t kIdsInRow = 4096;

// Inside a transaction: writes the ids of the window from `sequence` on, and removes the rows that are older than the
// window. Cost: one row for each kIdsInRow ids.
[[nodiscard]] Result<void> write_ids(IdSql& sql, std::uint32_t stream, const IdWindow& ids, std::uint64_t sequence);

struct ReadIds {
  WallTime newest{};          // of all rows
  std::uint64_t damaged = 0;  // rows that were left out
};
// Adds the ids of the rows from `since` on to the window.
[[nodiscard]] Result<ReadIds> read_ids(IdSql& sql, std::uint32_t stream, WallTime since, IdWindow& ids);

}  // namespace weft::store
