// SPDX-License-Identifier: MIT
// Node: how many subscriptions are ready for a topic.
#include <algorithm>
#include <iterator>
#include <utility>

#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// A probe stands until its deadline. Each handle answers with the number of its matching subscriptions, and again when
// the number changes.
Result<std::uint64_t> Node::begin_probe(const PublisherCore& publisher, Instant deadline) noexcept {
  std::uint64_t id = 0;
  const Result<void> begun = msg::or_no_memory([&]() -> Result<void> {
    Control control{.kind = Control::Kind::probe, .texts = {publisher.wire}};
    OwnProbe probe{publisher.wire, deadline, {}};
    probe.counts[instance_] = 0;
    {
      const sync::LockGuard lock(mesh_mutex_);
      control.id = next_id_++;
      own_probes_.emplace(control.id, std::move(probe));
      id = control.id;
    }
    {
      const sync::LockGuard answering(answer_mutex_);
      const std::uint64_t own = interest_.count(publisher.wire);
      const sync::LockGuard lock(mesh_mutex_);
      own_probes_.at(id).counts[instance_] = own;
    }
    control.number = static_cast<std::uint64_t>(std::max<Duration::rep>(0, (deadline - sys::now()).count()));
    return say(std::move(control));
  });
  if (!begun) {
    end_probe(id);
    return begun.error();
  }
  return id;
}

Result<void> Node::resend_probes(bool unanswered) {
  std::vector<Control> again;
  {
    const sync::LockGuard lock(mesh_mutex_);
    for (const auto& [id, probe] : own_probes_) {
      const auto left = std::max<Duration::rep>(0, (probe.deadline - sys::now()).count());
      const auto add = [&, id = id, &topic = probe.topic](std::uint64_t to) {
        again.push_back({.kind = Control::Kind::probe,
                         .to = to,
                         .id = id,
                         .number = static_cast<std::uint64_t>(left),
                         .texts = {topic}});
      };
      if (!unanswered) {
        add(0);
        continue;
      }
      for (const auto& [instance, peer] : peers_) {
        if (!probe.counts.contains(instance)) {
          add(instance);
        }
      }
    }
  }
  for (Control& control : again) {
    WEFT_TRY(say(std::move(control)));
  }
  return {};
}

// The peers have a bound of probes: they hear of the end. One that memory lacks for stands until its deadline.
void Node::end_probe(std::uint64_t probe) noexcept {
  std::string topic;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = own_probes_.find(probe);
    if (found == own_probes_.end()) {
      return;
    }
    topic = std::move(found->second.topic);
    own_probes_.erase(found);
  }
  (void)msg::or_no_memory([&] {
    Control end{.kind = Control::Kind::probe, .id = probe};
    end.texts.push_back(std::move(topic));
    return say(std::move(end));
  });
}

std::uint64_t Node::probe_count(std::uint64_t probe) const {
  const auto found = own_probes_.find(probe);
  std::uint64_t sum = 0;
  if (found != own_probes_.end()) {
    for (const auto& [instance, count] : found->second.counts) {
      sum += count;
    }
  }
  return sum;
}

Result<void> Node::handle_probe(const Control& control) {
  if (control.texts.size() != 1 || control.texts.front().empty() || control.texts.front().size() > Roster::kNameMax) {
    ++counters_.control_malformed;
    return {};
  }
  {
    const sync::LockGuard lock(mesh_mutex_);
    const Instant now = sys::now();
    std::erase_if(peer_probes_, [&](const PeerProbe& probe) {
      return probe.deadline <= now || (probe.from == control.from && probe.id == control.id);
    });
    if (control.number == 0) {
      return {};  // it ended
    }
    if (peer_probes_.size() >= kPeerProbesMax) {
      ++counters_.control_refused;
      return {};
    }
    constexpr Duration kLongest = std::chrono::hours(1);
    const Duration stands(static_cast<Duration::rep>(
        std::min<std::uint64_t>(control.number, static_cast<std::uint64_t>(kLongest.count()))));
    peer_probes_.push_back({control.texts.front(), control.from, control.id, now + stands});
  }
  probed_.store(true);  // sequentially consistent, as the load in interest_changed()
  return answer_probes(control.from, control.id);
}

// On any thread that subscribes, and on the loop. The subscriptions that are counted here went out before.
// `from`: only that handle's probe; 0: all.
Result<void> Node::answer_probes(std::uint64_t from, std::uint64_t id) {
  const sync::LockGuard answering(answer_mutex_);
  std::vector<PeerProbe> all;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const Instant now = sys::now();
    std::erase_if(peer_probes_, [&](const PeerProbe& probe) { return probe.deadline <= now; });
    probed_.store(!peer_probes_.empty());
    std::copy_if(peer_probes_.begin(), peer_probes_.end(), std::back_inserter(all),
                 [&](const PeerProbe& probe) { return from == 0 || (probe.from == from && probe.id == id); });
  }
  for (const PeerProbe& probe : all) {
    const std::uint64_t count = interest_.count(probe.topic);
    if (count == probe.told) {
      continue;
    }
    WEFT_TRY(say({.kind = Control::Kind::ready, .to = probe.from, .id = probe.id, .number = count}));
    const sync::LockGuard lock(mesh_mutex_);
    for (PeerProbe& each : peer_probes_) {
      if (each.from == probe.from && each.id == probe.id) {
        each.told = count;
      }
    }
  }
  return {};
}

void Node::handle_ready(const Control& control) {
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = own_probes_.find(control.id);
    if (found == own_probes_.end() ||
        (found->second.counts.size() > kPeersMax && !found->second.counts.contains(control.from))) {
      return;
    }
    found->second.counts[control.from] = std::min<std::uint64_t>(control.number, Interest::kFiltersMax);
  }
  mesh_changed();
}

void Node::count_own(const std::vector<std::pair<std::uint64_t, std::string>>& probes) {
  const sync::LockGuard answering(answer_mutex_);
  for (const auto& [id, topic] : probes) {
    const std::uint64_t count = interest_.count(topic);
    const sync::LockGuard lock(mesh_mutex_);
    if (const auto found = own_probes_.find(id); found != own_probes_.end()) {
      found->second.counts[instance_] = count;
    }
  }
}

void Node::interest_changed() noexcept {
  const Result<void> told = msg::or_no_memory([&]() -> Result<void> {
    std::vector<std::pair<std::uint64_t, std::string>> own;
    {
      const sync::LockGuard lock(mesh_mutex_);
      for (const auto& [id, probe] : own_probes_) {
        own.emplace_back(id, probe.topic);
      }
    }
    if (!own.empty()) {
      count_own(own);
      mesh_changed();
    }
    return probed_.load() ? answer_probes() : Result<void>();
  });
  if (!told) {
    mend_soon();  // counts again
  }
}

}  // namespace weft::topic
