// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/store/settings.h"

namespace weft::store {

// A member of a consumer, as a number from the hub. kNoHolder: its delivery begins at once.
using Holder = std::uint64_t;
inline constexpr Holder kNoHolder = 0;

// ConsumerState: the delivered messages of a consumer, the unacknowledged ones, and those that are due again. It has no
// messages, only their sequences.
// A message that a holder gets waits in its queue, and its time does not run: begin() is called when a program gets it.
// Owner: a consumer. Affinity: one thread. Cost: a map entry, and one of the timer's set, for each message that waits;
// O(log unacked_max) a call.
// Invariants:
// 1. Every sequence below next() that does not wait was acknowledged, rejected, or is not one of the consumer's.
// 2. At most unacked_max messages wait. Then may_take_new() is false.
// 3. A message that waits is due at its deadline: ack_wait after its delivery began, or the time of its nak.
// 4. A message in the queue of a holder is due to no member, and its delivery is not counted.
class ConsumerState {
 public:
  // `next`: the first sequence that the consumer may get.
  ConsumerState(const ConsumerSettings& settings, std::uint64_t next);
  void set_settings(const ConsumerSettings& settings);  // for later deliveries and refusals

  // New messages: the caller finds the next one that the filter passes, from next() on.
  [[nodiscard]] bool may_take_new() const noexcept { return waiting_.size() < unacked_max_; }
  [[nodiscard]] std::uint64_t next() const noexcept { return next_; }
  void skip_to(std::uint64_t next) noexcept;  // no sequence below `next` is the consumer's
  // Requires may_take_new() and sequence >= next().
  void deliver_new(std::uint64_t sequence, Instant now, Holder holder = kNoHolder);

  // Messages that are due again.
  struct Due {
    std::uint64_t sequence;
    std::uint32_t tries;  // begun deliveries so far
  };
  [[nodiscard]] std::optional<Due> due(Instant now) const;  // the one that has been due for the longest time
  [[nodiscard]] bool exhausted(const Due& due) const noexcept { return tries_max_ != 0 && due.tries >= tries_max_; }
  void deliver_again(std::uint64_t sequence, Instant now, Holder holder = kNoHolder);  // requires that it waits
  void postpone(std::uint64_t sequence, Instant until);  // not a delivery; has no effect if the message does not wait
  [[nodiscard]] Instant next_due() const noexcept;       // kNever if no message waits

  // Queues of holders. Returns false if the holder does not have the message.
  bool begin(std::uint64_t sequence, Holder holder, Instant now);  // a repetition restarts ack_wait, and counts no try
  // no program has received it: due at once, without a try
  bool give_back(std::uint64_t sequence, Holder holder, Instant now);
  // returns those that have not begun; the result is their number
  std::size_t give_back_queue(Holder holder, Instant now);
  [[nodiscard]] std::size_t queued(Holder holder) const noexcept;  // the number of those that have not begun
  [[nodiscard]] std::size_t load(Holder holder) const noexcept;    // the number of all, begun or not

  // The outcome of a delivery. Returns false if the message does not wait (a repeated acknowledgement, or a late one),
  // or is in the queue of a holder, which only an acknowledgement ends.
  bool ack(std::uint64_t sequence);
  bool nak(std::uint64_t sequence, Duration delay, Instant now);  // negative delay: the retry wait of the settings
  bool work(std::uint64_t sequence, Instant now);                 // restarts ack_wait

  // Messages below `first` have left the stream. Returns the number of those that waited.
  std::size_t drop_before(std::uint64_t first);

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  // those that a program has received: without the ones in queues, and those that returned from there
  [[nodiscard]] std::size_t delivered() const noexcept { return waiting_.size() - untried_; }
  [[nodiscard]] bool waits(std::uint64_t sequence) const { return waiting_.contains(sequence); }
  // none of them waits, or will be delivered
  [[nodiscard]] bool done_with(std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }  // number since the open
  [[nodiscard]] std::uint32_t tries(std::uint64_t sequence) const;  // begun deliveries; 0 if it does not wait
  // Every message of the consumer below this sequence is acknowledged.
  [[nodiscard]] std::uint64_t floor() const noexcept { return waiting_.empty() ? next_ : waiting_.begin()->first; }

  // The messages that wait, as bytes: for each the distance of its sequence from the one before it, and its tries, both
  // as varints. First those whose delivery began; then, after a distance of 0, those in queues, from the first.
  [[nodiscard]] std::vector<std::uint8_t> write_waiting() const;
  // After an open every message whose delivery began gets its ack_wait again: its receiver may still work on it. The
  // queues are empty, and their messages are due at once. Errors: corrupt.
  [[nodiscard]] Result<void> read_waiting(Bytes bytes, Instant now);

 private:
  struct Waiting {
    std::uint32_t tries = 0;
    bool queued = false;  // in the queue of `holder`; `deadline` is kNever
    Instant deadline{};
    Holder holder = kNoHolder;
  };
  using Table = std::map<std::uint64_t, Waiting>;
  struct Held {
    std::size_t queued = 0;
    std::size_t all = 0;
  };

  [[nodiscard]] Duration retry_wait(std::uint32_t tries) const noexcept;
  void set_deadline(Table::iterator at, Instant deadline);  // kNever: never due
  void deliver(Table::iterator at, Instant now, Holder holder);
  void count_try(Waiting& waiting) noexcept;
  void set_holder(Table::iterator at, Holder holder, bool queued);
  void erase(Table::iterator at);
  [[nodiscard]] bool read_part(Bytes& bytes, Instant deadline);

  std::uint32_t unacked_max_;
  std::uint32_t tries_max_;
  Duration ack_wait_;
  std::vector<Duration> retry_waits_;
  std::uint64_t next_;
  Table waiting_;
  std::set<std::pair<Instant, std::uint64_t>> deadlines_;
  std::map<Holder, Held> held_;
  std::size_t untried_ = 0;  // the number of waiting messages without a begun delivery
  std::uint64_t acknowledged_ = 0;
};

}  // namespace weft::store
