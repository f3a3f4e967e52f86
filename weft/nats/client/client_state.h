// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/slot_map.h"
#include "weft/nats/client/client.h"
#include "weft/nats/client/enter.h"
#include "weft/nats/protocol/codec.h"
#include "weft/nats/protocol/inbox.h"
#include "weft/nats/protocol/server_error.h"
#include "weft/nats/protocol/server_list.h"
#include "weft/net/backoff.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/in_flight.h"
#include "weft/serve/client/session_end.h"
#include "weft/serve/session/service.h"

namespace weft::nats {

// ClientState: the inside of a Client, and the service of its sessions.
// Owner: the client, and its coroutines, which may outlive it. Affinity: its core.
// Invariants:
//   1. There is at most one session, and run() waits for its end.
//   2. `connection_.ready` is true from the server's first PONG to the session's end. Messages are sent only then, and
//      only if none is kept: the order is that of publish().
//   3. After shut_down() no function of the program is called.
class ClientState final : public std::enable_shared_from_this<ClientState> {
 public:
  using Session = serve::SessionOf<Codec>;

  ClientState(std::shared_ptr<serve::ClientHost> host, ClientOptions options, ServerList servers, Inbox inbox);
  ClientState(const ClientState&) = delete;
  ClientState& operator=(const ClientState&) = delete;
  ~ClientState() = default;

  [[nodiscard]] static Result<void> start(const std::shared_ptr<ClientState>& self);
  void shut_down() noexcept;

  [[nodiscard]] Result<void> publish(std::string_view subject, Bytes body, const Publishing& how);
  [[nodiscard]] Result<SubscriptionId> subscribe(std::string_view filter, Client::Handler handler, Subscribing how);
  void unsubscribe(SubscriptionId id) noexcept;
  void drain(SubscriptionId id) noexcept;
  [[nodiscard]] static rt::Task<Result<Answer>> request(std::shared_ptr<ClientState> self, std::string_view subject,
                                                        Bytes body, Instant deadline, Bytes headers);
  [[nodiscard]] static rt::Task<Result<void>> flush(std::shared_ptr<ClientState> self, Instant deadline);
  [[nodiscard]] static rt::Task<Result<void>> connected(std::shared_ptr<ClientState> self, Instant deadline);
  [[nodiscard]] static rt::Task<Result<void>> drain(std::shared_ptr<ClientState> self, Instant deadline);

  [[nodiscard]] bool is_connected() const noexcept { return connection_.ready && session_->is_open(); }
  [[nodiscard]] serve::ClientHost& host() noexcept { return *host_; }
  [[nodiscard]] const serve::InFlight& in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_.bytes; }
  [[nodiscard]] std::size_t kept_messages() const noexcept { return kept_.frames.size(); }
  [[nodiscard]] std::size_t subscriptions() const noexcept {
    return subscriptions_.all.size() - 1;  // without the inbox
  }
  [[nodiscard]] const ServerInfo& info() const noexcept { return server_.info; }
  [[nodiscard]] const ServerList& servers() const noexcept { return servers_; }
  [[nodiscard]] const ClientCounts& counts() const noexcept { return counts_; }

  // --- the service of the session ---
  void on_open(Session& session) noexcept;
  void on_frame(Session& session, const Codec::Frame& frame);
  void on_writable(Session& session);
  void on_close(Session& session, const Error& why) noexcept;

  serve::Farewell<ClientState> farewell;

 private:
  struct Subscription {
    std::string filter;
    std::string group;
    Client::Handler handler;
    std::function<void(const Error&)> on_ended;
    std::uint64_t connection = 0;  // the last one whose server got it
    bool ended = false;            // in a call of its function: it is erased after the call
  };
  struct RequestWaiter : serve::InFlight::Waiter {
    using Waiter::Waiter;
    std::size_t headers_size = 0;
  };
  struct Subscriptions {
    SlotMap<Subscription> all;
    SlotId inbox{};
    SlotId called{};  // the one whose function runs
  };
  // A subscription that ends with the PONG of this number.
  struct Drained {
    SlotId id;
    std::uint64_t pong;
  };
  // One connection. on_open() begins the next one.
  struct Connection {
    std::uint64_t number = 0;
    bool ready = false;
    bool restoring = false;         // some subscriptions are not sent
    bool pong_due = false;          // the server waits for a PONG that had no room
    bool leaving = false;           // a lame duck
    unsigned missed = 0;            // times ping_every without a byte
    std::uint64_t heard_bytes = 0;  // that had come at the last timer
    std::uint64_t pings = 0;        // sent
    std::uint64_t pongs = 0;
    std::vector<std::uint64_t> unsubscribe_due{};
    std::deque<Drained> drained{};
    Error inbox_refused{};  // no request has an answer
    rt::TimerId timer{};
    serve::SessionEnd* end_wait = nullptr;
  };
  // The server of the present attempt or connection.
  struct Server {
    ServerUrl url;
    std::string text;
    ServerInfo info;
    Secret login;
  };
  struct Kept {
    std::deque<std::string> frames;  // whole ones
    std::size_t bytes = 0;
  };
  // The last subject that was checked, unless it is longer.
  struct Checked {
    std::array<char, 256> subject{};
    std::size_t size = 0;

    [[nodiscard]] std::string_view text() const noexcept { return {subject.data(), size}; }
    void remember(std::string_view text) noexcept {
      size = text.size() <= subject.size() ? text.size() : 0;
      std::copy_n(text.data(), size, subject.data());
    }
  };
  struct Trouble {
    Error end{};                 // why the last session ended
    Error reason{};              // why there is no connection; ok: there is one, or no attempt has ended
    Error refusal{};             // of calls without a connection, for that reason; ok: none was refused yet
    bool login_refused = false;  // by the last attempt
  };
  // Of run().
  struct Life {
    bool begun = false;
    bool closing = false;
    bool ended = false;
    bool silent = false;  // shut_down() was called
  };

  static rt::Task<void> run(std::shared_ptr<ClientState> self);
  static rt::Task<void> attempt(ClientState* self, const ServerUrl& url);
  static rt::Task<void> leave(std::shared_ptr<ClientState> self);
  static rt::Task<Result<void>> wait_connected(ClientState* self);
  static rt::Task<Result<void>> wait_pong(ClientState* self);
  static rt::Task<Result<void>> wait_quiet(ClientState* self);
  static rt::Task<Result<void>> wait_ended(ClientState* self);
  [[nodiscard]] Result<void> open(Entered entered, const ServerUrl& url);

  [[nodiscard]] Error used_elsewhere() const noexcept;
  [[nodiscard]] Error refusal() noexcept;  // why a call cannot be sent
  [[nodiscard]] Result<void> check(std::string_view subject, Bytes body, const Publishing& how) noexcept;
  [[nodiscard]] Result<void> send_message(std::string_view subject, Bytes body, const Publishing& how);
  [[nodiscard]] Result<Bytes> join(Bytes headers, Bytes body);
  [[nodiscard]] Result<void> keep(std::string_view subject, Bytes body, const Publishing& how);
  [[nodiscard]] Result<void> ask(RequestWaiter& waiter, std::string_view subject, Bytes body, Bytes headers);

  [[nodiscard]] Subscription* open_subscription(SlotId id) noexcept;  // null: not the program's, or it has ended
  [[nodiscard]] bool send_ping(Session& session);
  void pump(Session& session);
  [[nodiscard]] bool send_subscriptions(Session& session);
  [[nodiscard]] bool send_subscription(Session& session, SlotId id, Subscription& subscription);
  void become_ready();
  void handle_message(const Codec::Frame& frame);
  void handle_answer(const Codec::Frame& frame);
  void handle_info(const Codec::Frame& frame);
  void handle_error(Session& session, const Codec::Frame& frame);
  void end_drained(SlotId id) noexcept;
  void end_drained_until(std::uint64_t pong) noexcept;
  void end_subscriptions_to(std::string_view filter, std::string_view group, const Error& why);
  void arm_timer(Duration wait) noexcept;
  void handle_timer() noexcept;
  void cancel_run() noexcept;
  void report(ClientEvent::Kind kind, const Error& why, std::string_view subject = {}) noexcept;
  void note_trouble(const Error& why) noexcept;
  [[nodiscard]] Session& typed() noexcept { return static_cast<Session&>(*session_); }
  [[nodiscard]] Instant now() noexcept { return host_->core().loop().now(); }

  const std::shared_ptr<serve::ClientHost> host_;
  const rt::Core* const core_ = &host_->core();
  const ClientOptions options_;
  const Inbox inbox_;
  const Codec codec_;
  const serve::SessionOps ops_;
  serve::ServiceSlot slot_;
  ServerList servers_;
  ClientCounts counts_;
  serve::RequestCounts request_counts_;
  serve::InFlight in_flight_;

  serve::Session* session_ = nullptr;
  Connection connection_;
  Server server_;
  Subscriptions subscriptions_;
  Kept kept_;
  std::vector<std::uint8_t> joined_;  // headers and body in one piece
  Checked checked_;
  Trouble trouble_;
  Life life_;
  rt::AsyncEvent changed_;
  rt::AsyncEvent ponged_;
  rt::TaskScope scope_;
};

}  // namespace weft::nats
