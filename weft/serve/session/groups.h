// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <bit>
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

// GroupHash: the hash of a group's number under a random key. Programs make groups of names from peers, and a peer with
// the hash's key could choose numbers of one bucket.
class GroupHash {
 public:
  GroupHash();
  std::size_t operator()(std::uint64_t group) const noexcept;

 private:
  std::uint64_t first_, second_;
};

// GroupPresence: whether a core may have members of a group. Publishers post to no other core.
// Owner: the server and its runs. Affinity: set() and clear() the core's thread; for_each_core() any thread.
// Cost: 8 bytes for each bucket and 64 cores. for_each_core() is a load for each 64 cores, and a call for each core
// found. Groups share buckets, so a core may be found in vain.
// Invariants:
// 1. A core is found by every for_each_core() that a join there happens before, until the last member left.
class GroupPresence {
 public:
  static constexpr std::size_t kBuckets = 1024;

  explicit GroupPresence(unsigned cores);  // throws std::bad_alloc

  [[nodiscard]] static std::size_t bucket_of(GroupId id) noexcept {
    constexpr unsigned kShift = 54;  // leaves ten bits
    return (static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15u) >> kShift;
  }
  // Relaxed: no other data depends on a bit; a thread that found a join finds its bit by coherence.
  void set(std::size_t bucket, unsigned core) noexcept {
    word_of(bucket, core).fetch_or(bit_of(core), std::memory_order_relaxed);
  }
  void clear(std::size_t bucket, unsigned core) noexcept {
    word_of(bucket, core).fetch_and(~bit_of(core), std::memory_order_relaxed);
  }
  template <typename Visit>
  void for_each_core(GroupId id, Visit visit) const {
    const std::size_t first = bucket_of(id) * words_;
    for (unsigned word = 0; word < words_; ++word) {
      std::uint64_t bits = bits_[first + word].load(std::memory_order_relaxed);
      for (; bits != 0; bits &= bits - 1) {
        visit(word * kWordBits + static_cast<unsigned>(std::countr_zero(bits)));
      }
    }
  }

 private:
  static constexpr unsigned kWordBits = 64;
  static std::uint64_t bit_of(unsigned core) noexcept { return std::uint64_t{1} << (core % kWordBits); }
  std::atomic<std::uint64_t>& word_of(std::size_t bucket, unsigned core) noexcept {
    return bits_[bucket * words_ + core / kWordBits];
  }

  const unsigned words_;  // of a bucket
  const std::unique_ptr<std::atomic<std::uint64_t>[]> bits_;
};

// GroupTable: one core's sessions by group. Owner: the shard. Affinity: its core.
// Cost: join and leave are O(groups of the session); join adds one hash look-up. A group without members takes
// no memory.
class GroupTable {
 public:
  // The table reports its groups to `presence`. Before the first join.
  void announce_to(GroupPresence& presence, unsigned core) noexcept {
    presence_ = &presence;
    core_ = core;
  }
  // Returns false if there is no memory. Idempotent.
  [[nodiscard]] bool join(Session& session, GroupId id);
  void leave(Session& session, GroupId id) noexcept;
  void leave_all(Session& session) noexcept;
  // The group's members on this core; null: none. During a publish no member leaves: sessions leave at the end
  // of the turn.
  [[nodiscard]] const Group* find(GroupId id) const noexcept;

 private:
  void remove(Session& session, std::uint32_t membership) noexcept;
  void note_group(GroupId id) noexcept;
  void forget_group(GroupId id) noexcept;

  std::unordered_map<std::uint64_t, std::unique_ptr<Group>, GroupHash> groups_;
  GroupPresence* presence_ = nullptr;
  unsigned core_ = 0;
  std::array<std::uint32_t, GroupPresence::kBuckets> groups_in_{};  // of each bucket
};

}  // namespace weft::serve
