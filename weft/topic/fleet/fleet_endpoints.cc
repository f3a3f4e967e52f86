// SPDX-License-Identifier: MIT
#include "weft/topic/fleet/fleet_endpoints.h"

#include <utility>

#include "weft/net/stream/endpoint.h"
#include "weft/topic/wire/control.h"

namespace weft::topic {

FleetEndpoints::FleetEndpoints(Fleet fleet, std::uint64_t own)
    : fleet_(std::move(fleet)), own_(own), inproc_("inproc://weft.topics." + instance_text(own)) {}

Result<std::string> FleetEndpoints::open(const std::string& runtime_directory) {
  directory_.emplace(WEFT_TRY(LocalDirectory::open(runtime_directory, fleet_.name)));
  return directory_->endpoint(own_);
}

Result<std::vector<FleetEndpoints::Listener>> FleetEndpoints::find_others() const {
  std::vector<Listener> others;
  if (!directory_) {
    return others;
  }
  for (const std::uint64_t instance : WEFT_TRY(directory_->listening())) {
    if (instance != own_) {
      others.push_back({instance, directory_->endpoint(instance)});
    }
  }
  return others;
}

bool FleetEndpoints::is_possible(std::uint64_t instance, const std::string& endpoint) const {
  if (fleet_.kind == Fleet::Kind::local) {
    return directory_ && instance != 0 && directory_->instance_at(endpoint) == instance;
  }
  const auto parsed = net::parse_endpoint(endpoint, false);
  const net::Transport transport = fleet_.tls ? net::Transport::tls_tcp : net::Transport::tcp;
  return fleet_.kind == Fleet::Kind::tcp && parsed && parsed->transport == transport;
}

bool FleetEndpoints::has_ended(std::uint64_t instance) const {
  return directory_ && instance != 0 && !directory_->is_listening(instance);
}

}  // namespace weft::topic
