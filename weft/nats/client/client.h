// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/nats/client/options.h"
#include "weft/rt/task/task.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/owned_bytes.h"

namespace weft::nats {

class ClientState;

// SubscriptionId: names one subscription of a client, for ever. 0: none.
struct SubscriptionId {
  std::uint64_t value = 0;
  friend bool operator==(SubscriptionId, SubscriptionId) = default;
};

// Answer: a copy of the message that answered a request. A move-only value.
class Answer {
 public:
  Answer() = default;
  Answer(serve::OwnedBytes bytes, std::size_t headers_size) noexcept
      : bytes_(std::move(bytes)), headers_size_(headers_size) {}
  [[nodiscard]] HeadersView headers() const noexcept { return HeadersView(bytes_.bytes().first(headers_size_)); }
  [[nodiscard]] Bytes body() const noexcept { return bytes_.bytes().subspan(headers_size_); }

 private:
  serve::OwnedBytes bytes_;
  std::size_t headers_size_ = 0;
};

// Publishing: the parts of a message beside its subject and its body. Views that live during the call.
struct Publishing {
  std::string_view reply{};  // a subject for answers
  Bytes headers{};           // a header block (Headers::block()); empty: none
};

struct Subscribing {
  std::string_view group{};  // each message reaches one member of the group; empty: each subscription
  // Called when the subscription has ended: not_permitted (the server refuses it), closed (after drain()).
  std::function<void(const Error&)> on_ended{};
};

// Client: a connection to one of several NATS servers, for its whole life. The connection is a serve::Session of a
// core: its reading, writing and batching, its bounds and its time-outs. Owner: the program. The destructor ends the
// client at once, as that of serve::Client, and from any thread; the runtime outlives the client. Affinity: its
// core's thread, which also awaits the tasks. Any thread may read counts(). Cost: an idle client has a session and no
// buffer, and wakes every ping_every. A publish copies the message into the batch of the turn; a received message is
// not copied. A request costs a coroutine frame, and a copy of its answer. Invariants:
//   1. When a connection is ready, its server has every subscription: they precede every message and request on it.
//   2. Messages of this client leave in the order of publish(). None is sent twice. Counters have each one (options.h).
//   3. Each request gets one result: an answer; unreachable (no subscription has the subject: not sent; there is no
//      connection: not sent); timed_out; cancelled; the reason why the connection ended, outcome_unknown; closed.
//   4. At most pending_max bytes wait for a connection, and pending_max and a message for the kernel.
//   5. A subscription's function is not called after unsubscribe(), on_ended or the client's end.
class Client {
 public:
  using Handler = std::function<void(const Message&)>;
  using Publishing = nats::Publishing;
  using Subscribing = nats::Subscribing;

  // Connects in the background. Errors: those of parse_server_url(); invalid_argument (an option); invalid_state (the
  // caller is not on the host's core); not_supported (this build cannot read INFO); resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<Client>> open(std::shared_ptr<serve::ClientHost> host,
                                                            ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  // Never waits. Without a connection the message is kept, and the oldest ones make room for it. Errors: closed;
  // invalid_argument (not a subject, or a malformed header block); message_too_large (the server's max_payload, or the
  // last one's); resource_exhausted (pending_max bytes wait for the kernel); not_supported (headers, and the server has
  // none); invalid_state (another thread).
  Result<void> publish(std::string_view subject, Bytes body, const Publishing& how = {});

  // The function gets each message in the turn in which it is read; it may call the client, also unsubscribe() and the
  // destructor. An exception from it ends the connection. Errors: closed; invalid_argument (not a subject with
  // wildcards, or not the name of a group); resource_exhausted (subscriptions_max, or no memory); invalid_state.
  [[nodiscard]] Result<SubscriptionId> subscribe(std::string_view filter, Handler handler, Subscribing how = {});
  void unsubscribe(SubscriptionId id) noexcept;  // idempotent
  // Ends the subscription after the messages that the server sent it before, or with the connection.
  void drain(SubscriptionId id) noexcept;

  // The task reads its arguments when it begins. Errors: invariant 3, each with its fate; those of publish().
  [[nodiscard]] rt::Task<Result<Answer>> request(std::string_view subject, Bytes body, Instant deadline,
                                                 Bytes headers = {});

  // Waits until the server has handled all that was sent before. Errors: timed_out; the reason why the connection
  // ended; unreachable; closed.
  [[nodiscard]] rt::Task<Result<void>> flush(Instant deadline);
  // Waits until the client is connected. At the deadline the error is that of the last attempt; timed_out if none
  // ended.
  [[nodiscard]] rt::Task<Result<void>> connected(Instant deadline = kNever);
  // Ends all subscriptions after the messages that the server sent them before, waits for the answers to requests,
  // writes all messages, then ends the client. Fails with timed_out if at the deadline the client gave up the rest.
  // Idempotent.
  [[nodiscard]] rt::Task<Result<void>> drain(Instant deadline);

  [[nodiscard]] bool is_connected() const noexcept;
  [[nodiscard]] std::size_t in_flight() const noexcept;   // requests
  [[nodiscard]] std::size_t kept_bytes() const noexcept;  // of messages that wait for a connection
  [[nodiscard]] std::size_t kept_messages() const noexcept;
  [[nodiscard]] std::size_t subscriptions() const noexcept;
  // Of the connection; empty and 0 without one before.
  [[nodiscard]] std::string_view server_id() const noexcept;
  [[nodiscard]] std::string_view server_version() const noexcept;
  [[nodiscard]] bool server_has_jetstream() const noexcept;
  [[nodiscard]] std::size_t servers_known() const noexcept;
  // Bytes of a message, headers included, that the last server takes; before the first one the usual bound.
  [[nodiscard]] std::size_t max_payload() const noexcept;
  [[nodiscard]] const ClientCounts& counts() const noexcept;

 private:
  explicit Client(std::shared_ptr<ClientState> state) noexcept;

  std::shared_ptr<ClientState> state_;
};

}  // namespace weft::nats
