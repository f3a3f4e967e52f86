// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/readiness.h"

#include <algorithm>
#include <iterator>

namespace weft::topic {

Control ReadinessProbes::message(std::uint64_t id, const OwnProbe& probe, std::uint64_t to, Instant now) const {
  const auto left = std::max<Duration::rep>(0, (probe.deadline - now).count());
  return {.kind = Control::Kind::probe,
          .from = own_instance_,
          .to = to,
          .id = id,
          .number = static_cast<std::uint64_t>(left),
          .texts = {probe.topic}};
}

Control ReadinessProbes::begin(std::uint64_t id, std::string topic, Instant deadline, Instant now) {
  OwnProbe probe{std::move(topic), deadline, {}};
  probe.counts[own_instance_] = 0;
  Control control = message(id, probe, 0, now);
  own_.emplace(id, std::move(probe));
  return control;
}

std::string ReadinessProbes::end(std::uint64_t id) noexcept {
  std::string topic;
  if (const auto found = own_.find(id); found != own_.end()) {
    topic = std::move(found->second.topic);
    own_.erase(found);
  }
  return topic;
}

Control ReadinessProbes::end_message(std::uint64_t id, std::string topic) const {
  Control end{.kind = Control::Kind::probe, .from = own_instance_, .id = id};
  end.texts.push_back(std::move(topic));
  return end;
}

void ReadinessProbes::count_own(std::uint64_t id, std::uint64_t count) noexcept {
  if (const auto found = own_.find(id); found != own_.end()) {
    found->second.counts.find(own_instance_)->second = count;
  }
}

std::uint64_t ReadinessProbes::sum(std::uint64_t id) const noexcept {
  std::uint64_t sum = 0;
  if (const auto found = own_.find(id); found != own_.end()) {
    for (const auto& [instance, count] : found->second.counts) {
      sum += count;
    }
  }
  return sum;
}

std::vector<std::pair<std::uint64_t, std::string>> ReadinessProbes::own_probes() const {
  std::vector<std::pair<std::uint64_t, std::string>> probes;
  probes.reserve(own_.size());
  for (const auto& [id, probe] : own_) {
    probes.emplace_back(id, probe.topic);
  }
  return probes;
}

std::vector<Control> ReadinessProbes::all(Instant now) const {
  std::vector<Control> again;
  again.reserve(own_.size());
  for (const auto& [id, probe] : own_) {
    again.push_back(message(id, probe, 0, now));
  }
  return again;
}

std::vector<Control> ReadinessProbes::unanswered(const std::vector<std::uint64_t>& instances, Instant now) const {
  std::vector<Control> again;
  for (const auto& [id, probe] : own_) {
    for (const std::uint64_t instance : instances) {
      if (!probe.counts.contains(instance)) {
        again.push_back(message(id, probe, instance, now));
      }
    }
  }
  return again;
}

Outcome ReadinessProbes::handle_count(const Control& answer) {
  const auto found = own_.find(answer.id);
  if (found == own_.end()) {
    return Outcome::ignored;
  }
  auto& counts = found->second.counts;
  if (answer.from == own_instance_ || (counts.size() > Peers::kPeersMax && !counts.contains(answer.from))) {
    return Outcome::ignored;
  }
  counts[answer.from] = std::min<std::uint64_t>(answer.number, kCountMax);
  return Outcome::taken;
}

Outcome ReadinessProbes::handle_probe(const Control& probe, Instant now) {
  if (probe.texts.size() != 1 || probe.texts.front().empty() || probe.texts.front().size() > Roster::kNameMax) {
    return Outcome::malformed;
  }
  std::erase_if(peer_probes_, [&](const PeerProbe& each) {
    return each.deadline <= now || (each.from == probe.from && each.id == probe.id);
  });
  if (probe.number == 0) {
    return Outcome::ignored;
  }
  if (peer_probes_.size() >= kPeerProbesMax) {
    return Outcome::refused;
  }
  const Duration stands(
      static_cast<Duration::rep>(std::min<std::uint64_t>(probe.number, static_cast<std::uint64_t>(kLongest.count()))));
  peer_probes_.push_back({probe.texts.front(), probe.from, probe.id, now + stands});
  return Outcome::taken;
}

std::vector<ReadinessProbes::PeerProbe> ReadinessProbes::due(Instant now, std::uint64_t from, std::uint64_t id) {
  std::erase_if(peer_probes_, [&](const PeerProbe& probe) { return probe.deadline <= now; });
  std::vector<PeerProbe> due;
  std::copy_if(peer_probes_.begin(), peer_probes_.end(), std::back_inserter(due),
               [&](const PeerProbe& probe) { return from == 0 || (probe.from == from && probe.id == id); });
  return due;
}

Control ReadinessProbes::count_message(const PeerProbe& probe, std::uint64_t count) const {
  return {.kind = Control::Kind::ready, .from = own_instance_, .to = probe.from, .id = probe.id, .number = count};
}

void ReadinessProbes::sent(const PeerProbe& probe, std::uint64_t count) noexcept {
  for (PeerProbe& each : peer_probes_) {
    if (each.from == probe.from && each.id == probe.id) {
      each.sent = count;
    }
  }
}

void ReadinessProbes::send_again() noexcept {
  for (PeerProbe& probe : peer_probes_) {
    probe.sent = kUnsent;
  }
}

void ReadinessProbes::forget(std::uint64_t instance) noexcept {
  if (instance == own_instance_) {
    return;
  }
  for (auto& [id, probe] : own_) {
    probe.counts.erase(instance);
  }
}

}  // namespace weft::topic
