// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/store/block.h"
#include "weft/store/database.h"
#include "weft/store/log.h"

namespace weft::store {

// LatestSql: the statements of all tables of newest values of one database.
class LatestSql {
 public:
  [[nodiscard]] static Result<LatestSql> prepare(Database& database);

  Statement insert, trim, read_from, find_last, find_revision, list_topics, read_size, read_newest, read_first,
      find_oldest, drop_revision, drop_topic, set_next, find_row, find_end, find_over, set_end;
};

// Latest: the newest values of each topic of one stream, in the order of their revisions. A revision is a sequence.
// Owner: a Stream. Affinity: the store's thread. Cost: a value is one row.
// Invariants: those of MessageLog; the stream keeps the newest `history` values of a topic, or fewer.
class Latest {
 public:
  Latest(LatestSql& sql, std::uint32_t stream, std::uint32_t history) noexcept
      : sql_(&sql), stream_(stream), history_(history) {}
  [[nodiscard]] Result<void> open(std::uint64_t next, std::uint64_t purged);
  void set_history(std::uint32_t history) noexcept { history_ = history; }

  std::uint64_t stage(const NewMessage& message, WallTime time);
  [[nodiscard]] Result<void> write_staged();
  void keep_staged();
  void drop_staged() noexcept;
  [[nodiscard]] std::size_t staged_bytes() const noexcept { return staged_bytes_; }
  // The bytes of values that write_staged() removed, because newer values of the same topics were staged.
  [[nodiscard]] std::uint64_t trimmed_bytes() const noexcept { return trimmed_bytes_; }
  // Bytes of values that staged ones replace, in the caller's count.
  void supersede(std::uint64_t bytes) noexcept { superseded_bytes_ += bytes; }
  [[nodiscard]] std::uint64_t superseded_bytes() const noexcept { return superseded_bytes_; }

  [[nodiscard]] Result<TopicLast> last_of(std::string_view topic);
  // The value of a revision, or the newest one of a topic. Returns nullopt if there is none. An erasure counts as a
  // value.
  [[nodiscard]] Result<std::optional<ReadMessage>> value_at(std::uint64_t revision);
  [[nodiscard]] Result<std::optional<ReadMessage>> read(Cursor& cursor, const TopicPredicate& wants, WallTime now);
  [[nodiscard]] Result<std::uint64_t> first_at(WallTime time);
  [[nodiscard]] Result<std::uint64_t> skip_block(std::uint64_t revision);  // after the next value, damaged or not
  // Like MessageLog's.
  [[nodiscard]] Result<TopicPage> topics_after(std::string_view after, std::size_t rows, WallTime now);

  // Inside a transaction.
  [[nodiscard]] Result<std::optional<MessageLog::Dropped>> drop_oldest(std::uint64_t before, WallTime age);
  // The same for a bound of bytes: the topic of a newest value is erased, and readers receive the erasure. Of these
  // erasures, the committed ones go first: otherwise they would push out values in their turn.
  [[nodiscard]] Result<std::optional<MessageLog::Dropped>> evict_oldest(std::uint64_t before, WallTime time);
  // The next value that is over before `now`. With the newest value of a topic its older ones go, and readers receive
  // an erasure, which is over after kErasureLives.
  [[nodiscard]] Result<std::optional<MessageLog::Dropped>> drop_over(std::uint64_t before, WallTime now, WallTime time);
  static constexpr Duration kErasureLives = std::chrono::minutes(10);
  [[nodiscard]] WallTime ends() const noexcept { return ends_; }  // like MessageLog's
  static constexpr std::size_t kErasuresMax = 65'536;             // remembered ones
  // Whether the next evict_oldest() removes such an erasure.
  [[nodiscard]] bool evicts_erasure() const noexcept { return erasures_dropped_ < erasures_.size(); }
  [[nodiscard]] Result<MessageLog::Dropped> drop_topic(std::string_view topic);
  void keep_dropped(const MessageLog::Dropped& dropped);
  void set_purged(std::uint64_t before) noexcept;  // like MessageLog's
  [[nodiscard]] std::uint64_t purged() const noexcept { return purged_; }

  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  [[nodiscard]] std::uint64_t next_staged() const noexcept { return next_staged_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool may_drop(std::uint64_t before) const noexcept { return has_rows_ && oldest_revision_ < before; }
  [[nodiscard]] bool has_rows() const noexcept { return has_rows_; }
  [[nodiscard]] WallTime oldest() const noexcept { return oldest_; }
  [[nodiscard]] WallTime newest() const noexcept { return newest_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == next_; }

 private:
  struct Staged {
    std::string topic;
    std::uint64_t revision;
    WallTime time;
    std::vector<std::uint8_t> bytes;  // a block of one message
    bool erased;
    WallTime expires;
  };
  [[nodiscard]] Result<void> refresh_first();
  [[nodiscard]] Result<void> insert(const Staged& staged);
  [[nodiscard]] Result<MessageLog::Dropped> drop_revision(std::uint64_t revision);
  [[nodiscard]] Result<std::uint64_t> erase_dropped(std::string_view topic, WallTime time, Duration time_to_live);
  [[nodiscard]] Result<std::optional<ReadMessage>> row(Statement& statement, std::uint64_t revision);

  LatestSql* sql_;
  std::uint32_t stream_;
  std::uint32_t history_;
  std::uint64_t first_ = 1;
  std::uint64_t purged_ = 1;
  bool has_rows_ = false;
  std::uint64_t oldest_revision_ = 0;  // of all rows
  std::uint64_t next_ = 1;
  std::uint64_t bytes_ = 0;
  WallTime oldest_{};
  WallTime newest_{};
  WallTime ends_ = WallTime::max();

  std::vector<Staged> staged_;
  std::unordered_map<std::string, TopicLast> staged_topics_;
  std::uint64_t next_staged_ = 1;
  std::size_t staged_bytes_ = 0;
  std::uint64_t trimmed_bytes_ = 0;  // by write_staged()
  std::uint64_t superseded_bytes_ = 0;
  std::deque<std::uint64_t> erasures_;          // revisions of committed ones that evict_oldest() made
  std::size_t erasures_dropped_ = 0;            // of the front, by the transaction
  std::vector<std::uint64_t> erasures_staged_;  // by it
};

}  // namespace weft::store
