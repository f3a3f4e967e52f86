// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
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
#include "weft/zmtp/wire_type.h"

namespace weft::zmtp {

// How many commands of one kind a peer may send: `burst` at once, which leaves room for the backlog after a reader
// stalled, and `per_second` from then on.
struct CommandRate {
  std::uint32_t burst;
  std::uint32_t per_second;
};

// Every bound on the memory and the work that a peer can cause in this process. A value equal to its bound is allowed;
// one more is a fault.
struct Limits {
  std::uint32_t handshake_bytes_max = 16 * 1024;      // bodies of all handshake commands together
  std::uint32_t metadata_properties_max = 64;         // properties in them
  std::uint32_t command_bytes_max = 1024;             // body of a later command, SUBSCRIBE and CANCEL excepted
  std::uint32_t subscription_bytes_max = 64 * 1024;   // topic, in either form; a longer one is dropped
  std::uint32_t subscription_dropped_max = 16 << 20;  // such a topic, as a command
  std::uint64_t frame_bytes_max = kFrameBodySizeMax;  // body of one message frame
  CommandRate pings{10'000, 10'000};
  CommandRate pongs{10'000, 10'000};              // one for each of our PINGs
  CommandRate subscriptions{2'000'000, 200'000};  // SUBSCRIBE, CANCEL, FILTER, UNFILTER, JOIN, LEAVE, the older form
  CommandRate unknown_commands{10'000, 1'000};    // of later versions
};

using Metadata = std::vector<std::pair<std::string, std::string>>;

// The owner validates these: identity <= kIdentityMax, metadata names 1..255 bytes.
struct LocalEndConfig {
  WireType socket_type = WireType::pair;
  std::string identity;
  bool as_server = false;       // goes into the greeting of a mechanism that has roles; NULL sends 0
  bool takes_old_peers = true;  // ZMTP 1.0 and 2.0, with NULL; false where NULL must ask, since they know no security
  Limits limits;
  bool announces_filters = true;   // READY of a publisher or a subscriber announces FILTER
  Metadata metadata;               // further READY properties, "X-..."
  Duration heartbeat_interval{0};  // between our PINGs; 0: none
  Duration heartbeat_ttl{0};       // announced to the peer in our PINGs; 0: none
  Duration heartbeat_timeout{-1};  // from an unanswered PING to expiry; 0: none; negative: the interval
  Duration handshake_timeout{std::chrono::seconds(30)};  // from start to ready; 0: none
};

// The meaning of a command for the socket. The view points into the caller's bytes.
struct Event {
  enum class Kind : std::uint8_t { none, subscribe, cancel, excess, ping, pong, error, join, leave, filter, unfilter };
  Kind kind = Kind::none;
  std::uint16_t ttl_deciseconds = 0;  // ping
  // excess: a subscription or cancellation beyond its bound, which has no effect
  // subscribe, cancel: topic; filter, unfilter: its text; join, leave: group; ping, pong: context; error: reason
  Bytes topic_or_context;
  FilterKind filter_kind = FilterKind::prefix;  // subscribe, cancel, filter, unfilter
};

enum class TimeAction : std::uint8_t { none, send_ping, expired };

// How much of our greeting goes out before the peer has shown its version.
enum class Opening : std::uint8_t {
  whole,      // all of it, which saves a round trip with a ZMTP 3 peer; an older one fails: see greeted_too_much()
  signature,  // the bytes that every version understands; the rest after the peer shows that it can read it
};

// LocalEnd: our end of one ZMTP connection, as a pure function of bytes and time. It speaks 3.x, and 2.0 and
// 1.0 to a peer that speaks nothing newer (local_end_old.cc). The handshake of those is an identity, and they
// have neither commands nor heartbeats.
// Owner: the connection's object, which may start() it for one connection after the other.
// Affinity: one thread at a time. From ready() on, handle_command and parse_legacy_subscription leave
// pending_output alone. So a reader, and the writer that still drains it, need no common lock.
// Cost: allocates in the constructor and during a handshake, never after ready().
// Invariants:
//   1. The outcome depends on the bytes, never on how they were cut.
//   2. The first fault stays until start(), and stops everything.
//   3. No size comes from a number that the peer sent before that number was checked against Limits.
//   4. Output offered before a fault stays offered: flush it before closing (it may hold an ERROR for the peer).
class LocalEnd {
 public:
  explicit LocalEnd(LocalEndConfig config);  // NULL
  LocalEnd(LocalEndConfig config, std::unique_ptr<Mechanism> mechanism);

  // Begins a connection: forgets the previous one and offers our greeting.
  void start(Instant now, Opening opening = Opening::whole);

  // Handshake. Takes the greeting and handshake commands off the front of `input` and returns the number of bytes
  // taken. Stops at ready() (the rest is traffic) or at a fault. The caller passes the remaining bytes again with more
  // after them: its buffer holds at least kFrameHeaderSizeMax + Limits::handshake_bytes_max.
  [[nodiscard]] std::size_t handle_input(Bytes input, Instant now);
  [[nodiscard]] Bytes pending_output() const noexcept { return Bytes(output_).subspan(output_sent_); }
  void consume_output(std::size_t size) noexcept;
  [[nodiscard]] bool ready() const noexcept { return phase_ == Phase::traffic; }  // a later fault does not change it
  [[nodiscard]] const std::optional<Fault>& fault() const noexcept { return fault_; }

  // The only fault is that Opening::whole was too much for this peer: connect again with Opening::signature.
  [[nodiscard]] bool greeted_too_much() const noexcept { return greeted_too_much_; }

  // Not null: the handshake takes no more input until the owner calls answer() with a status of ZAP, or 0 when there
  // was no one to ask. Every status except kAdmitted is a fault. The peer receives kRefused and kCannotTell. Then the
  // owner calls handle_input again.
  [[nodiscard]] const Question* question() const noexcept { return asking_ ? mechanism_->question() : nullptr; }
  void answer(int status, Instant now);
  // While there is a question, whether `input` completes the peer's part of the handshake, and has bytes after it. With
  // NULL a peer sends all that without an answer.
  [[nodiscard]] bool completes(Bytes input) const noexcept;
  // After the fault handshake_refused: the status with which one side refused the other; 0 for other reasons.
  [[nodiscard]] int refusal_status() const noexcept { return refusal_status_; }

  // Traffic. The caller parses headers, calls admit() before it makes room for a body, and hands over the
  // bodies of commands. A command may stand between the parts of a message.
  [[nodiscard]] bool admit(const ZmtpFrameHeader& header) noexcept {
    const bool command = (header.flags & kCommand) != 0;
    if (header.body_size <= (command ? command_body_max_ : config_.limits.frame_bytes_max)) [[likely]] {
      return true;
    }
    const StaticText why = command ? StaticText("command exceeds its limit") : StaticText("message exceeds its limit");
    return fail(Errc::message_too_large, why), false;
  }
  // Whether a message part of `size` bytes is admitted.
  [[nodiscard]] bool admits(std::uint64_t size) const noexcept { return size <= config_.limits.frame_bytes_max; }
  // Ignores unknown commands, for later versions. Only a RADIO takes JOIN and LEAVE, only a PUB and an XPUB FILTER. The
  // caller owes a PING a write_pong(context).
  [[nodiscard]] Event handle_command(Bytes body, Instant now) noexcept;
  // The form that 3.0 peers use and 3.1 peers may use: a message that begins with 01 or 00. Any other message
  // is Kind::none.
  [[nodiscard]] Event parse_legacy_subscription(Bytes message_body, Instant now) noexcept;

  // Returns null if traffic is in the clear. Otherwise every frame of it is sealed, and the calls above take the opened
  // content.
  [[nodiscard]] Mechanism* cipher() const noexcept { return mechanism_->encrypts() ? mechanism_.get() : nullptr; }
  [[nodiscard]] std::string_view mechanism_name() const noexcept { return mechanism_->name(); }
  [[nodiscard]] bool serves() const noexcept;  // this is the server of a mechanism whose sides differ

  // Time: the handshake deadline, our heartbeats, the TTL of the peer's last PING. `last_input` is the time
  // of the last bytes. The caller reads all available bytes before it calls. While the caller has suspended
  // reading it passes the present, since that silence is not the peer's.
  [[nodiscard]] Instant next_deadline(Instant last_input) const noexcept;
  [[nodiscard]] TimeAction handle_time(Instant now, Instant last_input) noexcept;  // expired: the fault is timed_out
  [[nodiscard]] std::uint16_t ping_ttl_deciseconds() const noexcept;               // for write_ping; rounded up

  // The peer's announcements. Valid from ready() until start(); the version as soon as it is known.
  [[nodiscard]] Version version() const noexcept { return peer_.version; }
  [[nodiscard]] Framing framing() const noexcept {
    return peer_.version == Version::v1 || peer_.version == Version::v1_signed ? Framing::v1 : Framing::v3;
  }
  // ZMTP 1.0 has no subscriptions: the subscriber gets every message and filters itself.
  [[nodiscard]] bool subscribes_by_itself() const noexcept { return peer_.version != Version::v1; }
  [[nodiscard]] int minor_version() const noexcept { return peer_.minor_version; }  // of ZMTP 3: 0 or 1; older: 0
  [[nodiscard]] WireType peer_type() const noexcept { return peer_.type; }
  // The peer announced filters, as we do: it sends FILTER, or takes it.
  [[nodiscard]] bool peer_has_filters() const noexcept { return peer_.has_filters; }
  [[nodiscard]] Bytes peer_identity() const noexcept { return as_bytes(peer_.identity); }
  [[nodiscard]] const Metadata& peer_metadata() const noexcept { return peer_.metadata; }  // all of it, as sent
  [[nodiscard]] Metadata take_peer_metadata() noexcept { return std::exchange(peer_.metadata, {}); }
  [[nodiscard]] std::string_view refusal() const noexcept { return refusal_; }  // the reason in ERROR

 private:
  enum class Phase : std::uint8_t { idle, greeting, old_greeting, handshake, traffic };

  // The commands of one kind so far. The state is one word: the time at which the rate has made up for all of them.
  class Meter {
   public:
    [[nodiscard]] bool take(const CommandRate& rate, Instant now) noexcept {
      const Duration each = std::chrono::nanoseconds(std::chrono::seconds(1)) / rate.per_second;
      even_at_ = std::max(even_at_, now) + each;
      return even_at_ - now <= rate.burst * each;
    }

   private:
    Instant even_at_{};
  };
  struct Meters {
    Meter pings;
    Meter pongs;
    Meter subscriptions;
    Meter unknown_commands;
  };

  void fail(Errc code, StaticText text, Breach breach = Breach::none) noexcept;
  void refuse(StaticText text) noexcept;
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
  [[nodiscard]] bool accept_identity(Bytes identity);
  void poll_mechanism();
  [[nodiscard]] Event subscription(Event::Kind kind, Bytes topic, Instant now) noexcept;
  [[nodiscard]] Event filter(Event::Kind kind, Bytes data, Instant now) noexcept;
  [[nodiscard]] Event ping(Bytes data, Instant now) noexcept;
  [[nodiscard]] Instant expiry(Instant last_input) const noexcept;
  [[nodiscard]] Instant ping_due() const noexcept;

  LocalEndConfig config_;
  std::unique_ptr<Mechanism> mechanism_;
  std::vector<std::uint8_t> our_metadata_;
  std::uint64_t command_body_max_ = 0;

  std::size_t greeting_offered_ = 0;  // the bytes of our greeting that went out
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

  // The announcements of the peer.
  struct Peer {
    Version version = Version::unknown;
    int minor_version = 0;
    WireType type = WireType::pair;
    std::string identity{};
    bool has_filters = false;
    Metadata metadata{};
  };
  Peer peer_;

  Instant started_{};            // the start of the connection, then the time of ready()
  Instant last_ping_{};          // ours; ready() counts as the first
  Instant unanswered_ = kNever;  // our first PING since the peer's last bytes
  Duration peer_ttl_{0};
  Meters meters_;
};

}  // namespace weft::zmtp
