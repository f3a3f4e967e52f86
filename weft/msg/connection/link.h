// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "weft/base/list.h"
#include "weft/msg/connection/connection_common.h"
#include "weft/msg/connection/connector.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/receive_side.h"
#include "weft/msg/connection/send_side.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/peer_properties.h"
#include "weft/rt/loop/loop.h"

namespace weft::msg {

// The deadline of a socket that has no linger: its queued messages are dropped. Another deadline that has passed when
// the I/O thread reads it permits one write.
inline constexpr Instant kNoLinger = Instant::min();

// Link: the life of a connection: dial, handshake, time, take-down, close. It holds both batons while there is no
// connection, so no other part checks for one.
// Owner: the connection. Affinity: the I/O thread, except where a member names another one.
// The hook: in AppReaders::links while the socket's own threads read the connection.
class Link final : public rt::Watcher, public ListHook {
 public:
  // Connecting: `connector` dials again whenever the connection is lost. Accepted: lives as long as common's stream.
  Link(ConnectionCommon& common, SendSide& send, ReceiveSide& receive, std::shared_ptr<ConnectionOwner> owner,
       std::unique_ptr<Connector> connector, bool proxied);
  Link(ConnectionCommon& common, SendSide& send, ReceiveSide& receive, std::shared_ptr<ConnectionOwner> owner,
       const Accepted& accepted);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() = default;

  [[nodiscard]] const std::shared_ptr<const KnownPeer>& peer() const noexcept { return peer_; }
  // I/O thread, from the end of the handshake on.
  [[nodiscard]] bool peer_has_filters() const noexcept { return speaks_zmtp() && common_.local_end.peer_has_filters(); }
  [[nodiscard]] SocketShare& share() noexcept { return common_.share; }
  [[nodiscard]] bool connecting() const noexcept { return connector_ != nullptr; }  // any thread
  [[nodiscard]] const std::string& other_end() const noexcept { return other_end_; }
  // Any thread that has the read baton.
  [[nodiscard]] MonitorEvent describe(EventKind kind, Error reason = {}, int fd = -1) const;

  void start() noexcept { run<&Link::begin>(); }
  void close(Instant deadline);                   // delivers the queued messages until then, then ends
  void request_close(Instant deadline) noexcept;  // any thread: close() soon
  // Any thread: an event shall report the end.
  void announce_end() noexcept { closing_.announced.store(true, std::memory_order_relaxed); }
  void request_close_when_sent() noexcept;           // any thread: the same as long as the peer takes bytes
  void request_marks() noexcept;                     // any thread: the marks have changed
  void handle_requests(unsigned requests) noexcept;  // IoService::Request
  void retry_timers() noexcept;
  void handle_event(const sys::PollEvent& event) override;
  void await_room();   // the poller reports room in the kernel
  void await_input();  // the application reads no more: the poller reports input again
  // IoService's: see ReceiveSide.
  void leave_to_app_threads() noexcept { receive_.leave_to_app(); }
  void take_back_from_app() noexcept { receive_.take_back(); }
  void take_down();       // the input has ended
  void drop_unread();     // the peer does not read our subscriptions: ends the connection
  void resume_reading();  // the turn before was spent, or the application made room
  void read_left_over();  // a turn of the application left bytes in the reader
  void read_in_line() noexcept { run<&Link::read_for_turn>(); }
  void handle_peer_time();

 private:
  enum class Phase : std::uint8_t { idle, dialling, handshake, traffic, draining, finished };
  // The reason for the missing connection: a bit of the option reconnect_stop, or 0.
  enum Cause : std::uint8_t { lost = 0, refused = 1, handshake_failed = 2, closing = 4, misgreeted = 8 };
  // The rule for the wait before the next attempt: see Backoff.
  enum class Pace : std::uint8_t { usual, cut, costly };
  // If a peer ends a connection within this time, it may end each of them.
  static constexpr Duration kSettled = std::chrono::seconds(2);
  // A thread of the application holds a baton for microseconds. The link tries to take it at this interval.
  static constexpr Duration kBatonRetry = std::chrono::microseconds(200);

  // link.cc
  using Step = void (Link::*)();
  // Each step of the link runs in here. Without memory the connection ends with resource_exhausted; an outgoing one
  // dials again later. From begin_handshake() on, the ways to the end need no memory, and neither does traffic.
  template <Step kStep>
  void run() noexcept {
    const auto keep = keep_alive();
    try {
      (this->*kStep)();
    } catch (const std::bad_alloc&) {
      handle_no_memory();
    }
  }
  void handle_no_memory() noexcept;
  void begin();
  void handle_resolved();
  void handle_readiness();
  [[nodiscard]] std::shared_ptr<void> keep_alive() const;
  // Without memory for it, the link tries to schedule the timer again until it has one.
  struct Timer {
    rt::TimerId id;
    Instant unscheduled = kNever;  // the deadline while memory for the timer is missing
    void (*fire)(void*) = nullptr;
  };
  template <Step kStep>
  void schedule(Timer& timer, Instant deadline) noexcept {
    schedule(timer, deadline, [](void* self) { static_cast<Link*>(self)->run<kStep>(); });
  }
  void schedule(Timer& timer, Instant deadline, void (*fire)(void*)) noexcept;
  void dial();
  void begin_dial_step(const Result<net::Progress>& progress);
  void handle_dial(const Result<net::Progress>& progress);
  void name_far_end();
  void handle_connect_time();
  void retry_later(Cause cause, Pace pace = Pace::usual) noexcept;
  [[nodiscard]] std::string find_other_end() const;
  void emit(EventKind kind, Error reason = {}, int fd = -1, std::uint32_t detail = 0, PeerId peer = 0) const noexcept;

  // link_handshake.cc
  void begin_handshake(std::unique_ptr<net::ByteStream> stream);
  [[nodiscard]] Result<void> put_layer();
  [[nodiscard]] bool speaks_zmtp() const;
  [[nodiscard]] Error describe_refusal() const;
  void handle_handshake();
  void end_handshake(bool writable, int os_errno);
  [[nodiscard]] bool has_said_all() noexcept;
  [[nodiscard]] bool has_last_words();
  [[nodiscard]] bool computes_long() const noexcept;
  void handle_layer_handshake();
  [[nodiscard]] bool write_handshake(int& os_errno);
  void await_leaving();
  void fail_stream(StaticText text, int os_errno) noexcept;
  void fail_handshake(Error reason, std::uint32_t detail = 0) noexcept;
  [[nodiscard]] bool ends_for_good(const Error& reason, bool in_tls) const noexcept;
  void choose_opening() noexcept;
  void answer_question();
  void take_zap_reply(const ZapReply& reply) noexcept;
  void handle_zap_reply(const ZapReply& reply);
  void enter_traffic();
  enum Notice : int { kBegin = 1, kEnd = 2 };  // bits of the option router_notify
  [[nodiscard]] bool tells(Notice notice) const noexcept;
  [[nodiscard]] std::string certificate_subject() const;
  void remember_peer();

  // link_traffic.cc
  void handle_traffic(const sys::PollEvent& event);
  [[nodiscard]] bool reads_now() noexcept;
  void read_held() noexcept;
  void read_for_turn();
  void end_in_turn(bool at_once) noexcept;
  [[nodiscard]] bool leave_to_app();
  void push_layer() noexcept;
  [[nodiscard]] sys::Interest traffic_interest() const noexcept;
  void bound_unsent() noexcept;
  void set_interest(sys::Interest interest);
  void schedule_peer_time();
  void send_ping();

  // link_end.cc
  [[nodiscard]] bool take_both_batons() noexcept;
  void finish_take_down();
  [[nodiscard]] bool queue_last_message() noexcept;
  [[nodiscard]] bool keeps_stream(const Error& reason) const;
  void begin_later() noexcept;
  void drop_stream(bool keep = false) noexcept;
  void begin_close(Instant deadline);  // kNoLinger: drops the queued messages
  void close_when_sent();
  void linger();
  void await_delivery();
  void drain();
  void handle_close_time();
  void finish() noexcept;

  struct Timers {
    Timer retry;
    Timer connect;
    Timer peer;
    Timer close;
    Timer take_down;
    Timer linger;
  };
  // The attempt to connect that is under way or has just failed; for events only.
  struct Dialled {
    int fd = -1;
    std::size_t tries_told = 0;  // addresses that events have reported
    std::string address;         // MonitorEvent::address; also while there is a connection
  };
  // Of an accepted connection.
  struct Arrival {
    Instant at{};
    std::size_t greeting_written = 0;  // bytes of our greeting that went out before
  };
  // The turns of the I/O thread.
  struct Line {
    explicit Line(Link& link) noexcept : place(link) {}
    net::ReadTurns<Link>::Place place;
    bool end_due = false;  // take_down() is due
  };
  struct Closing {
    std::atomic<bool> announced{false};  // an event reports the end; a flag alone, ordered by the request to close
    bool begun = false;
    bool patient = false;            // the deadline moves while the peer takes bytes
    std::uint64_t flushed_seen = 0;  // bytes that the kernel had taken when the deadline last moved
    std::uint64_t held_seen = 0;     // draining: bytes that the kernel or a layer held
    Instant peer_ends_by = kNever;   // draining
    Instant deadline = kNever;
  };

  ConnectionCommon& common_;
  SendSide& send_;
  ReceiveSide& receive_;
  std::shared_ptr<ConnectionOwner> keep_owner_;  // until finished
  const std::unique_ptr<Connector> connector_;
  const bool proxied_ = false;
  const Arrival arrival_{};
  Phase phase_ = Phase::idle;
  rt::Loop::WatchId watch_ = 0;
  sys::Interest interest_ = sys::Interest::none;
  Closing closing_;
  Timers timers_;
  TimerRetry timer_retry_{*this};
  Line line_{*this};
  Instant traffic_since_{};                           // the end of the last handshake
  bool listed_ = false;                               // at the I/O service
  std::atomic<Instant::rep> close_deadline_{};        // of request_close()
  bool raw_ = false;                                  // this connection is bytes, not frames
  bool refused_for_now_ = false;                      // the handshake does not go on
  zmtp::Opening opening_ = zmtp::Opening::signature;  // of the next handshake
  Dialled dialled_;
  std::string other_end_;                  // MonitorEvent::other; empty when nothing watched as the connection began
  std::shared_ptr<const KnownPeer> peer_;  // while there is a connection past its handshake; null: without memory
  zmtp::Metadata authenticated_;           // the authenticator's properties of the peer
  std::unique_ptr<ZapRequest> zap_;        // the question that the handshake waits for
};

}  // namespace weft::msg
