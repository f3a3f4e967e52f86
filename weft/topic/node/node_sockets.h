// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/context.h"
#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/topic/fleet/fleet_endpoints.h"
#include "weft/topic/node/counters.h"
#include "weft/topic/node/options.h"
#include "weft/topic/wire/name.h"

namespace weft::topic {

// NodeSockets: the sockets of a handle: an XPUB that the fleet connects to, an XSUB that connects to the fleet, and an
// XPUB for the topics that stay in the process; with the keys of the fleet, and the proof of having them.
// Owner: a node. Affinity: any thread, after open(). Cost: none beside the sockets' own.
// Invariants:
//   1. A socket that another process reaches has the fleet's keys before it is bound or connected.
//   2. A topic that stays inside goes to the inner XPUB only, which is bound to no other transport than inproc.
class NodeSockets {
 public:
  NodeSockets(const TopicsOptions& options, const FleetEndpoints& endpoints) noexcept
      : options_(options), endpoints_(endpoints) {}
  NodeSockets(const NodeSockets&) = delete;
  NodeSockets& operator=(const NodeSockets&) = delete;
  ~NodeSockets() = default;

  // Once. Errors: invalid_argument (a filter of `inside`, a key); resource_exhausted.
  [[nodiscard]] Result<void> open(Context& context, const Names& names, std::uint64_t instance);
  void close() noexcept;
  [[nodiscard]] const std::shared_ptr<msg::ContextCore>& context() const noexcept { return context_; }  // null: closed
  // Errors of the binds: those of Socket::bind().
  [[nodiscard]] Result<void> bind_inproc();
  [[nodiscard]] Result<std::string> bind_local(const std::string& endpoint) { return out_.bind(endpoint); }
  [[nodiscard]] Result<std::string> bind_tcp();  // returns the endpoint for peers

  [[nodiscard]] Socket& in() noexcept { return in_; }
  [[nodiscard]] Socket& out() noexcept { return out_; }
  [[nodiscard]] msg::SocketCore& out_core(bool inside) noexcept { return inside ? *inner_.core() : *out_.core(); }
  [[nodiscard]] bool has_inner() const noexcept { return !inside_.empty(); }
  [[nodiscard]] bool stays_inside(std::string_view wire) const noexcept;
  void flush() noexcept;  // sends the published messages

  // An XSUB that asks one handle for its instance, not connected. Errors: those of Context::socket().
  [[nodiscard]] Result<Socket> make_scout();
  // The connection of the message may carry control messages.
  [[nodiscard]] bool is_proven(const Message& message) const noexcept;
  [[nodiscard]] std::uint64_t control_missed();  // messages to peers that did not go out
  void add_counts(TopicsStatistics& into);

 private:
  [[nodiscard]] Result<void> set_common(Socket& socket) const;
  [[nodiscard]] Result<void> set_security(Socket& socket) const;
  [[nodiscard]] Result<void> open_in(Context& context);
  [[nodiscard]] Result<void> set_proof();

  const TopicsOptions& options_;
  const FleetEndpoints& endpoints_;
  std::shared_ptr<msg::ContextCore> context_;
  std::vector<Filter> inside_;  // const after open()
  Socket out_;
  Socket in_;
  Socket inner_;       // closed without inside topics
  std::string proof_;  // CURVE: const after open()
};

}  // namespace weft::topic
