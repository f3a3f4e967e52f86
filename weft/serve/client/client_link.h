// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/resolver.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/net/tls/tls.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/rt/task/task_scope.h"
#include "weft/serve/client/client_host.h"
#include "weft/serve/client/in_flight.h"
#include "weft/serve/client/reconnect.h"
#include "weft/serve/client/session_end.h"
#include "weft/serve/session/service.h"
#include "weft/serve/session/session.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"
#include "weft/sys/socket.h"

namespace weft::serve {

class Dialling;

struct ClientEvent {
  enum class Kind : std::uint8_t {
    connected,
    lost,        // a connection ended: `why`
    unconnected  // an attempt failed: `why`
  };
  Kind kind = Kind::connected;
  Error why{};  // its text names the endpoint
};

struct ClientOptions {
  // Bounds of the connection, as a server's. By default a frame is refused while the write budget is spent, and
  // silence does not time out.
  SessionLimits limits = default_limits();
  sys::SocketOptions socket{};
  Duration lookup_timeout = std::chrono::seconds(30);         // of the host's name; negative: none
  Duration connect_timeout = std::chrono::seconds(5);         // after that; negative: none
  Duration reconnect_first = std::chrono::milliseconds(100);  // the first wait is 0.5 to 1 times this, ...
  Duration reconnect_max = std::chrono::seconds(10);          // ... the next ones double up to this
  std::uint32_t in_flight_max = 1024;                         // requests that wait for a response
  // Where the order counts (correlation.h), a request that was given up still has a response coming. After
  // late_max, and after twice that at most, the client drops the connection, because its order cannot be
  // trusted. Negative: never.
  Duration late_max = std::chrono::seconds(10);
  // The connection uses TLS 1.3, to a server whose certificate is for `tls_name`; empty: for the endpoint's
  // host. The client is connected when the handshake is over, which connect_timeout includes. Null: no TLS.
  std::shared_ptr<net::TlsClient> tls{};
  std::string tls_name{};
  // Puts a layer between a session and its socket, as ListenerOptions::wrap. TLS is above it.
  std::function<Result<std::unique_ptr<net::ByteStream>>(std::unique_ptr<net::ByteStream>)> wrap{};
  // Called in a turn of its own, with no call of the client on the stack: the function may close or destroy the
  // client.
  std::function<void(const ClientEvent&)> on_event{};
  net::Resolver* resolver = nullptr;  // null: Resolver::shared()

  static SessionLimits default_limits() {
    SessionLimits limits;
    limits.slow_consumer = SlowConsumer::drop_newest;
    limits.handshake_timeout = limits.idle_timeout = Duration(-1);
    limits.write_budget = 1024 * 1024;
    return limits;
  }
};

// clang-format off
#define WEFT_CONNECT_COUNTERS(ROW)                                                                              \
  ROW(attempts, counter, "connect_attempts_total", "", "", "attempts",                                          \
      "Attempts to connect, the first one and those that connect again.", "serve/client/client_link.cc")        \
  ROW(connected, counter, "connections_made_total", "", "", "connections",                                      \
      "Attempts that made a connection.", "serve/client/client_link.cc")                                        \
  ROW(lost, counter, "connections_lost_total", "", "", "connections",                                           \
      "Connections that ended.", "serve/client/client_link.cc")                                                 \
  ROW(timed_out, counter, "connect_timeouts_total", "", "", "attempts",                                         \
      "Attempts that ended at connect_timeout.", "serve/client/client_link.cc")

// Numbers that follow from the counters.
#define WEFT_CLIENT_GAUGES(ROW)                                                                                 \
  ROW(connections, gauge, "connections", "", "", "connections",                                                 \
      "Connections that there are.", "serve/client/client_link.cc")                                             \
  ROW(in_flight, gauge, "requests_in_flight", "", "", "requests",                                               \
      "Requests that wait for their response.", "serve/client/client_link.cc")
// clang-format on

// ConnectNumbers: attempts and connections. The core counts, any thread reads.
template <typename Number>
struct ConnectNumbers {
  WEFT_COUNTER_BLOCK(WEFT_CONNECT_COUNTERS)
};
using ConnectCounts = ConnectNumbers<sync::Counter>;  // the core counts, any thread reads

// ClientCounts: the counters of a client. Owner: the client's owner and its counter_source(), which reads them while
// the client exists.
struct ClientCounts {
  RequestCounts requests;
  ConnectCounts connections;
};

// ClientReading: a client's numbers on a page.
struct ClientReading {
  struct Gauges {
    using Number = std::uint64_t;
    WEFT_COUNTER_BLOCK(WEFT_CLIENT_GAUGES)
  };

  RequestNumbers<std::uint64_t> requests;
  ConnectNumbers<std::uint64_t> connects;
  Gauges gauges;

  [[nodiscard]] static ClientReading of(const ClientCounts& counts) noexcept;
  template <typename Visitor, typename... Blocks>
  static constexpr void visit(Visitor&& visitor, Blocks&... blocks) {
    RequestNumbers<std::uint64_t>::visit(visitor, blocks.requests...);
    ConnectNumbers<std::uint64_t>::visit(visitor, blocks.connects...);
    Gauges::visit(visitor, blocks.gauges...);
  }
};
extern const CounterTable kClientTable;

// The error of a request while there is no connection: `unreachable`, not sent, with the reason in its text.
[[nodiscard]] Error not_connected_for(const Error& trouble) noexcept;

// ClientLink: the part of a client without a codec. It dials, owns the session while there is one, dials again, and
// holds the requests in flight.
// Owner: the client, and its coroutines, which may outlive it. Affinity: its core.
// Invariants:
//   1. There is at most one session at a time, and run() waits for its end: a session never outlives the link.
//   2. When a connection ends, all requests in flight on it are answered with the reason.
//   3. After shut_down() the link connects and sends nothing any more.
class ClientLink {
 public:
  ClientLink(std::shared_ptr<ClientHost> host, net::Endpoint endpoint, ClientOptions options, Matching matching);
  ClientLink(const ClientLink&) = delete;
  ClientLink& operator=(const ClientLink&) = delete;

  // Starts to connect, in the next turn. `self` keeps `service` and `codec` alive.
  [[nodiscard]] static Result<void> start(const std::shared_ptr<ClientLink>& self, const SessionOps& ops, void* service,
                                          const void* codec);
  [[nodiscard]] static rt::Task<Result<void>> close(std::shared_ptr<ClientLink> self, Instant deadline);
  [[nodiscard]] static rt::Task<Result<void>> connected(std::shared_ptr<ClientLink> self, Instant deadline);
  void shut_down() noexcept;                        // at once, and without events; idempotent
  void drop_connection(const Error& why) noexcept;  // ends the connection, and connects again

  [[nodiscard]] bool is_connected() const noexcept { return session_ != nullptr && session_->is_open(); }
  // Drops a connection whose whole window is requests that were given up: its peer does not answer any longer.
  [[nodiscard]] bool has_room() noexcept;
  [[nodiscard]] std::size_t room() const noexcept { return is_connected() && !closing_ ? in_flight_.room() : 0; }
  void on_room(std::function<void()> function) { on_room_ = std::move(function); }
  [[nodiscard]] ClientHost& host() noexcept { return *host_; }
  [[nodiscard]] InFlight& in_flight() noexcept { return in_flight_; }
  [[nodiscard]] const InFlight& in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] const RequestCounts& requests() const noexcept { return counts_->requests; }
  [[nodiscard]] const ConnectCounts& connections() const noexcept { return counts_->connections; }
  [[nodiscard]] CounterSource counter_source() const;
  [[nodiscard]] const net::Endpoint& endpoint() const noexcept { return endpoint_; }
  // ok, or the error of a call in another thread than the core's. Costs a load of the thread's and a comparison.
  [[nodiscard]] Error used_elsewhere() const noexcept {
    return rt::Core::current() == core_ ? Error() : rt::used_elsewhere("client", core_);
  }

 protected:
  ~ClientLink() = default;

  // --- from the session's service ---
  void note_open(Session& session) noexcept;
  void note_close(const Error& why) noexcept;
  void note_heard() noexcept { heard_ = true; }

  // --- from requests ---
  // Returns the session to send by. Fails, and counts the failure, without a session, or if the window is full.
  [[nodiscard]] Result<Session*> sender() noexcept;
  [[nodiscard]] Result<Session*> requester() noexcept;
  [[nodiscard]] Session* open_session() noexcept { return is_connected() ? session_ : nullptr; }
  void count_refused() noexcept { counts_->requests.refused.add(); }
  void count_sent() noexcept { counts_->requests.sent.add(); }
  void note_late() {
    if (on_room_ && !silent_) {
      on_room_();
    }
  }
  void count_error_frame() noexcept { counts_->requests.error_frames.add(); }
  void count_push() noexcept { counts_->requests.pushes.add(); }
  void count_dropped_push() noexcept { counts_->requests.pushes_dropped.add(); }
  void note_resumed() noexcept;  // a request's coroutine was resumed
  [[nodiscard]] Instant now() noexcept { return host_->core().loop().now(); }

 private:
  void watch_owed() noexcept;
  void check_owed() noexcept;
  static rt::Task<void> run(std::shared_ptr<ClientLink> self);
  static rt::Task<Attempt> attempt(ClientLink* self);
  static rt::Task<Result<std::unique_ptr<net::ByteStream>>> connect(ClientLink* self);
  static rt::Task<Result<std::unique_ptr<net::ByteStream>>> connect_to(ClientLink* self, Dialling* dialling);
  static rt::Task<Result<void>> wait_quiet(ClientLink* self);
  static rt::Task<Result<void>> wait_ended(ClientLink* self);
  static rt::Task<Result<void>> wait_connected(std::shared_ptr<ClientLink> self);
  [[nodiscard]] Result<void> open(std::unique_ptr<net::ByteStream> stream);
  void report(ClientEvent::Kind kind, const Error& why) noexcept;
  [[nodiscard]] Error named(const Error& why) const noexcept;  // with the endpoint in the text
  void note_trouble(const Error& why) noexcept;
  void cancel_run() noexcept;
  [[nodiscard]] Error not_connected() noexcept;

  const std::shared_ptr<ClientHost> host_;
  const rt::Core* const core_ = &host_->core();
  const net::Endpoint endpoint_;
  const std::string endpoint_text_ = endpoint_.text();
  ClientOptions options_;
  SessionOps ops_{};
  ServiceSlot slot_;
  const std::shared_ptr<ClientCounts> counts_ = std::make_shared<ClientCounts>();
  InFlight in_flight_;
  Session* session_ = nullptr;
  SessionEnd* end_wait_ = nullptr;
  std::function<void()> on_room_;
  Error why_;            // why the last session ended
  Error trouble_;        // why there is no connection; ok: there is one, or the first attempt has not ended
  Error not_connected_;  // the error of requests in the meantime; ok: none was refused yet
  rt::TimerId owed_timer_;
  bool heard_ = false;
  bool begun_ = false;  // run() has begun
  bool closing_ = false;
  bool ended_ = false;      // run() has ended
  bool silent_ = false;     // shut_down() was called: the objects of on_event may be gone
  rt::AsyncEvent changed_;  // pulsed when connected, ended, or the last waiting request was answered
  rt::TaskScope scope_;     // run()
};

}  // namespace weft::serve
