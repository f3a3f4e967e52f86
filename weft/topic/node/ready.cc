// SPDX-License-Identifier: MIT
// Node: the subscriptions of this handle that probes count. mesh/readiness.h has the rules.
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

static_assert(ReadinessProbes::kCountMax == InterestTable::kFiltersMax);

Result<std::uint64_t> Node::begin_probe(const PublisherCore& publisher, Instant deadline) noexcept {
  std::uint64_t id = 0;
  const Result<void> begun = or_no_memory([&]() -> Result<void> {
    Control probe = with_mesh(
        [&](MeshState& mesh) { return mesh.readiness().begin(mesh.next_id(), publisher.wire, deadline, sys::now()); });
    id = probe.id;
    {
      const sync::LockGuard answering(answer_mutex_);
      const std::uint64_t own = interest_.count(publisher.wire);
      with_mesh([&](MeshState& mesh) { mesh.readiness().count_own(id, own); });
    }
    return send_control(probe);
  });
  if (!begun) {
    end_probe(id);
    return begun.error();
  }
  repeat_probes_soon();
  return id;
}

// The peers have a bound of probes: they learn of the end. One that memory lacks for stands until its deadline.
void Node::end_probe(std::uint64_t probe) noexcept {
  std::string topic = with_mesh([&](MeshState& mesh) { return mesh.readiness().end(probe); });
  if (topic.empty()) {
    return;
  }
  (void)or_no_memory([&] {
    return send_control(
        with_mesh([&](const MeshState& mesh) { return mesh.readiness().end_message(probe, std::move(topic)); }));
  });
}

Result<void> Node::answer_probes(std::uint64_t from, std::uint64_t id) {
  const Result<std::size_t> answered = answer_probes(from, id, ReadinessProbes::kPeerProbesMax);
  return answered ? Result<void>() : answered.error();
}

// On any thread that subscribes, and on the loop. The subscriptions that are counted here went out before.
Result<std::size_t> Node::answer_probes(std::uint64_t from, std::uint64_t id, std::size_t room) {
  const sync::LockGuard answering(answer_mutex_);
  const std::vector<ReadinessProbes::PeerProbe> due = with_mesh([&](MeshState& mesh) {
    auto probes = mesh.readiness().due(sys::now(), from, id);
    probed_.store(mesh.readiness().peer_probe_count() != 0);
    return probes;
  });
  for (const ReadinessProbes::PeerProbe& probe : due) {
    const std::uint64_t count = interest_.count(probe.topic);
    if (count == probe.sent) {
      continue;
    }
    if (room == 0) {
      break;
    }
    --room;
    WEFT_TRY(
        send_control(with_mesh([&](const MeshState& mesh) { return mesh.readiness().count_message(probe, count); })));
    with_mesh([&](MeshState& mesh) { mesh.readiness().sent(probe, count); });
  }
  return room;
}

void Node::interest_changed() noexcept {
  const Result<void> counted = or_no_memory([&]() -> Result<void> {
    const auto own = with_mesh([](const MeshState& mesh) { return mesh.readiness().own_probes(); });
    if (!own.empty()) {
      const sync::LockGuard answering(answer_mutex_);
      for (const auto& [id, topic] : own) {
        const std::uint64_t count = interest_.count(topic);
        with_mesh([&](MeshState& mesh) { mesh.readiness().count_own(id, count); });
      }
    }
    if (!own.empty()) {
      mesh_changed();
    }
    return probed_.load() ? answer_probes() : Result<void>();
  });
  if (!counted) {
    repair_soon();  // counts again
  }
}

}  // namespace weft::topic
