// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/msg/message/monitor.h"
#include "weft/sync/lock.h"
#include "weft/topic/fleet/fleet_endpoints.h"
#include "weft/topic/loop/node_loop.h"
#include "weft/topic/mesh/shared_mesh.h"
#include "weft/topic/node/node_sockets.h"
#include "weft/topic/node/pump.h"
#include "weft/topic/node/scouts.h"

namespace weft::topic {

// LinkConnections: the connections of a handle's XSUB, which follow the links of its mesh. The monitor of the XSUB
// reports their beginnings and ends; reconcile() makes up for the reports that found no memory.
// Owner: a node. Affinity: any thread, except where a line names the loop. Cost: a lock for a link that begins or ends.
// Locks: the link lock comes before those of the pump and of the mesh.
// Invariants:
//   1. The links of the mesh and the connections of the XSUB change together.
//   2. The messages of a connection are read before its end.
class LinkConnections {
 public:
  // Source: the origin of an endpoint. other_handle: it may be outdated, see MeshState::begin_named_link().
  enum class Source : std::uint8_t { given, the_handle, other_handle };

  // `changed` is called after a change of the mesh, with or without the link lock.
  LinkConnections(NodeLoop& loop, SharedMesh& mesh, const FleetEndpoints& endpoints, NodeSockets& sockets, Pump& pump,
                  std::function<void()> changed);
  LinkConnections(const LinkConnections&) = delete;
  LinkConnections& operator=(const LinkConnections&) = delete;
  ~LinkConnections() = default;

  void watch();                               // once, after NodeSockets::open()
  void unwatch() noexcept;                    // no event is handled afterwards
  void end() noexcept { scouts_.end_all(); }  // loop, or after its end

  // Fails with resource_exhausted if there is no such link; throws std::bad_alloc. Returns ok without adding a link in
  // a fleet of Links::kLinksMax.
  [[nodiscard]] Result<void> connect(const std::string& endpoint, std::uint64_t instance, Source from);
  void drop(const std::string& endpoint) noexcept;

  // --- handles of this process ---
  // `inner`: the other one has a socket for inside topics. Fails as connect().
  [[nodiscard]] Result<void> link_inproc(std::uint64_t instance, const std::string& inproc_endpoint, bool inner);
  void unlink_inproc(std::uint64_t instance, const std::string& inproc_endpoint) noexcept;
  // The same without memory: the other end takes the connection down.
  void abandon_inproc(std::uint64_t instance, const std::string& inproc_endpoint) noexcept;

  // --- loop ---
  // All fail with resource_exhausted, and throw std::bad_alloc: call them again.
  [[nodiscard]] Result<void> compare();           // if an event was lost: the links with the connections
  [[nodiscard]] Result<void> reconcile_scouts();  // the links without a connection, and the scouts
  void scout_failed();                            // the given links whose connections ended

 private:
  [[nodiscard]] bool take_event(const MonitorEvent& event) noexcept;  // I/O thread. false: lost
  void handle_link_or_repair(const std::string& endpoint, EventKind kind) noexcept;
  void handle_link(const std::string& endpoint, EventKind kind);  // throws std::bad_alloc
  // As connect().
  [[nodiscard]] Result<void> begin(const std::string& endpoint, std::uint64_t instance, Source from)
      WEFT_REQUIRES(mutex_);
  // `replaced`: another connection to the same handle takes its place.
  void end_link(const std::string& endpoint, bool replaced) noexcept WEFT_REQUIRES(mutex_);
  void handle_scouted(const std::string& endpoint, std::uint64_t instance) noexcept;
  void scout_again(const std::string& endpoint);  // throws std::bad_alloc: nothing has changed
  void exchange_soon(std::uint64_t to) noexcept;
  void repair_soon() noexcept { loop_.request(NodeLoop::kRepair); }

  NodeLoop& loop_;
  SharedMesh& mesh_;
  const FleetEndpoints& endpoints_;
  NodeSockets& sockets_;
  Pump& pump_;
  const std::function<void()> changed_;
  sync::StdMutex mutex_;  // the link lock
  Scouts scouts_;
  std::atomic<bool> unsure_{false};             // an event of a connection was lost
  std::vector<std::string>* report_ = nullptr;  // loop, in compare(): the connected endpoints
};

}  // namespace weft::topic
