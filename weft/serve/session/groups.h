// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weft/serve/frame/shared_frame.h"

namespace weft::serve {

class Session;

// One core's part of a group: who is in it, and where that one keeps its membership.
struct Group {
  struct Member {
    Session* session;
    std::uint32_t membership;  // which of its memberships this is
  };
  GroupId id{};
  std::vector<Member> members;
};

struct GroupMembership {
  Group* group;
  std::uint32_t member;  // which of the group's members this is
};

// GroupTable: one core's sessions by group. Owner: the shard. Affinity: its core.
// Cost: join and leave O(groups of the session), a hash look-up to join; a group without members takes no memory.
class GroupTable {
 public:
  // False: no memory. Idempotent.
  [[nodiscard]] bool join(Session& session, GroupId id);
  void leave(Session& session, GroupId id) noexcept;
  void leave_all(Session& session) noexcept;
  // The members on this core; null: none. A member that is sent to leaves no group before the end of the turn.
  [[nodiscard]] const Group* find(GroupId id) const noexcept;

 private:
  void remove(Session& session, std::uint32_t membership) noexcept;

  std::unordered_map<std::uint64_t, std::unique_ptr<Group>> groups_;
};

}  // namespace weft::serve
