// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/store/block.h"
#include "weft/store/database.h"
#include "weft/store/id_rows.h"
#include "weft/store/id_window.h"
#include "weft/store/settings.h"

namespace weft::store {

// DelayedSql: the statements of the delayed messages of all streams of one database.
class DelayedSql {
 public:
  [[nodiscard]] static Result<DelayedSql> prepare(Database& database);

  Statement insert, read_due, read_damaged, remove, set_due, find_next, read_size, read_last_id;
  IdSql ids;
};

// DelayedMessages: the messages of one stream that are kept and not readable yet.
// Owner: a StoredStream. Affinity: the store's thread. Cost: a message is one row until it is due; no memory, except
// that of its id.
// Invariants:
// 1. A row is removed by the transaction that writes its message into the stream.
// 2. Messages leave in the order of their times; those of one time in the order in which they came.
// 3. An id is known for the window of the stream after its publish, also when its message has left.
// 4. A row whose time does not match its message gets the message's time. A row without a whole message is removed, and
//    counted as damaged.
class DelayedMessages {
 public:
  static constexpr std::uint64_t kMessagesMax = 1'000'000;

  DelayedMessages(DelayedSql& sql, std::uint32_t stream) : sql_(&sql), stream_(stream) {}  // throws std::bad_alloc
  // `ids_since`, of each call: earlier ids are unknown; empty: ids are not compared. Returns the number of damaged rows
  // of ids.
  [[nodiscard]] Result<std::uint64_t> open(std::optional<WallTime> ids_since);

  // Requires BlockBuilder::check() and a delay.
  void stage(const NewMessage& message, WallTime now, std::optional<WallTime> ids_since);
  [[nodiscard]] static std::size_t size_of(const NewMessage& message) noexcept {
    return kBlockHeader + BlockBuilder::size_of(message);
  }

  // Budget: the rest that one commit may move, of all streams together.
  struct Budget {
    std::size_t messages = 1024;
    std::size_t bytes = 1024 * 1024;
  };
  using Enter = std::function<void(const NewMessage& message)>;
  // Calls `enter` for messages that are due at `now`, within the budget. write_staged() removes their rows. After an
  // error the next ones are due in a second.
  [[nodiscard]] Result<void> take_due(WallTime now, Budget& budget, const Enter& enter);

  // write_staged() happens inside a transaction; keep_staged() after its commit, drop_staged() after its failure.
  [[nodiscard]] Result<void> write_staged();
  void keep_staged();
  void forget_ids(WallTime before, std::size_t most) { ids_.forget_before(before, most); }
  void drop_staged();
  [[nodiscard]] bool has_staged() const noexcept { return !staged_.empty() || !changes_.empty(); }
  [[nodiscard]] std::size_t staged_count() const noexcept { return staged_.size(); }      // that came
  [[nodiscard]] std::size_t moving_count() const noexcept { return moving_; }             // that leave for the stream
  [[nodiscard]] std::uint64_t count() const noexcept { return count_ + staged_.size(); }  // staged ones included
  // After the next commit: with staged messages, and without those that leave.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    const std::uint64_t all = bytes_ + staged_bytes_;
    return all - std::min<std::uint64_t>(all, leaving_bytes_);  // a damaged row may have had another size
  }
  [[nodiscard]] WallTime next_due() const noexcept { return next_due_; }  // max: there is none
  [[nodiscard]] bool knows(std::string_view id, WallTime ids_since) const {
    return ids_.find(id, ids_since).has_value();
  }
  [[nodiscard]] WallTime newest() const noexcept { return newest_kept_; }    // the time of the newest committed publish
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }  // rows
  [[nodiscard]] bool free_some(std::size_t most) noexcept { return ids_.free_some(most); }

 private:
  struct Staged {
    std::uint64_t number;
    WallTime due;
    std::vector<std::uint8_t> bytes;  // a block of one message, whose time is `due`
  };
  // Change: of a row that exists.
  struct Change {
    std::int64_t row;
    std::size_t bytes;
    bool leaves = true;
    WallTime due{};  // of a row that stays
    bool damaged = false;
  };
  void take_row(const Statement& read, bool may_leave, Budget& budget, const Enter& enter);
  void find_next() noexcept;

  DelayedSql* sql_;
  std::uint32_t stream_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  WallTime next_due_ = WallTime::max();
  bool has_damaged_ = false;  // open() found rows whose checksum is wrong
  std::uint64_t damaged_ = 0;
  IdWindow ids_;                // by number
  std::uint64_t ids_from_ = 0;  // rows of ids below this number were removed
  std::uint64_t next_ = 1;      // the number of the next message
  std::uint64_t next_kept_ = 1;
  WallTime newest_{};  // of publishes
  WallTime newest_kept_{};
  std::vector<Staged> staged_;
  std::size_t staged_bytes_ = 0;
  std::vector<Change> changes_;
  std::size_t leaving_bytes_ = 0;
  std::size_t moving_ = 0;
};

}  // namespace weft::store
