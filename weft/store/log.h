// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/store/block.h"
#include "weft/store/database.h"
#include "weft/store/row_sum.h"

namespace weft::store {

// Whether a reader takes the messages of a topic. Empty: of every topic.
using TopicPredicate = std::function<bool(std::string_view topic)>;

// The newest message of a topic. Sequence 0: the topic has no message.
struct TopicLast {
  std::uint64_t sequence = 0;
  bool erased = false;
  std::size_t size = 0;  // of Latest: bytes in the table
  WallTime expires = WallTime::max();
};

// Cursor: the position of a reader. The block stays in memory until the reader leaves it.
struct Cursor {
  std::uint64_t next = 1;
  std::shared_ptr<const Block> block{};
  // About the number of unwanted messages that reads pass, counted in `passed`, which the caller sets back. Beyond it a
  // read passes one, and finds none: the cursor is before the newest message. A block whose list of topics has no
  // wanted one costs kBlockCost of them, and one that is read from the file its bytes divided by kMessageCost.
  std::size_t scan_max = ~std::size_t{0};
  std::size_t passed = 0;
  static constexpr std::size_t kBlockCost = 16;
  static constexpr std::size_t kMessageCost = 256;  // bytes of a block that take the time of a message
  [[nodiscard]] bool passed_enough() const noexcept { return passed >= scan_max; }
};

// Topics after another one, in byte order, and the begin of the next page.
struct TopicPage {
  struct Entry {
    std::string topic;
    std::uint64_t last;  // sequence of the newest message
  };
  std::vector<Entry> topics;           // those with a message, and of Latest with a value
  std::vector<std::uint64_t> damaged;  // sequences of damaged rows, which are left out
  std::string after;                   // the last topic of the page
  bool more = false;
};

// A message and the block to which its views point.
struct ReadMessage {
  std::shared_ptr<const Block> block;
  StoredMessage message;
};

// LogSql: the statements of all logs of one database.
class LogSql {
 public:
  [[nodiscard]] static Result<LogSql> prepare(Database& database);

  Statement insert_block, insert_topic, find_topic, remove_topic, read_from, read_first, read_newest, read_size,
      drop_block, set_next, find_row, list_topics, find_end, find_over, set_end, replace_block, remove_over;
};

// MessageLog: the messages of one stream that keeps all of them, in blocks.
// Owner: a Stream. Affinity: the store's thread. Cost: a batch is one row; the newest blocks, up to kCacheMax bytes,
// are also in memory.
// Invariants:
// 1. Sequences begin at 1, and each is given once. A staged message is not read before keep_staged().
// 2. write_staged() happens inside a transaction; keep_staged() after its commit, drop_staged() after its failure.
class MessageLog {
 public:
  static constexpr std::size_t kCacheMax = 1024 * 1024;
  static constexpr std::size_t kTopicsTextMax = 4096;

  MessageLog(LogSql& sql, std::uint32_t stream) : sql_(&sql), stream_(stream) {}
  // A block is at most an eighth of the stream's bound: a full stream loses its oldest messages, and no more than that.
  void set_bytes_max(std::uint64_t bytes_max) noexcept;
  // `next` and `purged`: the stream row's.
  [[nodiscard]] Result<void> open(std::uint64_t next, std::uint64_t purged);

  // Requires BlockBuilder::check(). Times never decrease. Returns the message's sequence.
  std::uint64_t stage(const NewMessage& message, WallTime time);
  [[nodiscard]] Result<void> write_staged();
  void keep_staged();
  void drop_staged() noexcept;
  [[nodiscard]] std::size_t staged_bytes() const noexcept { return staged_bytes_; }
  [[nodiscard]] std::uint64_t trimmed_bytes() const noexcept { return 0; }

  [[nodiscard]] Result<TopicLast> last_of(std::string_view topic);  // staged messages count

  // The first message from cursor.next on that is not over at `now`, and on whose topic the predicate passes; the
  // cursor is then after it. Returns nullopt if the cursor is after the newest message, or has passed scan_max others.
  // Fails with corrupt if the block at the cursor is damaged; the cursor is then before it.
  [[nodiscard]] Result<std::optional<ReadMessage>> read(Cursor& cursor, const TopicPredicate& wants, WallTime now);
  // the sequence from which to read all messages from `time` on
  [[nodiscard]] Result<std::uint64_t> first_at(WallTime time);
  // The sequence after the block that holds `sequence`, or after the next one; also if that block is damaged.
  [[nodiscard]] Result<std::uint64_t> skip_block(std::uint64_t sequence);
  // Reads at most `rows` rows, 2 at least.
  [[nodiscard]] Result<TopicPage> topics_after(std::string_view after, std::size_t rows, WallTime now);

  // Inside a transaction. Removes the oldest block if all its messages are below `before` and older than `age`. Returns
  // nullopt if the block does not qualify, or if there is none. It may remove the last block, too.
  struct Dropped {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t last = 0;    // sequence
    std::uint64_t topics = 0;  // of MessageLog: the rows of topics that went with them or gave way to later ones
    std::uint64_t newest = 0;  // of Latest: those that were the newest values of their topics
    bool alone = false;        // of MessageLog: earlier messages stay
  };
  [[nodiscard]] Result<std::optional<Dropped>> drop_oldest(std::uint64_t before, WallTime age);
  // Inside a transaction. Of the next `rows` blocks from `from` on, removes those whose messages all pass `done`, but
  // `drops_max` at most; then `from` is after them, or 0 at the end. Fewer blocks, of large ones or of those with many
  // topics.
  using DonePredicate = std::function<bool(std::uint64_t first, std::uint64_t last)>;
  [[nodiscard]] Result<void> drop_done(std::uint64_t& from, std::size_t rows, std::size_t drops_max,
                                       const DonePredicate& done, std::vector<Dropped>& dropped);
  // Inside a transaction. Removes the messages below `before` from the block that has both these and later ones.
  // Errors: corrupt.
  [[nodiscard]] Result<std::optional<Dropped>> trim(std::uint64_t before);
  // Inside a transaction. Removes the messages that are over from the next block that ends before `now`, and the block
  // if it has no others. Returns nullopt if there is none, or it is not below `before`.
  [[nodiscard]] Result<std::optional<Dropped>> drop_over(std::uint64_t before, WallTime now);
  void keep_dropped(const Dropped& dropped);  // after the commit
  // The time at which drop_over() has the next block; max: never.
  [[nodiscard]] WallTime ends() const noexcept { return ends_; }
  // Messages below the sequence are invisible from now on; drop_oldest() removes their rows.
  void set_purged(std::uint64_t before) noexcept;
  [[nodiscard]] std::uint64_t purged() const noexcept { return purged_; }

  [[nodiscard]] std::uint64_t first() const noexcept { return first_; }  // oldest kept; next() if there is none
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }    // of the next committed message
  [[nodiscard]] std::uint64_t next_staged() const noexcept { return next_staged_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  // Whether the messages of the oldest block are all below `before`: otherwise drop_oldest() removes none.
  [[nodiscard]] bool may_drop(std::uint64_t before) const noexcept { return has_rows_ && oldest_last_ < before; }
  [[nodiscard]] bool has_rows() const noexcept { return has_rows_; }  // also those of purged messages
  [[nodiscard]] WallTime oldest() const noexcept { return oldest_; }  // newest time of the oldest block
  [[nodiscard]] WallTime newest() const noexcept { return newest_; }
  [[nodiscard]] bool empty() const noexcept { return first_ == next_; }

 private:
  struct StagedBlock {
    std::vector<std::uint8_t> bytes;
    std::uint64_t first;
    std::uint64_t last;
    WallTime time;
    std::set<std::string> topics;
    WallTime ends = WallTime::max();  // BlockBuilder::half_over()
  };
  struct RowHead {
    std::uint64_t first;
    std::uint64_t last;
    WallTime time;
    bool whole;
  };
  [[nodiscard]] RowHead head_of(Statement& row) const noexcept;
  [[nodiscard]] Result<void> drop_block(const Dropped& dropped, const std::set<std::string>& topics);
  [[nodiscard]] Dropped dropped_of(const BlockRow& row, Bytes bytes, std::set<std::string>& topics) const;
  void close_block();
  [[nodiscard]] Result<void> insert_block(const StagedBlock& block);
  [[nodiscard]] static std::string topics_text(const BlockRow& row, const std::set<std::string>& topics);
  [[nodiscard]] Result<void> refresh_first();
  [[nodiscard]] std::shared_ptr<const Block> cached(std::uint64_t sequence) const noexcept;
  // The next block that may hold a wanted message; the cursor passes the others. Returns null if there is none, or the
  // cursor has passed enough.
  [[nodiscard]] Result<std::shared_ptr<const Block>> load(Cursor& cursor, const TopicPredicate& wants);

  LogSql* sql_;
  std::uint32_t stream_;
  std::size_t block_max_ = kBlockMax;
  std::uint64_t first_ = 1;
  std::uint64_t purged_ = 1;  // messages below it are purged, although their rows may exist
  bool has_rows_ = false;
  std::uint64_t oldest_last_ = 0;  // of the oldest block
  std::uint64_t next_ = 1;
  std::uint64_t bytes_ = 0;
  WallTime oldest_{};
  WallTime newest_{};
  WallTime ends_ = WallTime::max();

  BlockBuilder builder_;
  std::set<std::string> builder_topics_;
  WallTime builder_time_{};
  std::uint64_t builder_first_ = 1;
  std::vector<StagedBlock> staged_;
  std::unordered_map<std::string, TopicLast> staged_topics_;
  std::uint64_t next_staged_ = 1;
  std::size_t staged_bytes_ = 0;

  std::deque<std::shared_ptr<const Block>> cache_;  // the newest blocks, without a gap
  std::size_t cache_bytes_ = 0;
};

}  // namespace weft::store
