// SPDX-License-Identifier: MIT
#include "weft/topic/mesh/links.h"

#include <algorithm>
#include <utility>

namespace weft::topic {

const Links::Link* Links::find(const std::string& endpoint) const noexcept {
  const auto found = links_.find(endpoint);
  return found == links_.end() ? nullptr : &found->second;
}

Links::Begun Links::begin(const std::string& endpoint, std::uint64_t instance, bool given, Instant now) {
  const bool has_other = std::any_of(links_.begin(), links_.end(), [&](const auto& each) {
    return instance != 0 && each.second.instance == instance && each.second.connected && each.first != endpoint;
  });
  if (const auto found = links_.find(endpoint); found != links_.end()) {
    Link& link = found->second;
    link.given |= given;
    if (instance == 0 || !link.connected || link.instance == instance || link.other_name) {
      return {};
    }
    Begun replaced{Step::nothing, link.instance, link.up};  // another handle listens there
    link.instance = instance;
    if (has_other) {  // and has a connection under another name
      replaced.step = Step::disconnect;
      replaced.stands = false;
      if (link.given) {
        link.connected = link.up = link.plain = false;
        link.other_name = true;
      } else {
        links_.erase(found);
      }
    }
    return replaced;
  }
  if (has_other || is_full()) {
    return {};
  }
  Link& link = links_[endpoint];
  link.instance = instance;
  link.given = given;
  link.connected = instance != 0;
  link.down_since = now;
  return {instance != 0 ? Step::connect : Step::scout, 0, false};
}

const std::string* Links::yielding(const std::string& to) const noexcept {
  if (!is_full() || links_.contains(to)) {
    return nullptr;
  }
  const auto found = std::find_if(links_.begin(), links_.end(), [](const auto& each) {
    return !each.second.given && !each.second.up && each.second.failed;
  });
  return found == links_.end() ? nullptr : &found->first;
}

std::optional<Links::Link> Links::remove(const std::string& endpoint) noexcept {
  const auto found = links_.find(endpoint);
  if (found == links_.end()) {
    return std::nullopt;
  }
  const Link link = found->second;
  links_.erase(found);
  return link;
}

bool Links::free_other_names(std::uint64_t instance) noexcept {
  bool freed = false;
  for (auto& [endpoint, link] : links_) {
    if (link.other_name && link.instance == instance) {
      link.other_name = false;
      link.instance = 0;
      link.failed = freed = true;
    }
  }
  return freed;
}

const Links::Link* Links::note_connection(const std::string& endpoint, bool up, Instant now) noexcept {
  const auto found = links_.find(endpoint);
  if (found == links_.end() || !found->second.connected) {
    return nullptr;
  }
  Link& link = found->second;
  if (!up && link.up) {
    link.down_since = now;
  }
  link.up = up;
  link.failed = !up;
  link.failures = up ? 0 : std::min(link.failures + 1, kLearnedFailures);
  return &link;
}

bool Links::note_scouted(const std::string& endpoint, std::uint64_t instance) noexcept {
  const auto found = links_.find(endpoint);
  if (found == links_.end() || found->second.connected) {
    return false;
  }
  bool known = instance == own_instance_;
  for (const auto& [other, link] : links_) {
    known |= instance != 0 && link.instance == instance && link.connected;
  }
  Link& link = found->second;
  link.instance = instance;
  link.failed = false;
  link.plain = instance == 0;
  link.other_name = known;
  link.connected = !known;
  return link.connected;
}

void Links::note_unconnected(const std::string& endpoint) noexcept {
  if (const auto found = links_.find(endpoint); found != links_.end()) {
    Link& link = found->second;
    link.connected = link.plain = false;
    link.instance = 0;
    link.failed = true;
  }
}

std::vector<std::string> Links::scout_again(const std::string& endpoint) {
  std::vector<std::string> again;
  const auto found = links_.find(endpoint);
  if (found == links_.end()) {
    return again;
  }
  const std::uint64_t instance = found->second.instance;
  for (const auto& [at, link] : links_) {
    if (at == endpoint || (instance != 0 && link.instance == instance && link.other_name)) {
      again.push_back(at);
    }
  }
  for (const std::string& at : again) {
    Link& link = links_.find(at)->second;
    link.connected = link.up = link.other_name = link.plain = false;
    link.instance = 0;
    link.failed = true;
  }
  return again;
}

bool Links::unlist(const std::string& endpoint) noexcept {
  const auto found = links_.find(endpoint);
  return found != links_.end() && std::exchange(found->second.given, false);
}

Links::InprocLink Links::inproc_link(std::uint64_t instance, const std::string& endpoint) const noexcept {
  InprocLink known;
  for (const auto& [at, link] : links_) {
    if (link.instance != instance || !link.connected) {
      continue;
    }
    if (at == endpoint) {
      known.stands = true;
      known.inner = link.inner;
    } else {
      known.other = &at;
    }
  }
  return known;
}

void Links::note_inproc_up(const std::string& endpoint) noexcept {
  if (const auto found = links_.find(endpoint); found != links_.end()) {
    found->second.up = true;
  }
}

void Links::note_inner(const std::string& endpoint) noexcept {
  if (const auto found = links_.find(endpoint); found != links_.end()) {
    found->second.inner = true;
  }
}

bool Links::settled(std::uint64_t ask, const Peers& peers) const noexcept {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& each) {
    const Link& link = each.second;
    const Peers::Peer* const peer = peers.find(link.instance);
    const bool left = !link.given && link.failures >= kLearnedFailures;
    return link.other_name || left || (link.up && (link.plain || (peer != nullptr && peer->our_ask >= ask)));
  });
}

bool Links::owners_known(std::uint64_t ask, const Peers& peers) const noexcept {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& each) {
    const Link& link = each.second;
    const Peers::Peer* const peer = peers.find(link.instance);
    return link.other_name || link.plain || link.failed || (link.up && peer != nullptr && peer->our_ask >= ask);
  });
}

bool Links::services_known(const Peers& peers) const noexcept {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& each) {
    const Link& link = each.second;
    const Peers::Peer* const peer = peers.find(link.instance);
    return link.other_name || link.failed || link.plain || (peer != nullptr && peer->answered);
  });
}

bool Links::is_linked(std::uint64_t instance) const noexcept {
  return std::any_of(links_.begin(), links_.end(),
                     [&](const auto& each) { return each.second.instance == instance && each.second.up; });
}

std::vector<std::uint64_t> Links::linked() const {
  std::vector<std::uint64_t> linked;
  for (const auto& [endpoint, link] : links_) {
    if (link.up && link.instance != 0) {
      linked.push_back(link.instance);
    }
  }
  return linked;
}

std::vector<std::uint64_t> Links::unanswered(std::uint64_t ask, const Peers& peers) const {
  std::vector<std::uint64_t> silent;
  for (const auto& [endpoint, link] : links_) {
    const Peers::Peer* const peer = peers.find(link.instance);
    if (link.up && link.instance != 0 && (peer == nullptr || peer->our_ask < ask)) {
      silent.push_back(link.instance);
    }
  }
  return silent;
}

std::vector<std::pair<std::string, bool>> Links::differing(const std::vector<std::string>& connected) const {
  std::vector<std::pair<std::string, bool>> changes;
  for (const auto& [endpoint, link] : links_) {
    const bool up = std::find(connected.begin(), connected.end(), endpoint) != connected.end();
    if (link.connected && !endpoint.starts_with("inproc:") && up != link.up) {
      changes.emplace_back(endpoint, up);
    }
  }
  return changes;
}

std::vector<std::string> Links::unconnected() const {
  std::vector<std::string> unconnected;
  for (const auto& [endpoint, link] : links_) {
    if (!link.connected && !link.other_name) {
      unconnected.push_back(endpoint);
    }
  }
  return unconnected;
}

std::vector<std::string> Links::failed_given() const {
  std::vector<std::string> failed;
  for (const auto& [endpoint, link] : links_) {
    if (link.connected && link.failed && link.given) {
      failed.push_back(endpoint);
    }
  }
  return failed;
}

}  // namespace weft::topic
