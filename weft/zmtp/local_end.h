// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/time.h"
#include "weft/zmtp/command.h"
#include "weft/zmtp/fault.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/frame_v1.h"
#include "weft/zmtp/greeting.h"
#include "weft/zmtp/mechanism.h"
#include "weft/zmtp/socket_type.h"

namespace weft::zmtp {

// Every bound on what a peer may make us hold or do. A bound itself is allowed; one more is a fault.
struct Limits {
  std::uint32_t handshake_bytes_max = 16 * 1024;      // bodies of all handshake commands together
  std::uint32_t metadata_properties_max = 64;         // properties in them
  std::uint32_t command_bytes_max = 1024;             // body of a later command, SUBSCRIBE and CANCEL excepted
  std::uint32_t subscription_bytes_max = 64 * 1024;   // topic, in either form
  std::uint32_t pings_per_second_max = 10'000;        // leaves room for the backlog of a reader that stalled
  std::uint64_t frame_bytes_max = kFrameBodySizeMax;  // body of one message frame
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// The owner validates: identity <= kIdentityMax, metadata names 1..255 bytes.
struct LocalEndConfig {
  SocketType socket_type = SocketType::pair;
  std::string identity;
  bool as_server = false;       // goes into the greeting of a mechanism that has roles; NULL sends 0
  bool takes_old_peers = true;  // ZMTP 1.0 and 2.0, with NULL; they know no security, so not where NULL must ask
  Limits limits;
  Metadata metadata;                                     // further READY properties, "X-..."
  Duration heartbeat_interval{0};                        // between our PINGs; 0 = none
  Duration heartbeat_ttl{0};                             // what our PINGs ask of the peer; 0 = nothing
  Duration heartbeat_timeout{-1};                        // from an unanswered PING to expiry; 0: none, less: interval
  Duration handshake_timeout{std::chrono::seconds(30)};  // from start to ready; 0 = none
};

// What a command means to the socket. The view points into the bytes that were handed in.
struct Event {
  enum class Kind : std::uint8_t { none, subscribe, cancel, ping, pong, error, join, leave };
  Kind kind = Kind::none;
  std::uint16_t ttl_deciseconds = 0;  // ping
  Bytes topic_or_context;  // subscribe, cancel: topic; join, leave: group; ping, pong: context; error: reason
};

enum class TimeAction : std::uint8_t { none, send_ping, expired };

// How much of our greeting goes out before the peer has shown its version.
enum class Opening : std::uint8_t {
  whole,      // all of it, which saves a round trip with a ZMTP 3 peer. An older one is lost: see greeted_too_much()
  signature,  // what every version understands; the rest as the peer shows that it can take it
};

// LocalEnd: our end of one ZMTP connection, as a pure function of bytes and time. It speaks 3.x, and 2.0 and 1.0 to a
// peer that knows no more (local_end_old.cc): those have an identity for a handshake, and neither commands nor
// heartbeats. Owner: the session; one LocalEnd serves its connections one after the other. Affinity: one thread at a
// time. From ready() on, handle_command and parse_legacy_subscription leave pending_output alone, so that a reader and
// the writer that still drains it need no common lock. Cost: allocates in the constructor and during a handshake, never
// after ready(). Invariants:
//   1. The outcome depends on the bytes, never on how they were cut.
//   2. The first fault stays until start(), and stops everything.
//   3. Nothing is sized by a number the peer sent before that number was checked against Limits.
//   4. Output offered before a fault stays offered: flush it before closing (it may hold an ERROR for the peer).
class LocalEnd {
 public:
  explicit LocalEnd(LocalEndConfig config);  // NULL
  LocalEnd(LocalEndConfig config, std::unique_ptr<Mechanism> mechanism);

  // Begins a connection: forgets the one before and offers our greeting.
  void start(Instant now, Opening opening = Opening::whole);

  // Handshake. Takes greeting and handshake commands off the front of `input`, returns how many bytes it took, and
  // stops at ready() (what remains is traffic) or at a fault. What it did not take must be shown again with more behind
  // it: the caller's buffer holds at least kFrameHeaderSizeMax + Limits::handshake_bytes_max.
  [[nodiscard]] std::size_t handle_input(Bytes input, Instant now);
  [[nodiscard]] Bytes pending_output() const noexcept { return Bytes(output_).subspan(output_sent_); }
  void consume_output(std::size_t size) noexcept;
  [[nodiscard]] bool ready() const noexcept { return phase_ == Phase::traffic; }  // a later fault does not undo it
  [[nodiscard]] const std::optional<Fault>& fault() const noexcept { return fault_; }

  // The fault is only that Opening::whole was too much for this peer: connect again with Opening::signature.
  [[nodiscard]] bool greeted_too_much() const noexcept { return greeted_too_much_; }

  // Not null: the handshake takes no more input until the owner has answered: with a status of ZAP, or 0 when
  // there was nobody to ask. Everything but kAdmitted is a fault, of which the peer is told when it is kRefused or
  // kCannotTell. Then call handle_input again.
  [[nodiscard]] const Question* question() const noexcept { return asking_ ? mechanism_->question() : nullptr; }
  void answer(int status, Instant now);
  // After the fault handshake_refused: the status with which we refused the peer or it refused us; 0 for other reasons.
  [[nodiscard]] int refusal_status() const noexcept { return refusal_status_; }

  // Traffic. The caller parses headers, asks admit() before it makes room for a body, and hands over the bodies of
  // commands. A command may stand between the parts of a message.
  [[nodiscard]] bool admit(const FrameHeader& header) noexcept {
    const bool command = (header.flags & kCommand) != 0;
    if (header.body_size <= (command ? command_body_max_ : config_.limits.frame_bytes_max)) [[likely]] {
      return true;
    }
    return fail(Errc::message_too_large, command ? "command exceeds its limit" : "message exceeds its limit"), false;
  }
  // Whether every message part of so many bytes is admitted.
  [[nodiscard]] bool admits(std::uint64_t size) const noexcept { return size <= config_.limits.frame_bytes_max; }
  // Unknown commands are ignored, for the peers to come; JOIN and LEAVE are known to a RADIO only. A PING is owed
  // write_pong(context) by the caller.
  [[nodiscard]] Event handle_command(Bytes body, Instant now) noexcept;
  // The form that 3.0 peers use and 3.1 peers may: a message that begins with 01 or 00. Anything else is Kind::none.
  [[nodiscard]] Event parse_legacy_subscription(Bytes message_body) noexcept;

  // Null: traffic is in the clear. Else every frame of it is sealed, and what the calls above take is what was opened.
  [[nodiscard]] Mechanism* cipher() const noexcept { return mechanism_->encrypts() ? mechanism_.get() : nullptr; }
  [[nodiscard]] std::string_view mechanism_name() const noexcept { return mechanism_->name(); }

  // Time: handshake deadline, our heartbeats, the TTL that the peer's last PING announced. `last_input` is when bytes
  // last came; read what is there before asking, and pass the present while reading is suspended: then silence is ours.
  [[nodiscard]] Instant next_deadline(Instant last_input) const noexcept;
  [[nodiscard]] TimeAction handle_time(Instant now, Instant last_input) noexcept;  // expired: fault timed_out
  [[nodiscard]] std::uint16_t ping_ttl_deciseconds() const noexcept;               // for write_ping; rounded up

  // What the peer said. Valid from ready() until start(); the version as soon as it is known.
  [[nodiscard]] Version version() const noexcept { return version_; }
  [[nodiscard]] Framing framing() const noexcept {
    return version_ == Version::v1 || version_ == Version::v1_signed ? Framing::v1 : Framing::v3;
  }
  // ZMTP 1.0 knows no subscriptions: a subscriber gets everything, and chooses for itself.
  [[nodiscard]] bool subscribes_by_itself() const noexcept { return version_ != Version::v1; }
  [[nodiscard]] int minor_version() const noexcept { return minor_version_; }  // of ZMTP 3: 0 or 1; before it: 0
  [[nodiscard]] SocketType peer_type() const noexcept { return peer_type_; }
  [[nodiscard]] Bytes peer_identity() const noexcept { return as_bytes(peer_identity_); }
  [[nodiscard]] const Metadata& peer_metadata() const noexcept { return peer_metadata_; }  // all of it, as sent
  [[nodiscard]] std::string_view refusal() const noexcept { return refusal_; }             // the reason in ERROR

 private:
  enum class Phase : std::uint8_t { idle, greeting, old_greeting, handshake, traffic };

  void fail(Errc code, const char* text, Breach breach = Breach::none) noexcept;
  [[nodiscard]] bool serves() const noexcept;  // our side of a mechanism whose sides differ
  void refuse(const char* text) noexcept;
  [[nodiscard]] std::size_t handle_greeting(Bytes input, Instant now);
  [[nodiscard]] std::size_t handle_whole_greeting(Bytes input);
  void offer_greeting(std::size_t end);
  void begin_mechanism();
  [[nodiscard]] bool takes_old_peers() const noexcept;
  [[nodiscard]] bool begin_old_greeting();
  [[nodiscard]] std::size_t handle_old_greeting(Bytes input, Instant now);
  [[nodiscard]] bool accept_old_type(std::uint8_t number);
  [[nodiscard]] std::size_t handle_handshake_frame(Bytes input, Instant now);
  void handle_handshake_command(Bytes body, Instant now);
  void handle_step(const Mechanism::Step& step, Instant now);
  [[nodiscard]] bool accept_metadata(Bytes metadata);
  [[nodiscard]] bool accept_socket_type(std::string_view value);
  void poll_mechanism();
  [[nodiscard]] Event subscription(Event::Kind kind, Bytes topic) noexcept;
  [[nodiscard]] Event ping(Bytes data, Instant now) noexcept;
  [[nodiscard]] Instant expiry(Instant last_input) const noexcept;
  [[nodiscard]] Instant ping_due() const noexcept;

  LocalEndConfig config_;
  std::unique_ptr<Mechanism> mechanism_;
  std::vector<std::uint8_t> our_metadata_;
  std::uint64_t command_body_max_ = 0;

  std::size_t greeting_offered_ = 0;  // bytes of our greeting
  std::vector<std::uint8_t> output_;
  std::size_t output_sent_ = 0;
  Phase phase_ = Phase::idle;
  std::uint32_t handshake_bytes_ = 0;
  std::optional<Fault> fault_;
  std::string refusal_;
  int refusal_status_ = 0;
  bool asking_ = false;
  bool greeted_too_much_ = false;
  bool mechanism_begun_ = false;

  Version version_ = Version::unknown;
  int minor_version_ = 0;
  SocketType peer_type_ = SocketType::pair;
  std::string peer_identity_;
  Metadata peer_metadata_;

  Instant started_{};            // of the connection, then of ready()
  Instant last_ping_{};          // ours; ready() counts as the first
  Instant unanswered_ = kNever;  // our first PING since the peer was last heard
  Duration peer_ttl_{0};
  Instant ping_window_{};  // start of the second in which pings_received_ are counted
  std::uint32_t pings_received_ = 0;
};

}  // namespace weft::zmtp
