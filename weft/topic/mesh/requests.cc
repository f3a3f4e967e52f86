// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/requests.h"

#include <algorithm>
#include <utility>

namespace weft::topic {

Result<std::vector<Requests::Member>> Requests::choose(std::string_view topic, const Peers& peers) {
  std::map<std::string, std::vector<std::uint64_t>> groups;
  for (const Service& service : services_) {
    if (service.topic == topic) {
      groups[service.group].push_back(own_instance_);
    }
  }
  for (const auto& [instance, peer] : peers.all()) {
    for (const Roster::Service& service : peer.roster.services) {
      if (peer.answered && service.topic == topic) {
        groups[service.group].push_back(instance);
      }
    }
  }
  std::vector<Member> members;
  if (groups.empty()) {
    return members;
  }
  if (pending_.size() >= kRequestsMax) {
    return Error(Errc::resource_exhausted, "65,536 requests are under way");
  }
  for (const auto& [group, able] : groups) {
    members.push_back({group, able[next_member_ % able.size()]});
  }
  ++next_member_;
  return members;
}

void Requests::begin(std::uint64_t id, const std::vector<Member>& members) {
  Pending pending;
  for (const Member& member : members) {
    pending.members.push_back(member.instance);
  }
  pending_.emplace(id, std::move(pending));
}

void Requests::end(std::uint64_t id) noexcept { pending_.erase(id); }

bool Requests::served(std::string_view topic, const Peers& peers) const noexcept {
  const auto serves = [&](const auto& service) { return service.topic == topic; };
  return std::any_of(services_.begin(), services_.end(), serves) ||
         std::any_of(peers.all().begin(), peers.all().end(), [&](const auto& each) {
           const auto& services = each.second.roster.services;
           return each.second.answered && std::any_of(services.begin(), services.end(), serves);
         });
}

void Requests::forget(std::uint64_t instance) noexcept {
  for (auto& [id, pending] : pending_) {
    if (std::erase(pending.members, instance) != 0 && pending.members.empty()) {
      pending.ended = true;
      ++ended_;
    }
  }
}

Result<void> Requests::serve(std::uint64_t id, std::string topic, std::string group) {
  if (services_.size() >= Roster::kServicesMax) {
    return Error(Errc::resource_exhausted, "a handle has at most 1,024 services");
  }
  services_.push_back({std::move(topic), std::move(group), id});
  return {};
}

bool Requests::stop_serving(std::uint64_t id) noexcept {
  return std::erase_if(services_, [&](const Service& each) { return each.id == id; }) != 0;
}

std::uint64_t Requests::next_service(std::string_view topic, std::string_view group) {
  std::vector<std::uint64_t> able;
  for (const Service& each : services_) {
    if (each.topic == topic && each.group == group) {
      able.push_back(each.id);
    }
  }
  return able.empty() ? 0 : able[next_service_++ % able.size()];
}

void Requests::append_services(std::vector<Roster::Service>& to) const {
  for (const Service& service : services_) {
    to.push_back({service.topic, service.group});
  }
}

}  // namespace weft::topic
