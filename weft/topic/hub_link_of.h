// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/msg/socket.h"
#include "weft/topic/kept/counters.h"
#include "weft/topic/node/options.h"

namespace weft::msg {
class ContextCore;
}

namespace weft::topic {

class HubLink;
class Node;
struct GateOptions;
struct Hosting;
struct LinkSettings;

// Returns the link to the hub of a handle: that of TopicsOptions::hub, of its local fleet, or the handle's own server
// of the streams of NATS. The first call makes it. Errors: not_supported (a fleet of another kind, and no hub is
// named); closed, also without a node; errors of the runtime directory; those of JetStreamServer::start().
[[nodiscard]] Result<std::shared_ptr<HubLink>> hub_link_of(const std::shared_ptr<Node>& node);
// Makes the server of the streams of a fleet on NATS, for one link: `settings`, whose id names the endpoint, gets its
// part. Errors: those of JetStreamServer::start().
[[nodiscard]] Result<Hosting> host_jetstream(msg::ContextCore& context, const GateOptions& options,
                                             LinkSettings& settings);
// The certificates, or the keys of CURVE, of a socket that connects to the hub of another host. Without them it does
// nothing.
[[nodiscard]] Result<void> set_hub_keys(Socket& socket, const FleetSecurity& keys);
[[nodiscard]] KeptStatistics kept_statistics_of(Node* node);  // all 0 before the first use, and without a node
// The counters of a handle, for a reader of any thread. Without a node, and after close(), it adds none.
[[nodiscard]] CounterSource counter_source_of(const std::shared_ptr<Node>& node);

}  // namespace weft::topic
