// SPDX-License-Identifier: MIT
#include "weft/topic/fleet/process_fleets.h"

#include <algorithm>
#include <span>

namespace weft::topic {

ProcessFleets& ProcessFleets::instance() {
  static ProcessFleets* const fleets = new ProcessFleets();  // never destroyed: handles may outlive main()
  return *fleets;
}

Result<void> ProcessFleets::join(Member& member, const msg::ContextCore* context, const std::string& fleet) {
  const sync::LockGuard lock(mutex_);
  std::vector<Member*>& members = members_[{context, fleet}];
  members.push_back(&member);
  // Both have the connection before one of them sends a message. Otherwise its roster, which has another way to it,
  // would make the other one take that way, too.
  const std::span<Member* const> others(members.data(), members.size() - 1);
  for (Member* const other : others) {
    WEFT_TRY(member.link_inproc(other->instance(), other->inproc_endpoint(), other->has_inner()));
  }
  for (Member* const other : others) {
    WEFT_TRY(other->handle_peer_opened(member.instance(), member.inproc_endpoint(), member.has_inner()));
  }
  if (!others.empty()) {
    member.handle_joined();
  }
  return {};
}

Result<void> ProcessFleets::link_all(Member& member) {
  const sync::LockGuard lock(mutex_);
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& each) {
    return std::find(each.second.begin(), each.second.end(), &member) != each.second.end();
  });
  if (found == members_.end()) {
    return {};
  }
  for (Member* const other : found->second) {
    if (other != &member) {
      WEFT_TRY(member.link_inproc(other->instance(), other->inproc_endpoint(), other->has_inner()));
    }
  }
  return {};
}

void ProcessFleets::leave(Member& member, const msg::ContextCore* context, const std::string& fleet) noexcept {
  const sync::LockGuard lock(mutex_);
  const auto found = members_.find({context, fleet});
  if (found == members_.end() || std::erase(found->second, &member) == 0) {
    return;
  }
  for (Member* const other : found->second) {
    other->handle_peer_closed(member.instance(), member.inproc_endpoint());
  }
  if (found->second.empty()) {
    members_.erase(found);
  }
}

}  // namespace weft::topic
