// SPDX-License-Identifier: MIT
// Node: leases. A handle with a presence sends its roster three times in each lease; the other handles time the lease.
#include <algorithm>

#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

void Node::begin_presence() {
  if (options_.presence == Duration::zero()) {
    return;
  }
  loop_.post([this] { renew(this); });
}

void Node::renew(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.lease_timer_.start();
  node.send_roster(0);
}

std::vector<NodeInfo> present_nodes(const MeshState& mesh) {
  std::vector<NodeInfo> all;
  mesh.peers().each_present(sys::now(), [&](std::uint64_t instance, const Peers::Peer& peer) {
    all.push_back({instance, peer.roster.node, peer.roster.endpoint, peer.lease});
  });
  return all;
}

std::vector<NodeInfo> known_nodes(const MeshState& mesh) {
  std::vector<NodeInfo> all;
  for (const auto& [instance, peer] : mesh.peers().all()) {
    all.push_back({instance, peer.roster.node, peer.roster.endpoint, peer.lease});
  }
  return all;
}

bool present_nodes_differ(const MeshState& mesh, const std::vector<NodeInfo>& known, std::vector<NodeInfo>& now) {
  now = present_nodes(mesh);  // in order of their instances
  std::vector<std::uint64_t> instances(known.size());
  std::transform(known.begin(), known.end(), instances.begin(), [](const NodeInfo& each) { return each.instance; });
  std::sort(instances.begin(), instances.end());
  return !std::equal(instances.begin(), instances.end(), now.begin(), now.end(),
                     [](std::uint64_t instance, const NodeInfo& each) { return instance == each.instance; });
}

}  // namespace weft::topic
