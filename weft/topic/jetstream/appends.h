// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/nats/jetstream/api.h"
#include "weft/nats/jetstream/publish.h"
#include "weft/topic/jetstream/engine.h"
#include "weft/topic/jetstream/kept_streams.h"

namespace weft::topic {

// The headers of this side, then the program's block. Errors: invalid_argument; message_too_large.
[[nodiscard]] Result<std::string> join_headers(const nats::Headers& own, Bytes program);

// Appends: messages for streams, until the servers have acknowledged them.
// Owner: the session. Affinity: its core. Cost: an append is published without a coroutine.
// Invariants:
//   1. Each append is answered: with its sequence, with a refusal, or when half of its stream's same_id_window is over.
//   2. Appends leave in the order of the handle's ops. After a change of the connection those without an answer leave
//      again in that order, with the same ids. One whose servers had no leader leaves again later.
//   3. A message without an id is never sent twice.
class Appends {
 public:
  Appends(Engine& engine, KeptStreams& streams) : engine_(engine), streams_(streams) {}
  [[nodiscard]] Result<void> open();  // subscribes the inbox
  void close() noexcept;

  void append(std::unique_ptr<Asked> asked);
  void handle_connected();
  void handle_lost() noexcept;
  void handle_refused(std::string_view subject, const Error& why);
  void drop_client(const std::string& client);

 private:
  struct Append {
    std::unique_ptr<Asked> asked;
    std::shared_ptr<KeptStream> stream;
    std::string subject{};
    std::string headers{};
    Instant give_up{};
    Instant sent_at{};
    bool sent = false;     // on this connection, and without an answer
    bool ever = false;     // sent at least once
    bool again = false;    // its acknowledgement was late
    bool waits = false;    // for a task of its own, which sends it or answers it
    bool stalled = false;  // for recover() of its stream
    unsigned tries = 0;    // to create a topic that was erased
  };
  using Waiting = std::map<std::uint64_t, Append>;

  [[nodiscard]] Result<void> make(Append& append, std::optional<std::uint64_t> last) const;
  void send(std::uint64_t order, Append& append);
  void send_due();
  void handle_reply(const nats::Message& message);
  void handle_ack(Waiting::iterator at, const nats::jetstream::PublishAck& ack);
  void handle_failure(Waiting::iterator at, const nats::jetstream::ApiError& failure);
  void finish(Waiting::iterator at, const Error& error, std::string_view text = {});
  void answer(Waiting::iterator at, std::uint64_t sequence, bool duplicate);
  void stall(Append& append);
  void arm();
  void handle_timer();
  static void timer_fired(void* self) { static_cast<Appends*>(self)->handle_timer(); }
  [[nodiscard]] Waiting::iterator find(std::uint32_t number);

  static rt::Task<void> check_stream(Appends* self, std::uint64_t order);
  static rt::Task<void> answer_after_look(Appends* self, std::uint64_t order, std::uint64_t sequence);
  static rt::Task<void> create_after_erasure(Appends* self, std::uint64_t order);
  static rt::Task<void> recover(Appends* self, std::shared_ptr<KeptStream> stream);

  Engine& engine_;
  KeptStreams& streams_;
  nats::SubscriptionId inbox_;
  Error refused_;    // the inbox
  Waiting waiting_;  // by the order of their ops
  std::uint64_t last_ = 0;
  rt::TimerId timer_;
};

}  // namespace weft::topic
