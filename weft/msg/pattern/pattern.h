// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/message/message_drops.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/part.h"
#include "weft/msg/message/socket_type.h"
#include "weft/msg/pattern/pipe.h"
#include "weft/zmtp/wire_type.h"

namespace weft::msg {

// PatternTraits: the facts about a socket type that the engine uses besides its pattern. A row of WEFT_SOCKET_TYPES
// sets them.
struct PatternTraits {
  SocketType type;
  zmtp::WireType wire;  // the type that the handshake names
  bool sends = true;
  bool receives = true;
  bool conflates = false;            // the option `conflate` has an effect
  bool takes_subscriptions = false;  // peers' SUBSCRIBE goes to handle_subscription(), not to the application
  bool one_lock = false;             // sending and receiving share state: send() runs with the receive lock too
  bool single_part = false;          // messages are of one part, so that any thread may send and receive them
  bool groups = false;               // RADIO, DISH: each message is of a group; peers JOIN and LEAVE groups
  bool takes_hiccup = false;         // the option `hiccup_message` has an effect
  bool takes_goodbye = false;        // the option `disconnect_message` has an effect
  bool connects_once = false;        // a connect to an endpoint that the socket is connected or bound to has no effect
};

// Pattern: the rules by which a socket type sends to its pipes and receives from them. A dynamic seam; a new pattern is
// a file in pattern/ and a row of WEFT_SOCKET_TYPES (message/socket_type.h).
// Life of a pipe: attach -> any number of ready / lost -> detach -> deactivate. Between attach and ready the peer is
// unknown, and the pattern may queue messages for it. After detach the pattern sends nothing to the pipe. Until
// deactivate the application can receive the messages that the pipe holds.
// Locks: the socket holds both locks in attach, ready, lost, detach and option changes. It holds the send lock in send,
// can_send, (un)subscribe, handle_subscription and sweep, and the receive lock in receive and can_receive.
// Invariants:
// 1. All calls except ready are idempotent; attach may follow detach.
// 2. No call waits. would_block means that nothing has changed.
class Pattern {
 public:
  Pattern(const PatternTraits& traits, const Options& options) noexcept : traits_(traits), options_(options) {}
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  [[nodiscard]] const PatternTraits& traits() const noexcept { return traits_; }

  virtual void attach(Pipe& pipe) = 0;
  // The handshake is over and the peer's identity known (empty: none). Returns false to refuse the peer.
  [[nodiscard]] virtual bool ready(Pipe& pipe, Bytes identity);
  virtual void lost(Pipe& pipe);
  virtual void detach(Pipe& pipe) = 0;

  [[nodiscard]] virtual Result<void> send(Outbound& part);
  [[nodiscard]] virtual Result<void> receive(Inbound& part);
  [[nodiscard]] virtual bool can_send();
  [[nodiscard]] virtual bool can_receive();
  virtual void activate(Pipe& pipe);    // receive lock: the pipe may have input
  virtual void deactivate(Pipe& pipe);  // receive lock: the pipe will never have input again
  // Both locks. Adds the pattern's own share of the socket's balance, besides drops().
  virtual void add_counts(Statistics& /*into*/) {}
  [[nodiscard]] const MessageDrops& drops() const noexcept { return drops_; }  // any thread
  // Receive lock. Returns false if the pattern takes no input now, so a waiting thread leaves readable descriptors out.
  [[nodiscard]] virtual bool expects_input() const noexcept { return traits_.receives; }

  // A topic is a prefix, or a filter that Filter::make() takes; a group is passed as a prefix.
  [[nodiscard]] virtual Result<void> subscribe(const FilterView& topic);
  [[nodiscard]] virtual Result<void> unsubscribe(const FilterView& topic);
  // Any thread. Whether the socket joined the group: for messages of peers that do not know it.
  [[nodiscard]] virtual bool takes_group(Bytes /*group*/) noexcept { return true; }
  // Send lock. Whether the peer with that routing id takes a message now. Errors: unreachable; not_supported.
  [[nodiscard]] virtual Result<bool> peer_writable(Bytes routing_id);
  // Send lock. The pipe of the peer with that number. Errors: unreachable; not_supported.
  [[nodiscard]] virtual Result<Pipe*> find_peer(std::uint32_t routing_id);
  // Groups pass here, too, like in (un)subscribe. Errors: message_too_large (the peer would exceed a bound, and loses
  // this subscription); protocol_error, resource_exhausted (the socket refuses the peer). After an error nothing has
  // changed.
  [[nodiscard]] virtual Result<void> handle_subscription(Pipe& pipe, bool subscribe, const FilterView& topic);
  // Send lock. Does work that detach() left, for a bounded time. Returns true if more is left.
  [[nodiscard]] virtual bool sweep();

  // Send lock. The number of different topics: of peers, or of the socket itself.
  [[nodiscard]] virtual Result<std::size_t> topics();
  // Send lock. The number of peers with at least one subscription, for a socket to which peers subscribe.
  [[nodiscard]] virtual std::size_t subscribers() const noexcept { return 0; }

  // The error for More::yes in single_part patterns.
  [[nodiscard]] static Error refuse_more() noexcept;

 protected:
  // The next three throw std::bad_alloc.
  // Option probe_router: sends an empty message, once per connection. Both locks.
  void probe(Pipe& pipe);
  // Option hello_message: sends it once per connection, before the probe. Both locks.
  void send_hello(Pipe& pipe);
  [[nodiscard]] static bool offer_first(Pipe& pipe, Outbound& part);  // returns false if the pipe is full

  const PatternTraits& traits_;
  const Options& options_;  // the socket's, as they are now: a change acts on every pipe
  MessageDrops drops_;      // besides those of the pipes
};

// One maker per file that holds a pattern.
#define WEFT_ROW(name, number, wire_name, maker, ...) \
  [[nodiscard]] std::unique_ptr<Pattern> maker(const PatternTraits& traits, const Options& options);
WEFT_SOCKET_TYPES(WEFT_ROW)
#undef WEFT_ROW

struct PatternRow {
  PatternTraits traits;
  std::unique_ptr<Pattern> (*make)(const PatternTraits& traits, const Options& options);
};
// Null for a type without an implementation.
[[nodiscard]] const PatternRow* find_pattern(SocketType type) noexcept;

}  // namespace weft::msg
