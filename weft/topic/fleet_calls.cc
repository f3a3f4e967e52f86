// SPDX-License-Identifier: MIT
#include "weft/topic/fleet_calls.h"

#include <algorithm>

#include "weft/rt/task/task_time.h"
#include "weft/sys/clock.h"

namespace weft::topic {

namespace {

rt::Task<Result<void>> change_of_mesh(NodePtr node) {
  const Result<void> changed = co_await node->mesh_event().wait();
  co_return changed;
}

}  // namespace

rt::Task<Result<void>> run_fleet_wait(NodePtr node, FleetWait wait) {
  while (true) {
    if (const bool is_done = node->with_mesh(std::cref(wait.done)); is_done) {
      co_return Result<void>();
    }
    if (node->closed()) {
      co_return Error(Errc::closed, "the handle of topics was closed");
    }
    if (const Error refused = node->control_refused(); refused != Errc::ok) {
      co_return refused;
    }
    const Instant now = sys::now();
    if (now >= wait.deadline) {
      co_return Error(Errc::timed_out, "the fleet did not come so far in time");
    }
    const Duration left = time_left(wait.deadline, now);
    const Result<void> waited = co_await rt::with_timeout(change_of_mesh(node), left);
    if (!waited && waited.error() != Errc::timed_out) {
      co_return waited;
    }
  }
}

// --- SubscriberCount ---

SubscriberCount::~SubscriberCount() {
  if (probe_) {
    node_.end_probe(*probe_);
  }
}
Result<std::optional<FleetWait>> SubscriberCount::next() {
  if (probe_) {
    return std::optional<FleetWait>();
  }
  probe_ = WEFT_TRY(node_.begin_probe(publisher_, deadline_));
  return std::optional<FleetWait>({deadline_, [this](const MeshState& mesh) {
                                     ready_ = static_cast<std::size_t>(mesh.readiness().sum(*probe_));
                                     return ready_ >= count_;
                                   }});
}

// --- RequestStart ---

Result<void> RequestStart::begin() {
  request_ = WEFT_TRY(node_.begin_request(topic_, body_, headers_));
  return {};
}
Result<std::optional<FleetWait>> RequestStart::next() {
  if (request_) {
    return std::optional<FleetWait>();
  }
  if (const Result<void> begun = begin(); begun || begun.error() != Errc::would_block) {
    return begun ? Result<std::optional<FleetWait>>(std::optional<FleetWait>()) : begun.error();
  }
  return std::optional<FleetWait>({deadline_, [wire = WEFT_TRY(node_.names().encode(topic_))](const MeshState& mesh) {
                                     return mesh.services_known() || mesh.served(wire);
                                   }});
}
Result<void> RequestStart::take(const Result<void>& waited) {
  if (!waited && waited.error() == Errc::cancelled) {
    return waited;
  }
  const Result<void> begun = begin();
  return !begun && begun.error() == Errc::would_block
             ? Result<void>(Error(Errc::unreachable, "nobody is known to serve this topic"))
             : begun;
}

// --- NodesChange ---

Result<std::optional<FleetWait>> NodesChange::next() {
  if (changed_) {
    return std::optional<FleetWait>();
  }
  expiry_ = node_.with_mesh([](const MeshState& mesh) { return mesh.peers().next_expiry(sys::now()); });
  return std::optional<FleetWait>({std::min(deadline_, expiry_),
                                   [this](const MeshState& mesh) { return present_nodes_differ(mesh, known_, now_); }});
}
Result<void> NodesChange::take(const Result<void>& waited) {
  changed_ = waited.has_value();
  return changed_ || (waited.error() == Errc::timed_out && expiry_ < deadline_) ? Result<void>() : waited;
}

// --- TopicClaim ---

Result<std::optional<FleetWait>> TopicClaim::next() {
  if (epoch_) {
    return std::optional<FleetWait>();
  }
  if (claim_) {
    return std::optional<FleetWait>(
        {deadline_, [claim = *claim_](const MeshState& mesh) { return mesh.ownership().decided(claim); }});
  }
  const std::uint64_t ask = WEFT_TRY(node_.ask_rosters());
  return std::optional<FleetWait>({deadline_, [ask](const MeshState& mesh) { return mesh.owners_known(ask); }});
}
Result<void> TopicClaim::take(const Result<void>& waited) {
  if (!claim_) {
    WEFT_TRY(waited);
    claim_ = WEFT_TRY(node_.begin_claim(topic_));
    return {};
  }
  const Result<std::uint64_t> epoch = node_.end_claim(*std::exchange(claim_, std::nullopt), waited.has_value());
  if (epoch) {
    epoch_ = *epoch;
  }
  return epoch || epoch.error() == Errc::would_block ? Result<void>() : Result<void>(epoch.error());
}

}  // namespace weft::topic
