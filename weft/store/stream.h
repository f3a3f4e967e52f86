// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/store/consumer_state.h"
#include "weft/store/delayed.h"
#include "weft/store/id_rows.h"
#include "weft/store/id_window.h"
#include "weft/store/latest.h"
#include "weft/store/log.h"
#include "weft/store/settings.h"

namespace weft::store {

// Expect: a condition of an append on its topic. If it is false, the append fails with conflict.
struct Expect {
  std::optional<std::uint64_t> last{};  // the sequence of its newest message; 0: none
  bool absent = false;                  // it has no value: no message, or an erasure
  std::uint64_t instance = 0;           // the life of the stream that counts `last`: Store::instance_of(); 0: any
};

// BatchEntry: a message of a batch, with its condition.
struct BatchEntry {
  NewMessage message;
  Expect expect{};
};

struct Appended {
  std::uint64_t sequence = 0;  // 0: of a message with a delay
  bool duplicate = false;      // `sequence` is the earlier message's
};

class StoredStream;

// StoredConsumer: a named reader whose members share the messages and acknowledge each one.
struct StoredConsumer {
  std::string name;
  ConsumerSettings settings;
  std::optional<Filter> filter;  // none: every topic
  ConsumerState state;
  Cursor cursor{};                 // for new messages; its block is only a cache
  bool changed = false;            // since its last write; the next commit writes it
  bool moved = false;              // the same by deliveries only, which cause no commit
  bool waits_for_disk = false;     // a caller waits until the change survives the faults that the stream survives
  StoredStream* stream = nullptr;  // the stream of the consumer; null: none yet
  Cursor again{};                  // for messages that are due again; its block is only a cache

  [[nodiscard]] TopicPredicate wants() const;
  void count_delivery() noexcept;  // counts a begun delivery
  void change() noexcept;          // the next commit writes it
};

// StoredReader: the position of one reader of a stream.
struct StoredReader {
  Cursor cursor{};
  std::optional<Filter> filter{};  // none: every topic
  std::uint64_t newest_until = 0;  // below this sequence only the newest message of each topic is read
};

struct StoredDelivery {
  ReadMessage read;
  std::uint32_t tries = 0;  // begun deliveries so far, this one included
};

// StoredStream: one stream of a store: its messages, its ids, its consumers.
// Owner: the store. Affinity: the store's thread.
// Invariant: a stream that the next commit must write, for another reason than the age of messages, is on the store's
// list of work.
class StoredStream : public ListHook {
 public:
  static constexpr std::size_t kConsumersMax = 1024;
  static constexpr std::size_t kConsumerNameMax = 255;

  StoredStream(std::uint32_t id, std::string name, StreamSettings settings, std::vector<Filter> topics,
               std::variant<MessageLog, Latest> messages, DelayedMessages delayed, IdSql& id_sql,
               List<StoredStream>& work);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const StreamSettings& settings() const noexcept { return settings_; }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] bool in_memory() const noexcept { return settings_.survives == Survives::nothing; }
  [[nodiscard]] bool takes(std::string_view topic) const noexcept;
  [[nodiscard]] std::uint64_t first() const noexcept;
  [[nodiscard]] std::uint64_t next() const noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  [[nodiscard]] WallTime oldest() const noexcept;

  // Stages a message: it is invisible before the store's commit. A duplicate is not staged: its first answer is given
  // again, whatever `expect` is. A message with a delay waits: it gets its sequence from the first commit at that time
  // or after it. Errors: invalid_argument (the topic has a wrong form, or is not one of the stream's; a delay and an
  // expectation), message_too_large, conflict, resource_exhausted (full; DelayedMessages::kMessagesMax).
  [[nodiscard]] Result<Appended> append(const NewMessage& message, const Expect& expect, WallTime now);

  // Stages all of the messages, with consecutive sequences, or none. Returns that of the first one. If all messages
  // with an id are duplicates, in this order, the batch is one, and its first answer is given again: a caller gives one
  // message of a batch an id of the batch, unless each has an id. Otherwise a duplicate is a conflict. The conditions
  // compare with the topics before the batch. Errors: those of append(); invalid_argument (no messages, an id twice, or
  // a condition on a topic of an earlier one, or a delay); message_too_large (beyond bytes_max in all).
  [[nodiscard]] Result<Appended> append_all(std::span<const BatchEntry> entries, WallTime now);

  // Reading finds committed messages only. Errors: corrupt (the block there is damaged, and the reader stays before
  // it).
  // `now`: a message that is over then is not read.
  [[nodiscard]] Result<StoredReader> open_reader(std::string_view filter, const From& from, WallTime now);
  [[nodiscard]] Result<std::optional<ReadMessage>> read(StoredReader& reader, WallTime now);
  [[nodiscard]] Result<std::optional<ReadMessage>> message_at(std::uint64_t sequence, WallTime now);
  // The same for messages that are near each other: the block of the cursor is used, or replaced.
  [[nodiscard]] Result<std::optional<ReadMessage>> message_at(std::uint64_t sequence, Cursor& cursor, WallTime now);
  // Returns an erasure, too. If the newest message of the topic is over, there is none: no older one takes its place.
  [[nodiscard]] Result<std::optional<ReadMessage>> newest_of(std::string_view topic, WallTime now);
  // Topics after `after`, of at most about `rows` rows.
  [[nodiscard]] Result<TopicPage> topics_after(std::string_view after, std::size_t rows, WallTime now);

  // LastScan: the search for the newest message that a filter passes, a part at a time.
  struct LastScan {
    std::string after{};
    std::uint64_t newest = 0;  // 0: none so far
  };
  [[nodiscard]] static bool needs_scan(const From& from, const std::optional<Filter>& filter) noexcept {
    return from.kind == From::Kind::last && filter;
  }
  // Continues by about `rows` rows. Returns true at the end; then position_of() is the position to read from.
  [[nodiscard]] Result<bool> scan_last(LastScan& scan, const Filter& filter, std::size_t rows, WallTime now);
  [[nodiscard]] std::uint64_t position_of(const LastScan& scan) const noexcept;

  [[nodiscard]] StoredConsumer* find_consumer(std::string_view name) noexcept;
  [[nodiscard]] const std::map<std::string, std::unique_ptr<StoredConsumer>, std::less<>>& consumers() const noexcept {
    return consumers_;
  }
  // A new consumer, not in the database. `next`: its begin, if the caller has found it by a scan; 0: the settings
  // decide. Errors: invalid_argument, not_supported, conflict (the only one of a work stream), resource_exhausted.
  [[nodiscard]] Result<std::unique_ptr<StoredConsumer>> make_consumer(std::string_view name,
                                                                      const ConsumerSettings& settings,
                                                                      std::uint64_t next = 0);
  // Another `from` moves the consumer there, and forgets the deliveries without an acknowledgement. After an error the
  // consumer is unchanged. Errors: invalid_argument, not_supported (another filter, or no such begin).
  [[nodiscard]] Result<void> change_consumer(StoredConsumer& consumer, const ConsumerSettings& settings,
                                             std::uint64_t next = 0);
  StoredConsumer& add_consumer(std::unique_ptr<StoredConsumer> consumer);
  void remove_consumer(std::string_view name);

  // The next message for the consumer: one that is due again, before a new one. It skips those beyond tries_max: the
  // caller takes them with exhausted(). The message goes into the queue of the holder; without a holder its delivery
  // begins. Returns nullopt also if the consumer's cursor has passed enough.
  [[nodiscard]] Result<std::optional<StoredDelivery>> next_delivery(StoredConsumer& consumer, Instant now,
                                                                    WallTime wall, Holder holder);
  // A due message that was delivered tries_max times. It stays until the caller acknowledges it.
  struct Exhausted {
    std::uint64_t sequence = 0;
    std::uint32_t tries = 0;
  };
  [[nodiscard]] std::optional<Exhausted> exhausted(StoredConsumer& consumer, Instant now);

  void add_work() noexcept {  // idempotent
    if (!hooked()) {
      work_->push_back(*this);
    }
  }
  // Whether the next commit writes it. Leaves the list if there is no work, and joins it if there is some.
  bool update_work() noexcept;
  // The time at which its oldest message exceeds the age of the settings, the bytes of messages that are over are to be
  // removed, or a message with a delay is due after the next ns; WallTime::max(): never.
  [[nodiscard]] WallTime ages_at() const noexcept;
  // The time in the store's list, by ages_at().
  [[nodiscard]] WallTime listed_age() const noexcept { return listed_age_; }
  void set_listed_age(WallTime age) noexcept { listed_age_ = age; }

  // For the store. `age`: retention may remove messages before this time; `floor`: also those below this sequence.
  [[nodiscard]] Result<void> open(std::uint64_t next, std::uint64_t purged, WallTime now);
  // Inside a transaction, after open(): writes the rows of the messages' ids, for a store of an older format.
  [[nodiscard]] Result<void> make_id_rows();
  void set_settings(StreamSettings settings, std::vector<Filter> topics);
  // After its removal: gives a part of its memory back. Returns true when the rest is small.
  [[nodiscard]] bool free_some() noexcept { return ids_.free_some(kIdsPerCommit) && delayed_.free_some(kIdsPerCommit); }
  [[nodiscard]] bool has_staged() const noexcept { return staged_count() != 0 || delayed_.has_staged(); }
  [[nodiscard]] std::uint64_t staged_count() const noexcept;
  [[nodiscard]] const DelayedMessages& delayed() const noexcept { return delayed_; }
  // Stages the messages that are due, in the commit of the turn. Their ids are not compared: each was acknowledged.
  void stage_due(WallTime now, DelayedMessages::Budget& budget);
  [[nodiscard]] Result<void> write_staged();
  struct DropBudget;
  [[nodiscard]] Result<void> write_drops(WallTime now, DropBudget& budget);
  [[nodiscard]] bool must_drop(WallTime now) const noexcept;
  // The caller writes the returned sequence of purge_before() into the row of the stream, and calls set_purged() after
  // the commit: then no message before it is read. The next commits remove the remaining rows.
  [[nodiscard]] Result<std::uint64_t> purge_before(std::uint64_t sequence);
  void set_purged(std::uint64_t before) noexcept;
  [[nodiscard]] bool has_purged_rows() const noexcept;
  [[nodiscard]] Result<void> purge_topic(std::string_view topic);  // fails with not_supported for a log
  void keep_staged();
  void drop_staged();
  // Messages that the bound of bytes removed: of a work stream those that were not acknowledged, of a stream of the
  // latest those that were the newest of their topics.
  [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }
  [[nodiscard]] std::uint64_t dropped_unread() const noexcept { return dropped_unread_; }
  [[nodiscard]] std::uint64_t damaged() const noexcept {  // damaged blocks and rows that were read
    return damaged_ + delayed_.damaged();
  }
  void count_damaged_row() noexcept { ++damaged_; }

  static constexpr std::size_t kDropsPerCommit = 64;
  static constexpr std::size_t kSweepRows = 256;
  static constexpr std::uint64_t kDropBytesPerCommit = 4 * 1024 * 1024;
  static constexpr std::uint64_t kDropTopicsPerCommit = 2048;  // rows of topics that go with rows of messages
  static constexpr std::uint64_t kEvictTopicsPerCommit = 8192;
  // Rows of messages and topics that go at most, where those that go are smaller than those that come.
  static constexpr std::uint64_t kEvictRowsPerCommit = 32'768;
  static constexpr std::uint64_t kEvictValuesPerCommit =
      8'192;  // of the latest: each leaves an erasure, four times the work
  // DropBudget: the rest that one commit may remove, of all streams together. Beyond it a stream removes as many
  // messages as come, and a full stream as many bytes.
  struct DropBudget {
    std::size_t rows = kDropsPerCommit;
    std::uint64_t bytes = kDropBytesPerCommit;
    std::uint64_t topics = kDropTopicsPerCommit;
    bool sweeps = true;  // one of them a commit
    [[nodiscard]] bool spent() const noexcept { return rows == 0 || bytes == 0 || topics == 0; }
    void take(const MessageLog::Dropped& dropped) noexcept {
      rows -= std::min<std::size_t>(rows, 1);
      bytes -= std::min(bytes, dropped.bytes);
      topics -= std::min(topics, dropped.topics);
    }
  };
  static constexpr std::size_t kIdsPerCommit = 4096;  // that leave the window, or whose memory is freed
  static constexpr std::size_t kLookUpCost = 16;      // messages passed in the time of one look-up
  static constexpr std::size_t kDamagedMax = 4096;    // places whose damage counts once

 private:
  void count_damage(const Error& error, std::uint64_t sequence);
  [[nodiscard]] Result<TopicLast> last_of(std::string_view topic, WallTime now);
  [[nodiscard]] Result<std::uint64_t> resolve(const From& from, const std::optional<Filter>& filter, WallTime now);
  // Of a stream that has newer messages, a clock that went back shows none again that was over.
  [[nodiscard]] WallTime time_of(WallTime now) const noexcept { return std::max(now, newest_kept_); }
  [[nodiscard]] Result<std::uint64_t> begin_of(const ConsumerSettings& settings, const std::optional<Filter>& filter,
                                               std::uint64_t next);
  [[nodiscard]] Result<void> drop_up_to(std::uint64_t before, WallTime age, DropBudget& budget);
  [[nodiscard]] Result<void> evict(std::uint64_t before, WallTime now);  // down to bytes_max
  [[nodiscard]] Result<void> drop_over(std::uint64_t before, WallTime now, DropBudget& budget);
  [[nodiscard]] bool must_sweep() const noexcept;
  [[nodiscard]] Result<void> sweep(WallTime now, DropBudget& budget);
  [[nodiscard]] std::uint64_t unread_of(const MessageLog::Dropped& dropped) const noexcept;
  [[nodiscard]] Result<void> check_message(const NewMessage& message) const;
  [[nodiscard]] Result<void> check_expectation(std::string_view topic, const Expect& expect, WallTime time);
  // The room of a message or of a batch, after which stage_with_id() takes each message.
  [[nodiscard]] Result<void> take_room(const NewMessage& message);
  [[nodiscard]] Result<void> take_room(std::span<const BatchEntry> entries, std::size_t size);
  // `replaced`: the bytes of the values whose place the `size` bytes take. Counts a refusal.
  [[nodiscard]] Result<void> check_room(std::uint64_t size, std::uint64_t replaced);
  [[nodiscard]] Result<std::optional<std::uint64_t>> find_batch(std::span<const BatchEntry> entries) const;
  std::uint64_t stage(const NewMessage& message, WallTime time);
  std::uint64_t stage_with_id(const NewMessage& message, WallTime time);
  [[nodiscard]] Result<void> check_delayed(const NewMessage& message, const Expect& expect);
  // The sequence of the message that had the id within the window; 0: it had a delay.
  [[nodiscard]] std::optional<std::uint64_t> find_id(std::string_view id) const;
  [[nodiscard]] std::size_t staged_bytes() const noexcept;
  [[nodiscard]] std::uint64_t floor() const noexcept;  // below it no message is needed any longer
  [[nodiscard]] std::uint64_t purged() const noexcept;
  [[nodiscard]] WallTime age_limit(WallTime now) const noexcept;
  // An id of an earlier time is unknown, although the window may have it.
  [[nodiscard]] WallTime ids_since() const noexcept { return newest_kept_ - settings_.same_id_window; }
  [[nodiscard]] WallTime delayed_ids_since() const noexcept {
    return std::max(newest_kept_, delayed_.newest()) - settings_.same_id_window;
  }

  std::uint32_t id_;
  std::string name_;
  StreamSettings settings_;
  std::vector<Filter> topics_;  // empty: every topic
  std::variant<MessageLog, Latest> messages_;
  DelayedMessages delayed_;
  IdWindow ids_;
  IdSql* id_sql_;
  List<StoredStream>* work_;
  WallTime listed_age_ = WallTime::max();
  std::uint64_t ids_from_ = 0;  // rows of ids below this sequence were removed
  WallTime newest_{};           // of staged messages, too
  WallTime newest_kept_{};      // of committed ones
  std::map<std::string, std::unique_ptr<StoredConsumer>, std::less<>> consumers_;
  std::vector<MessageLog::Dropped> drops_;  // of the transaction
  // Of a nearly full work stream: removes finished jobs after an unfinished one. A commit reads kSweepRows blocks.
  struct Sweep {
    unsigned owed = 2;        // sweeps of this life, whatever it acknowledges
    std::uint64_t from = 0;   // 0: not under way
    std::uint64_t acked = 0;  // acknowledgements at the begin of the last sweep
    std::uint64_t refused = 0;
  };
  Sweep sweep_;
  Sweep sweeping_;              // the state after the transaction
  std::uint64_t refused_ = 0;   // messages that found the stream full
  std::uint64_t evicting_ = 0;  // by it
  std::uint64_t evicted_ = 0;
  std::uint64_t damaged_ = 0;
  std::set<std::uint64_t> damaged_at_;
  std::uint64_t dropped_unread_ = 0;  // unacknowledged messages that retention removed
};

// The filter of a text; an empty text is every topic. Errors: invalid_argument, message_too_large.
[[nodiscard]] Result<std::optional<Filter>> parse_optional_filter(std::string_view text) noexcept;
[[nodiscard]] Result<std::vector<Filter>> parse_filters(const std::vector<std::string>& texts);

}  // namespace weft::store
