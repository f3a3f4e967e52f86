// SPDX-License-Identifier: MIT
#include "weft/serve/session/groups.h"

#include <new>
#include <random>

#include "weft/base/random.h"
#include "weft/serve/session/session.h"

namespace weft::serve {

namespace {
std::uint64_t key_of(GroupId id) noexcept { return static_cast<std::uint64_t>(id); }
}  // namespace

GroupHash::GroupHash() {
  std::random_device random;
  first_ = std::uint64_t{random()} << 32U | random();
  second_ = std::uint64_t{random()} << 32U | random();
}

std::size_t GroupHash::operator()(std::uint64_t group) const noexcept {
  return mix_bits(mix_bits(group ^ first_) + second_);
}

GroupPresence::GroupPresence(unsigned cores)
    : words_((cores + kWordBits - 1) / kWordBits),
      bits_(std::make_unique<std::atomic<std::uint64_t>[]>(kBuckets * words_)) {}

bool GroupTable::join(Session& session, GroupId id) {
  for (const GroupMembership& membership : session.groups_) {
    if (membership.group->id == id) {
      return true;
    }
  }
  try {
    session.groups_.reserve(session.groups_.size() + 1);
    std::unique_ptr<Group>& group = groups_[key_of(id)];
    if (group == nullptr) {
      group = std::make_unique<Group>();
      group->id = id;
    }
    group->members.push_back({&session, static_cast<std::uint32_t>(session.groups_.size())});
    session.groups_.push_back({group.get(), static_cast<std::uint32_t>(group->members.size() - 1)});
    if (group->members.size() == 1) {
      note_group(id);
    }
    return true;
  } catch (const std::bad_alloc&) {
    const auto found = groups_.find(key_of(id));
    if (found != groups_.end() && (found->second == nullptr || found->second->members.empty())) {
      groups_.erase(found);
    }
    return false;
  }
}

void GroupTable::note_group(GroupId id) noexcept {
  const std::size_t bucket = GroupPresence::bucket_of(id);
  if (groups_in_[bucket]++ == 0 && presence_ != nullptr) {
    presence_->set(bucket, core_);
  }
}

void GroupTable::forget_group(GroupId id) noexcept {
  const std::size_t bucket = GroupPresence::bucket_of(id);
  if (--groups_in_[bucket] == 0 && presence_ != nullptr) {
    presence_->clear(bucket, core_);
  }
}

void GroupTable::leave(Session& session, GroupId id) noexcept {
  for (std::uint32_t i = 0; i < session.groups_.size(); ++i) {
    if (session.groups_[i].group->id == id) {
      remove(session, i);
      return;
    }
  }
}

void GroupTable::leave_all(Session& session) noexcept {
  while (!session.groups_.empty()) {
    remove(session, static_cast<std::uint32_t>(session.groups_.size() - 1));
  }
}

const Group* GroupTable::find(GroupId id) const noexcept {
  const auto found = groups_.find(key_of(id));
  return found == groups_.end() ? nullptr : found->second.get();
}

// Moves the last element of each list into the place of the removed one, and stores the new index in the other
// list.
void GroupTable::remove(Session& session, std::uint32_t membership) noexcept {
  const GroupMembership gone = session.groups_[membership];
  auto& members = gone.group->members;
  members[gone.member] = members.back();
  members[gone.member].session->groups_[members[gone.member].membership].member = gone.member;
  members.pop_back();
  auto& memberships = session.groups_;
  memberships[membership] = memberships.back();
  if (membership + 1 < memberships.size()) {
    memberships[membership].group->members[memberships[membership].member].membership = membership;
  }
  memberships.pop_back();
  if (members.empty()) {
    forget_group(gone.group->id);
    groups_.erase(key_of(gone.group->id));
  }
}

}  // namespace weft::serve
