// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/msg/message/options.h"
#include "weft/msg/message/part.h"
#include "weft/msg/pattern/pipe.h"
#include "weft/zmtp/socket_type.h"

namespace weft {
using zmtp::SocketType;
}  // namespace weft

namespace weft::msg {

// What a pattern is, apart from what it does. One row of pattern_table().
struct PatternTraits {
  SocketType type;
  bool sends = true;
  bool receives = true;
  bool takes_subscriptions = false;  // peers' SUBSCRIBE goes to handle_subscription(), not to the application
  bool one_lock = false;             // sending and receiving share state: send() runs with the receive lock too
  bool single_part = false;          // messages are of one part, so that any thread may send and receive them
  bool groups = false;               // RADIO, DISH: and of a group, which peers JOIN and LEAVE
};

// Pattern: what a socket type does with its pipes. One of the five dynamic seams; a new pattern is a file in pattern/
// and a row in pattern_table(). Life of a pipe: attach -> any number of ready / lost -> detach -> deactivate. Between
// attach and ready the peer is unknown: messages may be queued for it. After detach nothing is sent there; what the
// pipe holds can be received until deactivate. All but ready are idempotent; attach may follow detach. Locks: attach,
// ready, lost, detach and option changes: both. send, can_send, (un)subscribe, handle_subscription: the send lock.
// receive, can_receive: the receive lock. No call waits; would_block says that nothing changed.
class Pattern {
 public:
  Pattern(const PatternTraits& traits, const Options& options) noexcept : traits_(traits), options_(options) {}
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  virtual ~Pattern() = default;

  [[nodiscard]] const PatternTraits& traits() const noexcept { return traits_; }

  virtual void attach(Pipe& pipe) = 0;
  // The peer's identity is known (empty: none). False refuses the peer.
  [[nodiscard]] virtual bool ready(Pipe& pipe, Bytes identity);
  virtual void lost(Pipe& pipe);
  virtual void detach(Pipe& pipe) = 0;

  [[nodiscard]] virtual Result<void> send(Outbound& part);
  [[nodiscard]] virtual Result<void> receive(Inbound& part);
  [[nodiscard]] virtual bool can_send();
  [[nodiscard]] virtual bool can_receive();
  virtual void activate(Pipe& pipe);    // receive lock: the pipe may have input
  virtual void deactivate(Pipe& pipe);  // receive lock: it never will again
  [[nodiscard]] virtual std::uint64_t dropped() const noexcept { return dropped_; }  // send lock
  // Receive lock. False: input cannot matter now, so readable descriptors are not to be waited for.
  [[nodiscard]] virtual bool expects_input() const noexcept { return traits_.receives; }

  [[nodiscard]] virtual Result<void> subscribe(Bytes topic);
  [[nodiscard]] virtual Result<void> unsubscribe(Bytes topic);
  // Send lock. Whether the peer of that name takes a message now. unreachable; not_supported.
  [[nodiscard]] virtual Result<bool> peer_writable(Bytes routing_id);
  // False: the peer asks for more than its bound. Also for groups, as are the two above.
  [[nodiscard]] virtual bool handle_subscription(Pipe& pipe, bool subscribe, Bytes topic);

  // Send lock. Peers that asked for something, of a socket to which peers subscribe.
  [[nodiscard]] virtual std::size_t subscribers() const noexcept { return 0; }

  // The answer to More::yes of patterns that are single_part.
  [[nodiscard]] static Error refuse_more() noexcept;

 protected:
  // Option probe_router: an empty message, once per connection. Both locks.
  void probe(Pipe& pipe);
  // Option hello_message, once per connection, before the probe. Both locks.
  void greet(Pipe& pipe);

  const PatternTraits& traits_;
  const Options& options_;
  std::uint64_t dropped_ = 0;  // send lock: messages that no pipe took
};

struct PatternRow {
  PatternTraits traits;
  std::unique_ptr<Pattern> (*make)(const PatternTraits& traits, const Options& options);
};
// Null for a type without an implementation.
[[nodiscard]] const PatternRow* find_pattern(SocketType type) noexcept;

}  // namespace weft::msg
