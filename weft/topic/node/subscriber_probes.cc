// SPDX-License-Identifier: MIT
#include "weft/topic/node/subscriber_probes.h"

#include <utility>
#include <vector>

#include "weft/base/no_memory.h"
#include "weft/sys/clock.h"

namespace weft::topic {

static_assert(ReadinessProbes::kCountMax == InterestTable::kFiltersMax);

Result<std::uint64_t> SubscriberProbes::begin(const std::string& topic, Instant deadline) noexcept {
  std::uint64_t id = 0;
  const Result<void> begun = or_no_memory([&]() -> Result<void> {
    const Control probe = mesh_.with(
        [&](MeshState& mesh) { return mesh.readiness().begin(mesh.next_id(), topic, deadline, sys::now()); });
    id = probe.id;
    {
      const sync::LockGuard answering(answer_mutex_);
      const std::uint64_t own = interest_.count(topic);
      mesh_.with([&](MeshState& mesh) { mesh.readiness().count_own(id, own); });
    }
    return send_(probe);
  });
  if (!begun) {
    end(id);
    return begun.error();
  }
  return id;
}

// The peers have a bound of probes: they learn of the end. One that memory lacks for stands until its deadline.
void SubscriberProbes::end(std::uint64_t probe) noexcept {
  std::string topic = mesh_.with([&](MeshState& mesh) { return mesh.readiness().end(probe); });
  if (topic.empty()) {
    return;
  }
  (void)or_no_memory([&] {
    return send_(
        mesh_.with([&](const MeshState& mesh) { return mesh.readiness().end_message(probe, std::move(topic)); }));
  });
}

Result<void> SubscriberProbes::answer_new(std::uint64_t from, std::uint64_t id) {
  probed_.store(true);  // sequentially consistent, as the load in count_again()
  const Result<std::size_t> answered = answer(from, id, ReadinessProbes::kPeerProbesMax);
  return answered ? Result<void>() : answered.error();
}

Result<void> SubscriberProbes::answer_all() {
  const Result<std::size_t> answered = answer(0, 0, ReadinessProbes::kPeerProbesMax);
  return answered ? Result<void>() : answered.error();
}

// On any thread that subscribes, and on the loop. The subscriptions that are counted here went out before.
Result<std::size_t> SubscriberProbes::answer(std::uint64_t from, std::uint64_t id, std::size_t room) {
  const sync::LockGuard answering(answer_mutex_);
  const std::vector<ReadinessProbes::PeerProbe> due = mesh_.with([&](MeshState& mesh) {
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
    WEFT_TRY(send_(mesh_.with([&](const MeshState& mesh) { return mesh.readiness().count_message(probe, count); })));
    mesh_.with([&](MeshState& mesh) { mesh.readiness().sent(probe, count); });
  }
  return room;
}

Result<bool> SubscriberProbes::count_again() noexcept {
  return or_no_memory([&]() -> Result<bool> {
    const auto own = mesh_.with([](const MeshState& mesh) { return mesh.readiness().own_probes(); });
    if (!own.empty()) {
      const sync::LockGuard answering(answer_mutex_);
      for (const auto& [id, topic] : own) {
        const std::uint64_t count = interest_.count(topic);
        mesh_.with([&](MeshState& mesh) { mesh.readiness().count_own(id, count); });
      }
    }
    if (probed_.load()) {
      WEFT_TRY(answer_all());
    }
    return !own.empty();
  });
}

// --- again ---

void SubscriberProbes::repeat_soon() noexcept {
  repeat_timer_.shorten();
  schedule();
}

void SubscriberProbes::schedule() noexcept {
  repeat_timer_.stop();
  repeat_timer_.start();
}

void SubscriberProbes::repeat(void* self) {
  SubscriberProbes& probes = *static_cast<SubscriberProbes*>(self);
  const Result<void> sent = or_no_memory([&]() -> Result<void> {
    const auto all = probes.mesh_.with([](MeshState& mesh) { return mesh.readiness().all(sys::now()); });
    for (const Control& probe : all) {
      WEFT_TRY(probes.send_(probe));
    }
    if (!all.empty()) {
      probes.repeat_timer_.lengthen();
      probes.schedule();
    }
    return {};
  });
  if (!sent) {
    probes.schedule();
  }
}

}  // namespace weft::topic
