// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/prefix_table.h"

namespace weft::msg {

class Pipe;

// SubscriptionTable: the topics that peers subscribed to, and the peers of each topic. A topic is a prefix, or a filter
// of another kind.
// Owner: a pattern. Affinity: the send lock.
// Cost: match() is that of PrefixTable and of FilterIndex, and a visit for each peer. add() and remove() are O(topic),
// however many topics and peers there are. Nothing throws. The subscription to a prefix costs
// about 60 bytes if the topics are numbers after a common prefix, and at most 256 and its topic twice; and up to 32
// more if other peers have its topic. A peer with an eighth of the table's prefixes, and kWalkMin at least, costs half
// of that: the table is walked for its topics when the peer has gone. A walk finds places for other peers, too: many
// peers that go need about as many steps as they had topics, and a few for each topic in the table.
// Invariants:
// 1. A peer has a topic if, and only if, the peer is among the peers of the topic.
// 2. A topic without peers is not in the table.
// 3. A peer that has a prefix without a place of its own for it is the only peer of that prefix.
class SubscriptionTable {
 public:
  // The bounds of one peer, besides that of `topics_max`. Peers in the same process have none.
  static constexpr std::size_t kTopicBytesMax = std::size_t{64} << 20;

  // Peer: one peer's part of the table. While it has topics the table has its address.
  struct Peer : FilterIndex::Peer {
    Pipe* pipe = nullptr;               // null: the peer is gone, and match() leaves it out
    bool local = false;                 // in this process: without bounds
    std::size_t bytes = 0;              // of all its topics
    std::uint32_t number = 0;           // of the peer in the table; 0: it has no prefix
    std::size_t prefixes = 0;           // topics that are prefixes
    PrefixTable<std::uint32_t> places;  // the peer's place among the peers of each of its prefixes
    std::unique_ptr<std::string> trim;  // not null: the places after this prefix may be given up

    [[nodiscard]] std::size_t topics() const noexcept { return prefixes + filters(); }
    [[nodiscard]] std::size_t without_place() const noexcept { return prefixes - places.size(); }
  };
  static constexpr std::size_t kWalkMin = 1024;

  // `walk_min`: kWalkMin, or fewer for a test.
  explicit SubscriptionTable(std::size_t walk_min = kWalkMin) noexcept : walk_min_(walk_min) {}
  SubscriptionTable(const SubscriptionTable&) = delete;
  SubscriptionTable& operator=(const SubscriptionTable&) = delete;
  ~SubscriptionTable();

  [[nodiscard]] static FilterView prefix(Bytes bytes) noexcept { return {FilterKind::prefix, as_text(bytes)}; }

  // Returns true if the topic is new. Returns false if another peer has the topic, or this one has it already.
  // message_too_large: the peer would exceed a bound; resource_exhausted: no memory. After an error nothing has
  // changed. Filter::make() takes the text of a filter that is not a prefix. `topics_max`: of the peer; 0: none.
  [[nodiscard]] Result<bool> add(Peer& peer, const FilterView& topic, int topics_max = 0) noexcept;
  void remove(Peer& peer, const FilterView& topic) noexcept;
  [[nodiscard]] std::size_t size() const noexcept {  // topics, also those of peers that are gone
    return prefixes_.size() + filters_.size();
  }
  // The peer has the topic, and no other peer has.
  [[nodiscard]] bool is_last(Peer& peer, const FilterView& topic) noexcept;
  // Removes some topics of the peer, in bounded time, after tell(topic, last) returned true. Returns true if none is
  // left.
  template <typename Tell>
  [[nodiscard]] bool remove_some(Peer& peer, Tell tell) {
    std::size_t bytes = 0;
    steps_left_ = kStepTopics;
    for (std::size_t i = 0; i < kStepTopics && bytes < kStepBytes && take_first(peer); ++i) {
      const FilterView topic{kind_, topic_};
      if (!tell(topic, is_last(peer, topic))) {
        break;
      }
      bytes += topic_.size();
      remove(peer, topic);
    }
    return peer.topics() == 0;
  }

  // Calls visit(peer) for each peer of each prefix of `topic`: for a peer with several of them, several times.
  template <typename Visit>
  auto match(Bytes topic, Visit visit) {
    return prefixes_.match(topic, [&](Holders holders) {
      for (Peer* peer : all(holders)) {
        if (peer->pipe != nullptr) [[likely]] {
          visit(*peer);
        }
      }
      return true;
    });
  }
  // Filters that are not prefixes: FilterIndex::match() for the peers that are not gone.
  [[nodiscard]] bool has_filters() const noexcept { return !filters_.empty(); }
  template <typename Visit>
  void match_filters(Bytes topic, std::uint64_t mark, Visit visit) {
    filters_.match(as_text(topic), mark, [&](FilterIndex::Peer& there, bool matched) {
      if (Peer& peer = static_cast<Peer&>(there); peer.pipe != nullptr) [[likely]] {
        visit(peer, matched);
      }
    });
  }
  // The peers of exactly this prefix, also those that are gone.
  [[nodiscard]] std::span<Peer* const> peers(Bytes topic) noexcept {
    const Holders* const holders = prefixes_.find(topic);
    return holders != nullptr ? all(*holders) : std::span<Peer* const>();
  }

 private:
  static constexpr std::size_t kStepTopics = 512;  // about 0.2 ms
  static constexpr std::size_t kStepBytes = 1024 * 1024;
  static constexpr std::size_t kShare = 8;

  // The peers of a prefix: 0, none; twice the number of one; or twice the number of an array of several, and 1.
  using Holders = std::uint32_t;
  struct Many {
    std::uint32_t count;
    std::uint32_t capacity;

    [[nodiscard]] Peer** peers() noexcept { return reinterpret_cast<Peer**>(this + 1); }
  };
  // Numbered: pointers by numbers, from 1 on. A number that was removed is used again.
  template <typename T>
  class Numbered {
   public:
    [[nodiscard]] std::uint32_t add(T* pointer) noexcept;  // 0: no memory
    void remove(std::uint32_t number) noexcept {
      (*this)[number] = nullptr;
      free_.push_back(number);  // reserved
    }
    [[nodiscard]] T*& operator[](std::uint32_t number) noexcept { return pointers_[number - 1]; }
    [[nodiscard]] const std::vector<T*>& all() const noexcept { return pointers_; }

   private:
    std::vector<T*> pointers_;         // null: the number is free
    std::vector<std::uint32_t> free_;  // has room for every number
  };

  [[nodiscard]] std::span<Peer*> all(Holders holders) noexcept {
    if ((holders & 1) != 0) {
      Many& many = *many_[holders >> 1];
      return {many.peers(), many.count};
    }
    return holders != 0 ? std::span(&peers_[holders >> 1], 1) : std::span<Peer*>();
  }
  // Null: there are several, or none.
  [[nodiscard]] Peer* only(Holders holders) noexcept {
    return (holders & 1) == 0 && holders != 0 ? peers_[holders >> 1] : nullptr;
  }
  [[nodiscard]] bool put(Holders& holders, Peer& peer) noexcept;  // false: no memory, and nothing changed
  void drop_last(Holders& holders) noexcept;
  [[nodiscard]] static Many* resize(Many* many, std::uint32_t capacity) noexcept;  // null: no memory

  // message_too_large. `topics` are the peer's with the new one, `size` is the new one's.
  [[nodiscard]] static Result<void> check_bounds(const Peer& peer, std::size_t topics, std::size_t size,
                                                 int topics_max) noexcept;
  [[nodiscard]] Result<bool> add_prefix(Peer& peer, Bytes prefix, int topics_max) noexcept;
  void remove_prefix(Peer& peer, Bytes prefix) noexcept;
  // The peer's place among the holders of the prefix, or null. Nothing: the peer has not this prefix.
  [[nodiscard]] std::optional<std::uint32_t> place(Peer& peer, Bytes prefix, const Holders* holders) noexcept;
  // Makes a place for a second peer of a prefix, and for the first, which may have none. Returns null if there
  // is no memory.
  [[nodiscard]] std::uint32_t* make_places(Peer& peer, Bytes prefix, Holders holders) noexcept;
  // The peer needs no place for a prefix that it alone has.
  [[nodiscard]] bool is_large(const Peer& peer) const noexcept {
    return peer.prefixes >= walk_min_ && peer.prefixes * kShare >= prefixes_.size();
  }
  // After the peer gained a prefix, and after it lost one or did not get it.
  void trim_places(Peer& peer) noexcept;
  void forget_number(Peer& peer) noexcept;
  [[nodiscard]] bool take_first(Peer& peer) noexcept;
  [[nodiscard]] bool walk_on(Peer& peer);

  PrefixTable<Holders> prefixes_;
  Numbered<Peer> peers_;  // with prefixes
  Numbered<Many> many_;
  FilterIndex filters_;
  FilterKind kind_ = FilterKind::prefix;  // of remove_some(), like the next two
  std::string topic_;
  std::size_t steps_left_ = 0;
  std::string walk_at_;  // the walk, one for all peers, goes on after this prefix
  std::size_t walk_min_;
};

}  // namespace weft::msg
