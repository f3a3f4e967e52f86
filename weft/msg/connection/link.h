// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weft/msg/connection/connection_common.h"
#include "weft/msg/connection/connector.h"
#include "weft/msg/connection/receive_side.h"
#include "weft/msg/connection/send_side.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/peer_properties.h"
#include "weft/rt/loop/loop.h"

namespace weft::msg {

// Link: the life of a connection: dial, handshake, time, take-down, close. It holds both batons while there is no
// connection, so no other part needs to know whether there is one.
// Owner: the connection. Affinity: the I/O thread, unless a member says otherwise.
class Link final : public rt::Watcher {
 public:
  // Connecting: `connector` dials again whenever the connection is lost. Accepted, with null: as long as the stream.
  Link(ConnectionCommon& common, SendSide& send, ReceiveSide& receive, std::shared_ptr<ConnectionOwner> owner,
       std::unique_ptr<Connector> connector, bool proxied);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() = default;

  [[nodiscard]] PeerId peer_id() const noexcept { return peer_id_; }
  [[nodiscard]] bool connecting() const noexcept { return connector_ != nullptr; }  // any thread
  [[nodiscard]] const std::string& other_end() const noexcept { return other_end_; }

  void start();
  void close(Instant deadline);  // delivers the queued messages until then, then ends
  void close_when_sent();        // any thread: the same for as long as the peer takes some of it
  void handle_event(const sys::PollEvent& event) override;
  void await_room();                         // asks the poller to report room in the kernel
  [[nodiscard]] bool watch_turn() noexcept;  // true: the application reads by itself; visit again
  void take_down();                          // the input has ended
  void resume_reading();                     // the turn before was spent, or the application made room
  void read_traffic() noexcept;              // for a turn, if there is a connection; ends nothing by itself
  void handle_peer_time();

 private:
  enum class Phase : std::uint8_t { idle, dialling, handshake, traffic, draining, finished };
  // Why there is no connection: a bit of the option reconnect_stop, or 0.
  enum Cause : std::uint8_t { lost = 0, refused = 1, handshake_failed = 2, closing = 4, misgreeted = 8 };
  // A thread of the application holds a baton for microseconds. Until the link has it, it tries again after this.
  static constexpr Duration kBatonRetry = std::chrono::microseconds(200);

  // link.cc
  [[nodiscard]] std::shared_ptr<void> keep_alive() const;
  using Step = void (Link::*)();
  template <Step kStep>
  void schedule(rt::TimerId& timer, Instant deadline) {
    schedule(timer, deadline, [](void* self) { (static_cast<Link*>(self)->*kStep)(); });
  }
  void schedule(rt::TimerId& timer, Instant deadline, void (*fire)(void*));
  void dial();
  void handle_dial(const Result<net::Progress>& progress);
  void handle_connect_time();
  void retry_later(Cause cause);
  [[nodiscard]] std::string find_other_end() const;
  [[nodiscard]] MonitorEvent describe(EventKind kind, Error reason = {}, int fd = -1) const;

  // link_handshake.cc
  void begin_handshake(std::unique_ptr<net::Stream> stream);
  void handle_handshake();
  [[nodiscard]] bool write_handshake(int& os_errno);
  void await_leaving();
  void fail_handshake(Error reason, std::uint32_t detail = 0);
  [[nodiscard]] bool ends_for_good(const Error& reason) const;
  void choose_opening() noexcept;
  void answer_question();
  void handle_zap_reply(const ZapReply& reply);
  void enter_traffic();
  void remember_peer();

  // link_traffic.cc
  void handle_traffic(const sys::PollEvent& event);
  void set_interest(sys::Interest interest);
  [[nodiscard]] bool app_has_read() noexcept;
  void schedule_peer_time();

  // link_end.cc
  [[nodiscard]] bool take_both_batons() noexcept;
  void finish_take_down();
  void drop_stream() noexcept;
  void begin_close(Instant deadline);
  void linger();
  void drain();
  void handle_close_time();
  void finish();

  struct Timers {
    rt::TimerId retry;
    rt::TimerId connect;
    rt::TimerId peer;
    rt::TimerId close;
    rt::TimerId take_down;
    rt::TimerId linger;
  };
  struct Closing {
    bool begun = false;
    bool patient = false;            // the deadline moves while the peer takes bytes
    std::uint64_t flushed_seen = 0;  // bytes that the kernel had taken when the deadline last moved
    Instant deadline = kNever;
  };
  struct AppReads {
    bool active = false;  // the socket's own threads wait for the descriptor, so this thread does not
    std::uint64_t seen = 0;
    std::uint32_t idle_turns = 0;
  };

  ConnectionCommon& common_;
  SendSide& send_;
  ReceiveSide& receive_;
  std::shared_ptr<ConnectionOwner> keep_owner_;  // until finished
  const std::unique_ptr<Connector> connector_;
  const bool proxied_;
  Phase phase_ = Phase::idle;
  rt::Loop::WatchId watch_ = 0;
  sys::Interest interest_ = sys::Interest::none;
  AppReads app_reads_;
  Closing closing_;
  Timers timers_;
  bool raw_ = false;                                  // this connection is bytes, not frames
  bool refused_for_now_ = false;                      // the handshake does not go on
  bool gave_up_ = false;                              // never connects again
  zmtp::Opening opening_ = zmtp::Opening::signature;  // of the next handshake
  int dialled_fd_ = -1;                               // of the attempt under way or just failed; for events only
  std::string other_end_;            // MonitorEvent::other; empty when nothing watched as the connection began
  PeerId peer_id_ = 0;               // while there is a connection past its handshake
  zmtp::Metadata authenticated_;     // the authenticator's properties of the peer
  std::unique_ptr<ZapRequest> zap_;  // the question that the handshake waits for
};

}  // namespace weft::msg
