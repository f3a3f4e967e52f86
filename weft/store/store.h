// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/store/database.h"
#include "weft/store/settings.h"
#include "weft/store/stream.h"

namespace weft::store {

struct StoreOptions {
  std::string path{};               // empty: only streams that survive nothing
  std::string vfs{};                // DatabaseOptions::vfs
  std::uint64_t bytes_max = 0;      // DatabaseOptions::bytes_max
  std::uint64_t reserve_bytes = 0;  // DatabaseOptions::reserve_bytes
};

// The times of one call. `wall` is written beside messages; `steady` times deliveries.
struct Now {
  WallTime wall;
  Instant steady;
};

// The id of a dead letter: `stream:sequence:consumer`, at most 255 bytes.
[[nodiscard]] std::string dead_letter_id(std::string_view stream, std::uint64_t sequence, std::string_view consumer);

// Counts since the store was opened.
struct StoreCounts {
  std::uint64_t appended = 0;    // messages that a commit made durable and readable
  std::uint64_t delayed = 0;     // messages with a delay that a commit made durable
  std::uint64_t duplicates = 0;  // messages with a known id
  std::uint64_t refused = 0;     // messages that append() refused, or whose commit failed
  std::uint64_t commits = 0;
  std::uint64_t commits_failed = 0;
  std::uint64_t evicted = 0;       // StoredStream::evicted() of all streams
  std::uint64_t dead_letters = 0;  // messages that went to a topic of dead letters
  std::uint64_t dead_dropped = 0;  // messages beyond tries_max without a topic for them
};

// Store: the streams of one file, and those in memory.
// Owner: a hub. Affinity: one thread. Cost: a turn with messages is one transaction per file; a flush to the disk is
// shared by all messages of the turn.
// has_work() and commit() cost nothing for unchanged streams.
// A turn is any number of calls, then commit(). Appends and acknowledgements of a turn are answered after the commit,
// with its result.
// Invariants:
// 1. A message is read, delivered and acknowledged to its publisher only after the commit of its turn.
// 2. A turn whose commit fails leaves no message. Acknowledgements of consumers stay in memory, and go to the disk with
//    the next commit. On a full disk they are committed alone, by the room of the reserve.
// 3. Streams that survive `nothing` are in a database of their own, in memory: a full disk does not refuse them.
class Store {
 public:
  static constexpr std::size_t kStreamsMax = 1024;
  static constexpr std::size_t kStreamNameMax = 255;

  // Errors: those of open_database().
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(const StoreOptions& options, const Now& now);
  ~Store();

  // A number that grows by at least 2^40 with every open of the file, and is at least the time of the first open in ns
  // since 1970. Without a file it is the time.
  [[nodiscard]] std::uint64_t incarnation() const noexcept { return incarnation_; }
  // The number of this life of the stream. A stream that is removed and made again, or that ended with the memory of
  // its hub, has another one. Sequences of different lives are not related.
  [[nodiscard]] std::uint64_t instance_of(const StoredStream& stream) const noexcept {
    return (stream.in_memory() ? incarnation_ + kMemoryInstances : birth_) + stream.id();
  }

  // Makes the stream, or returns the existing one. `redeclare` changes its settings, except its kind of retention and
  // its `survives`. Durable when it returns. Errors: invalid_argument, not_supported, conflict (other settings),
  // resource_exhausted.
  [[nodiscard]] Result<StoredStream*> declare(std::string_view name, const StreamSettings& settings, bool redeclare,
                                              const Now& now);
  [[nodiscard]] StoredStream* find(std::string_view name) noexcept;  // null if it does not exist, or is damaged
  // The reason why find() finds none: not_found, or corrupt (the rows of the stream are damaged). Then declare() with
  // `redeclare` writes them again, and keeps the undamaged data; remove() removes it.
  [[nodiscard]] Error absence_of(std::string_view name) const noexcept;
  // Names of streams after `after`, damaged ones included.
  [[nodiscard]] std::vector<std::string> names_after(std::string_view after, std::size_t count) const;
  [[nodiscard]] StoredStream* find_topic(
      std::string_view topic) noexcept;  // the first stream by name that names the topic
  // Removes the stream with its messages and consumers: one small transaction. Later commits remove its rows from the
  // file, a part in each.
  [[nodiscard]] Result<void> remove(std::string_view name);  // fails with not_found
  // `instance`: the life that counts the sequence, or 0: any. Fails with conflict if the stream has another one.
  // Between turns; fails with invalid_state while the turn has messages of the stream. Durable when it returns, and no
  // message before the sequence is read: one transaction that removes a bounded number of rows. Later commits remove
  // the others, as long as StoredStream::has_purged_rows(). Fails with not_supported for a log and a topic.
  [[nodiscard]] Result<void> purge_before(StoredStream& stream, std::uint64_t sequence, std::uint64_t instance = 0);
  [[nodiscard]] Result<void> purge_topic(StoredStream& stream, std::string_view topic);
  [[nodiscard]] const std::map<std::string, std::unique_ptr<StoredStream>, std::less<>>& streams() const noexcept {
    return streams_;
  }

  // Errors: those of StoredStream::append(); conflict, also if `expect` has a sequence of another life of the stream.
  [[nodiscard]] Result<Appended> append(StoredStream& stream, const NewMessage& message, const Expect& expect,
                                        const Now& now);

  // The same for a batch: StoredStream::append_all().
  [[nodiscard]] Result<Appended> append_all(StoredStream& stream, std::span<const BatchEntry> entries, const Now& now);

  // Makes the consumer, or returns the existing one. A new one is durable after the next commit; `next` is that of
  // StoredStream::make_consumer, whose errors follow conflict (another declaration has other settings).
  [[nodiscard]] Result<StoredConsumer*> consumer(StoredStream& stream, std::string_view name,
                                                 const ConsumerSettings& settings, bool redeclare,
                                                 std::uint64_t next = 0);
  [[nodiscard]] Result<void> remove_consumer(StoredStream& stream, std::string_view name);  // fails with not_found

  // The next delivery, after the messages beyond tries_max went to their topic of dead letters.
  [[nodiscard]] Result<std::optional<StoredDelivery>> next_delivery(StoredStream& stream, StoredConsumer& consumer,
                                                                    const Now& now, Holder holder = kNoHolder);
  // For a message in the queue of a holder. Returns false if the holder does not have it.
  bool begin(StoredConsumer& consumer, std::uint64_t sequence, Holder holder, const Now& now);
  bool give_back(StoredConsumer& consumer, std::uint64_t sequence, Holder holder, const Now& now);
  // Returns false if the message does not wait for an acknowledgement.
  bool ack(StoredConsumer& consumer, std::uint64_t sequence, bool waits_for_disk);

  // Commits the turn. `disk` and `memory`: the result for streams that survive something, or nothing. If both are ok,
  // the whole turn is durable. `positions`: of consumers of streams that survive something. After outcome_unknown (see
  // Database), open the store again.
  struct Committed {
    Error disk{};
    Error memory{};
    Error positions{};
    [[nodiscard]] Error of(const StoredStream& stream) const noexcept { return stream.in_memory() ? memory : disk; }
  };
  [[nodiscard]] Committed commit(const Now& now);
  // Whether commit() would write: messages, acknowledgements, or removals by retention.
  [[nodiscard]] bool has_work(const Now& now) const noexcept;
  // The time at which the age of a stream next makes has_work() true; WallTime::max(): never.
  [[nodiscard]] WallTime next_age() const noexcept;
  // The streams whose messages the last commit stored. Valid until the next commit, and until one of them is removed.
  [[nodiscard]] const std::vector<StoredStream*>& stored() const noexcept { return stored_; }
  [[nodiscard]] const StoreCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] bool failed() const noexcept;

 private:
  // Below the distance of two incarnations, and above every id: no stream of the file has an instance of one in memory.
  static constexpr std::uint64_t kMemoryInstances = std::uint64_t{1} << 39U;

  struct Side;  // one database and its statements
  struct Dying {
    std::string stream;
    std::string consumer;
    std::uint64_t sequence;
    bool to_memory;  // the dead letter's stream
  };

  struct Damaged {
    std::uint32_t id;
    std::uint64_t next;
  };

  Store() = default;
  [[nodiscard]] Result<void> begin_incarnation(Side& side);
  [[nodiscard]] Result<void> write_birth(Side& side);
  [[nodiscard]] Result<void> load(Side& side, const Now& now);
  struct StreamRow;
  [[nodiscard]] Result<std::unique_ptr<StoredStream>> load_stream(Side& side, const StreamRow& row, const Now& now);
  [[nodiscard]] Result<StoredStream*> mend(std::string_view name, const StreamSettings& settings, const Now& now);
  [[nodiscard]] Result<void> load_consumers(Side& side, StoredStream& stream, const Now& now);
  [[nodiscard]] std::unique_ptr<StoredStream> make_stream(Side& side, std::uint32_t id, std::string_view name,
                                                          const StreamSettings& settings, std::vector<Filter> topics);
  [[nodiscard]] Result<void> in_transaction(Side& side, const std::function<Result<void>()>& write);
  [[nodiscard]] Side* side_of(const StoredStream& stream) noexcept;
  struct SideCommitted {
    Error all{};
    Error positions{};
  };
  void update_work(StoredStream& stream);  // after a change of the stream: updates the list of work, and that of ages
  [[nodiscard]] SideCommitted commit_side(Side& side, bool in_memory, const Now& now);
  // removes a part of the rows of one; returns true if it has no more
  [[nodiscard]] static Result<bool> clear_gone(Side& side);
  [[nodiscard]] Result<void> write_stream(Side& side, StoredStream& stream, StoredStream::DropBudget& drops,
                                          const Now& now);
  [[nodiscard]] Result<bool> bury(StoredStream& stream, StoredConsumer& consumer, const StoredStream::Exhausted& dead,
                                  const Now& now);

  std::unique_ptr<Side> disk_;
  std::unique_ptr<Side> memory_;
  std::map<std::string, std::unique_ptr<StoredStream>, std::less<>> streams_;
  List<StoredStream> work_;  // that the next commit writes
  std::set<std::pair<WallTime, StoredStream*>>
      ages_;  // streams whose messages have an age_max, by StoredStream::ages_at()
  std::vector<StoredStream*> stored_;
  std::map<std::string, Damaged, std::less<>> damaged_;  // streams of the file that could not be opened
  std::vector<Dying> dying_;
  std::vector<std::unique_ptr<StoredStream>> removed_;  // streams whose memory is freed in parts
  std::uint64_t incarnation_ = 0;
  std::uint64_t birth_ = 0;  // the first incarnation of the file; 0: a build without births made it
  bool unborn_ = false;      // a new file has no room for its birth: its first stream writes it
  StoreCounts counts_;
};

}  // namespace weft::store
