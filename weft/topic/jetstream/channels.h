// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/consumer.h"
#include "weft/nats/jetstream/delivery.h"
#include "weft/topic/jetstream/engine.h"
#include "weft/topic/jetstream/kept_streams.h"

namespace weft::topic {

// HeldMessage: a delivered message of a consumer that was not acknowledged.
struct HeldMessage {
  std::string reply;  // the subject of its acknowledgement; empty: there is no message
  std::uint64_t deliveries = 0;
  std::uint64_t instance = 0;
};

inline constexpr std::string_view kPrioritized = "prioritized";  // the policy of servers since 2.12
inline constexpr std::string_view kPriorityGroup = "weft";

// LastPull: the last request of a channel for messages. A server reports the early end of a request, and not that
// all of its messages came: so there is one request at a time. Only a prioritized consumer gets the next one before
// the end of the last one: otherwise messages between both would go to other numbers.
struct LastPull {
  std::string inbox{};    // with its last dot; then the number
  std::string subject{};  // of the request
  std::uint64_t number = 0;
  std::uint64_t outstanding = 0;           // messages that the servers may still send; 0: none waits
  Instant since{};                         // it was sent, or a message came
  bool checked = false;                    // by check_place(), since then
  std::optional<std::uint8_t> priority{};  // of the member, as it was named
  // Of a prioritized consumer: no program has got a message for ack_wait. No request is sent until one does.
  bool stands_still = false;
};

// PullChannel: deliveries of a consumer of JetStream to a consumer or a reader of a handle.
// Owner: Channels, and its tasks. Affinity: the session's core.
// Invariants:
//   1. request.outstanding <= credit: the servers send no more than the handle takes.
//   2. A reader's sequences grow, without a gap. After a lost message, a forgotten one or a silent server, it reads on
//      from `next`.
struct PullChannel {
  std::string client;
  std::uint32_t id = 0;
  std::shared_ptr<KeptStream> stream;
  std::uint64_t instance = 0;
  std::string consumer{};  // of a consumer, as the handle names it; empty: a reader
  bool joins = false;      // a consumer that is there, with the settings that it has
  ConsumerSettings settings{};
  nats::jetstream::ConsumerConfig config{};
  std::string name{};  // of JetStream's consumer

  bool open = false;
  bool opening = false;  // a task opens it
  bool ended = false;
  std::uint64_t credit = 0;  // of the handle
  LastPull request{};
  nats::SubscriptionId subscription{};
  Instant heard{};

  // A reader's.
  std::uint64_t next = 0;  // 0: it begins where `settings` say
  std::uint64_t consumer_sequence = 0;
  std::uint64_t to_catch_up = 0;  // messages that were stored when it was opened
  bool caught_up = false;
  bool may_check = true;  // check_place(): the user has the permission
  // A consumer's: messages in the handle's queue, by their sequences, that no program has got.
  std::map<std::uint64_t, HeldMessage> queue{};
  Instant renewed{};
  Instant moved{};  // the last time that a program got one
  bool looking = false;

  // Its consumer serves the requests of lower numbers first.
  [[nodiscard]] bool prioritized() const noexcept { return config.priority_policy == kPrioritized; }

  [[nodiscard]] bool reads() const noexcept { return consumer.empty(); }
  [[nodiscard]] bool by_topic() const noexcept { return settings.from.kind == From::Kind::last_per_topic; }
};

// Channels: the ops of consumers and readers.
// Owner: the session. Affinity: its core. Cost: an open channel has a subscription, and a request for messages at the
// servers.
// Invariants:
//   1. ack_wait of a message that waits in a handle's queue is renewed: it begins when a program gets the message.
//   2. When a channel ends, the messages that no program has got return to the stream. So does half of a queue that
//      stands still while another member waits.
class Channels {
 public:
  static constexpr std::size_t kChannelsMax = 4096;
  static constexpr std::uint64_t kCreditMax = std::uint64_t{1} << 20U;
  static constexpr std::size_t kHeldMax = 65'536;  // messages of a consumer that programs have, and not acknowledged

  Channels(Engine& engine, KeptStreams& streams) : engine_(engine), streams_(streams) {}
  void close() noexcept;

  void open(std::unique_ptr<Asked> asked);  // consume, read
  void credit(const Asked& asked);
  void end(std::unique_ptr<Asked> asked);
  void settle(std::unique_ptr<Asked> asked);  // begin, ack, nak, work, reject
  void drop_client(const std::string& client);
  void handle_connected();
  void handle_lost() noexcept;
  // A refused request for messages, or a refused acknowledgement, ends its channels: nothing else shows it to them.
  void handle_refused(std::string_view subject, const Error& why);

 private:
  using Key = std::pair<std::string, std::uint32_t>;
  using Holding = std::map<std::uint64_t, HeldMessage>;  // of one consumer, those that programs have

  [[nodiscard]] Result<std::shared_ptr<PullChannel>> make(const Asked& asked);
  static rt::Task<void> begin(Channels* self, std::shared_ptr<PullChannel> channel, std::unique_ptr<Asked> asked);
  static rt::Task<void> begin_again(Channels* self, std::shared_ptr<PullChannel> channel);
  struct Opened {
    Error error{};
    std::string text{};
    std::uint64_t first = 0;
    std::uint64_t next = 0;
    std::uint64_t floor = 0;
    bool again = false;  // it failed because of another member, which is not done
  };
  static rt::Task<Opened> connect(Channels* self, std::shared_ptr<PullChannel> channel, bool redeclare);
  static rt::Task<Opened> connect_consumer(Channels* self, std::shared_ptr<PullChannel> channel, bool redeclare);
  static rt::Task<Opened> attempt_consumer(Channels* self, std::shared_ptr<PullChannel> channel, bool redeclare);
  static rt::Task<Opened> connect_reader(Channels* self, std::shared_ptr<PullChannel> channel);
  static rt::Task<void> confirm(Channels* self, std::unique_ptr<Asked> asked, std::vector<std::string> replies);
  static rt::Task<Result<void>> acknowledge(Channels* self, const Asked* asked, const std::string* reply);
  static rt::Task<void> recall(Channels* self, std::shared_ptr<PullChannel> channel);
  static rt::Task<void> check_place(Channels* self, std::shared_ptr<PullChannel> channel);
  static rt::Task<void> pull_later(Channels* self, std::shared_ptr<PullChannel> channel, Duration wait);

  [[nodiscard]] Result<void> subscribe(PullChannel& channel);
  void reconnect(const std::shared_ptr<PullChannel>& channel);
  void pull(PullChannel& channel);
  void note_taken(const Asked& asked);
  void handle_message(const std::shared_ptr<PullChannel>& channel, const std::string& inbox,
                      const nats::Message& message);
  void handle_status(const std::shared_ptr<PullChannel>& channel, const nats::Message& message,
                     const nats::jetstream::PullStatus& status);
  void deliver(PullChannel& channel, const nats::Message& message, const nats::jetstream::Delivery& delivery);
  void catch_up(PullChannel& channel);
  void finish(PullChannel& channel, const Error& error, std::string_view text = {});
  void shut(PullChannel& channel);  // the end of its requests; its messages return
  void arm();
  void handle_timer();
  void renew(PullChannel& channel);
  static void timer_fired(void* self) { static_cast<Channels*>(self)->handle_timer(); }
  void publish(std::string_view reply, std::string_view body);
  [[nodiscard]] Duration retry_wait(const Asked& asked, std::uint64_t deliveries) const;
  [[nodiscard]] static std::string key_of(std::string_view stream, std::string_view consumer);
  // Takes the message from the queue of a channel, or from those that programs have. Empty: neither has it.
  [[nodiscard]] HeldMessage take(const Asked& asked, std::uint64_t sequence);
  void hold(const std::string& key, std::uint64_t sequence, HeldMessage held);

  Engine& engine_;
  KeptStreams& streams_;
  std::map<Key, std::shared_ptr<PullChannel>> channels_;
  std::map<std::string, Holding, std::less<>> holdings_;
  rt::TimerId timer_;
  Instant timer_at_{};
};

}  // namespace weft::topic
