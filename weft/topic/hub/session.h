// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weft/msg/message/message.h"
#include "weft/store/store.h"
#include "weft/topic/hub/hub.h"
#include "weft/topic/hub/leases.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

inline constexpr Error kNoStream(Errc::not_found, "no such stream");

// HubChannel: deliveries of one kind to one member, within its credit.
struct HubChannel {
  enum class Kind : std::uint8_t { consumer, reader, leases };
  static constexpr std::uint64_t kCreditMax = 1U << 20U;

  Kind kind = Kind::reader;
  std::uint64_t credit = 0;
  std::string stream{};         // its name: the stream may have been removed
  std::uint32_t stream_id = 0;  // a later stream of that name is not the channel's
  bool in_memory = false;       // likewise
  std::string consumer{};       // likewise
  // Of a member of a consumer:
  store::Holder holder = store::kNoHolder;  // kNoHolder: its deliveries begin when they are sent
  std::uint8_t priority = 0;                // the members of a lower number are served first
  std::uint64_t served = 0;                 // when it got its last message, in deliveries
  std::size_t group = 0;                    // its place in groups_, in the turn
  std::size_t queued_before = 0;            // messages in its queue at the last count
  Instant moved{};                          // the time of the last change of that number
  Instant took{};                           // the program took a message, or the queue was empty
  bool stands_still = false;                // since then ack_wait has passed, and other members got its queue
  std::optional<Instant> recalled{};        // the time of the request to give some back; empty: it has answered
  store::StoredReader reader{};             // of a reader
  std::uint64_t caught_up = 0;              // of a reader: messages below this sequence were stored when it was opened
  bool told_caught_up = false;
  // Of leases: the sent part of the first list, and the changes since.
  std::string prefix{};
  std::string after{};
  bool listed_one = false;
  bool follow = false;
  std::set<std::string> changed{};
};

// HubClient: one connection of a member.
struct HubClient {
  static constexpr std::size_t kChannelsMax = 1024;
  static constexpr std::size_t kQueueMessagesMax = 4096;
  static constexpr std::size_t kQueueBytesMax = 8 * 1024 * 1024;
  // Bytes delivered since the last op of the member. Beyond a bound its channels stop: otherwise a member that receives
  // nothing would fill the memory of both ends with messages for which it has credit.
  static constexpr std::size_t kUnheardBytesMax = 64 * 1024 * 1024;

  std::map<std::uint32_t, HubChannel> channels;
  std::deque<Message> queue;  // ops for which the socket had no room
  std::size_t queue_bytes = 0;
  std::size_t unheard_bytes = 0;
  std::uint32_t scanned_last = 0;  // the channel that used up the scans of a turn
};

// An answer that waits for the commit of its turn, or already has its result.
struct PendingAnswer {
  std::string client;
  std::uint32_t id = 0;
  std::uint16_t flags = 0;
  Error error{};
  std::uint64_t number = 0;
  std::uint64_t second = 0;
  std::string name{};
  std::string key{};
  std::string message_id{};
  std::string headers{};
  std::string body{};
  enum class Needs : std::uint8_t { nothing, disk, memory, positions } needs = Needs::nothing;
  bool quiet = false;   // sent only if it is an error
  bool in_run = false;  // OpFlags::run: one answer for those whose ids and numbers follow each other
};

// HubSession: the state and the operations of the hub, without the socket and without a clock.
// Owner: the hub. Affinity: the hub's thread.
class HubSession {
 public:
  // Sends one op to a client. Returns false if the client has no room at the moment. `gone`: it never will.
  enum class Sent : std::uint8_t { yes, full, gone };
  using Send = std::function<Sent(const std::string& client, Message& message)>;

  HubSession(std::unique_ptr<store::Store> store, const HubOptions& options, const store::Now& now, Send send,
             HubCounters& counters);

  void handle(const std::string& client, Bytes op, const store::Now& now);
  void drop_client(const std::string& client, const store::Now& now);
  // Whether the turn has taken as much as its memory allows, or an op that had a transaction of its own.
  [[nodiscard]] bool turn_full() const noexcept { return turn_bytes_ >= kTurnBytesMax || wrote_alone_; }
  // Commits the ops of the turn, answers them, and delivers. Returns true if there is more to deliver at once.
  bool finish_turn(const store::Now& now);
  [[nodiscard]] bool failed() const noexcept { return store_->failed(); }
  static constexpr std::size_t kTurnBytesMax = 8 * 1024 * 1024;
  static constexpr std::size_t kDeliveriesMax = 2000;                // a turn
  static constexpr std::size_t kDeliveryBytesMax = 4 * 1024 * 1024;  // a turn
  static constexpr std::size_t kScanMax = 2048;     // messages that one read passes without finding a wanted one
  static constexpr std::size_t kScansMax = 4;       // kScanMax times, in all reads of a turn; the next turn goes on
  static constexpr std::size_t kSlowOpsMax = 1024;  // that take more than one turn

  // The time at which finish_turn() has work without an op.
  [[nodiscard]] Instant next_deadline(const store::Now& now) const;

 private:
  // Handlers, one for each kind. They add an answer.
  void declare(const std::string& client, const Op& op, const store::Now& now);
  void info(const std::string& client, const Op& op);
  void remove(const std::string& client, const Op& op, const store::Now& now);
  void purge(const std::string& client, const Op& op, const store::Now& now);
  void append(const std::string& client, const Op& op, const store::Now& now);
  void append_all(const std::string& client, const Op& op, const store::Now& now);
  void get(const std::string& client, const Op& op, const store::Now& now);
  void list(const std::string& client, const Op& op, const store::Now& now);
  // `next`: the begin of the channel, if a scan found it; 0: the settings decide.
  void consume(const std::string& client, const Op& op, std::uint64_t next = 0);
  void read(const std::string& client, const Op& op, const store::Now& now, std::uint64_t next = 0);
  void credit(const std::string& client, const Op& op, const store::Now& now);
  void end(const std::string& client, const Op& op, const store::Now& now);
  void settle(const std::string& client, const Op& op, const store::Now& now);
  // The number of messages in the op that the member's queue has.
  [[nodiscard]] std::uint64_t begin_or_give_back(const std::string& client, const Op& op,
                                                 store::StoredConsumer& consumer, const store::Now& now);
  void lease(const std::string& client, const Op& op, const store::Now& now);
  void release(const std::string& client, const Op& op);
  void leases(const std::string& client, const Op& op);

  PendingAnswer& answer(const std::string& client, const Op& op, const Error& error = {});
  [[nodiscard]] store::StoredStream* stream_of(const HubChannel& channel) const noexcept;  // null if it was removed
  [[nodiscard]] Result<HubChannel*> open_channel(const std::string& client, const Op& op);
  [[nodiscard]] store::Store::Committed commit(const store::Now& now);
  void tell_stored(const store::Now& now);
  void send_answers(const store::Store::Committed& committed);
  void send_answer(const PendingAnswer& pending, std::size_t appends);
  void send(const std::string& client, const Op& op);
  [[nodiscard]] bool flush(const std::string& name, HubClient& client);
  [[nodiscard]] bool deliver(const store::Now& now);  // returns true if the bound of the turn ended it
  // Each delivers at most one op, and returns false if the channel has nothing at the moment, or ended.
  [[nodiscard]] bool deliver_one(const std::string& name, std::uint32_t id, HubChannel& channel, const store::Now& now);
  // to the member with the fewest messages
  [[nodiscard]] bool deliver_consumer(const std::string& name, std::uint32_t id, HubChannel& channel,
                                      const store::Now& now);
  [[nodiscard]] bool deliver_reader(const std::string& name, std::uint32_t id, HubChannel& channel,
                                    const store::Now& now);
  [[nodiscard]] bool deliver_lease(const std::string& name, std::uint32_t id, HubChannel& channel);
  // Members of one consumer, in share.cc.
  struct Member {
    const std::string* client;
    std::uint32_t id;
    HubChannel* channel;
    bool takes;  // its connection takes deliveries
  };
  struct Group {
    store::StoredConsumer* consumer = nullptr;
    std::vector<Member> members{};
  };
  void gather_groups();
  [[nodiscard]] Member* next_member(Group& group);  // null if no member takes a message
  void note_taken(const std::string& client, std::uint32_t id, const store::Now& now);
  void recall(const store::Now& now);  // for members without messages, from those whose queue does not move
  void recall(Group& group, const store::Now& now);
  void give_back_queue(const HubChannel& channel, const store::Now& now);
  bool queue_delivery(const std::string& name, const Op& op);
  [[nodiscard]] bool send_message(const std::string& name, std::uint32_t id, const store::ReadMessage& read,
                                  std::uint32_t before);
  void end_channel(const std::string& name, std::uint32_t id, const Error& error, std::uint64_t number);
  [[nodiscard]] std::string describe(const store::StoredStream& stream) const;
  [[nodiscard]] StreamSettings kept_settings(
      const store::StoredStream& stream) const;  // the settings that the stream got
  // Whether the op names no life of a stream, or this one.
  [[nodiscard]] bool is_of(const Op& op, const store::StoredStream& stream) const;
  // The number of the stream's life as text, if the `second` of the op has another one.
  [[nodiscard]] std::string news_of_instance(const Op& op, const store::StoredStream& stream) const;

  std::unique_ptr<store::Store> store_;
  HubOptions options_;
  Send send_;
  HubCounters& counters_;
  LeaseTable leases_;
  std::map<std::string, HubClient, std::less<>> clients_;
  std::vector<PendingAnswer> answers_;
  std::size_t turn_bytes_ = 0;  // of ops and of answers
  bool wrote_alone_ = false;    // an op of the turn had a transaction of its own
  Instant retry_at_{};          // time of the next try after a failed commit
  // for on_stored: of each stream, the first unpublished sequence
  std::map<std::string, std::uint64_t, std::less<>> told_;
  // Deliveries wait for the commit of their tries.
  struct Outgoing {
    std::string client;
    Message message;
  };
  std::vector<Outgoing> outgoing_;
  std::size_t outgoing_bytes_ = 0;
  std::string last_served_;  // the client of the last turn, for fairness
  std::vector<Group> groups_;
  store::Holder last_holder_ = store::kNoHolder;
  std::uint64_t deliveries_ = 0;  // to consumers
  Instant recall_at_ = kNever;
  std::size_t passed_ = 0;                       // messages that the reads of the turn passed, see Cursor
  bool scans_on_ = false;                        // a channel has not reached the end of its stream
  [[nodiscard]] bool scanned_enough() noexcept;  // then the next turn continues
  void count_scan(const std::string& name, std::uint32_t id, std::size_t passed, bool far);

  // Ops that take more than one turn, in slow.cc: each turn does a part of the first one.
  struct SlowOp {
    std::string client;
    std::vector<std::uint8_t> bytes;  // of a `consume` or `read` that waits for its scan
    PendingAnswer answer;             // of a `purge` that waits for the deletion of rows
    std::string stream;
    std::uint32_t stream_id = 0;
    bool in_memory = false;
    store::StoredStream::LastScan scan{};
  };
  [[nodiscard]] bool begin_scan(const std::string& client, const Op& op, const store::StoredStream& stream,
                                const ConsumerSettings& settings);                  // returns false if it needs none
  [[nodiscard]] store::StoredStream* stream_of(const SlowOp& slow) const noexcept;  // null if it was removed
  [[nodiscard]] bool may_go_on(const SlowOp& slow) const noexcept;
  [[nodiscard]] bool slow_ops_may_go_on() const noexcept;
  void go_on_with_slow_ops(const store::Now& now);
  void drop_slow_ops(const std::string& client, std::optional<std::uint32_t> channel);
  std::deque<SlowOp> slow_;
};

}  // namespace weft::topic
