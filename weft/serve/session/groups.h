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

// One core's members of a group, each with its place in its session's list of memberships.
struct Group {
  struct Member {
    Session* session;
    std::uint32_t membership;  // index of this membership in the session's list
  };
  GroupId id{};
  std::vector<Member> members;
};

struct GroupMembership {
  Group* group;
  std::uint32_t member;  // index of this session among the group's members
};

// GroupHash: the hash of a group's number under a random key. Programs make groups of what peers name, and a peer that
// knew the hash could choose numbers of one bucket.
class GroupHash {
 public:
  GroupHash();
  std::size_t operator()(std::uint64_t group) const noexcept { return mix(mix(group ^ first_) + second_); }

 private:
  static std::uint64_t mix(std::uint64_t word) noexcept {
    word = (word ^ word >> 30U) * 0xbf58476d1ce4e5b9U;
    word = (word ^ word >> 27U) * 0x94d049bb133111ebU;
    return word ^ word >> 31U;
  }

  std::uint64_t first_, second_;
};

// GroupTable: one core's sessions by group. Owner: the shard. Affinity: its core.
// Cost: join and leave are O(groups of the session); join adds one hash look-up. A group without members takes
// no memory.
class GroupTable {
 public:
  // False: no memory. Idempotent.
  [[nodiscard]] bool join(Session& session, GroupId id);
  void leave(Session& session, GroupId id) noexcept;
  void leave_all(Session& session) noexcept;
  // The group's members on this core; null: none. During a publish no member leaves: sessions leave at the end
  // of the turn.
  [[nodiscard]] const Group* find(GroupId id) const noexcept;

 private:
  void remove(Session& session, std::uint32_t membership) noexcept;

  std::unordered_map<std::uint64_t, std::unique_ptr<Group>, GroupHash> groups_;
};

}  // namespace weft::serve
