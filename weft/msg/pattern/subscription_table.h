// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "weft/base/result.h"
#include "weft/msg/pattern/pipe.h"
#include "weft/msg/pattern/prefix_table.h"

namespace weft::msg {

// SubscriptionTable: the topics that peers subscribed to, and the peers of each topic.
// Owner: a pattern. Affinity: the send lock.
// Cost: match() is that of PrefixTable, and a visit for each peer. add() and remove() are O(topic), however many topics
// and peers there are. Nothing throws. A subscription costs about 128 bytes, and its topic twice at most.
// Invariants:
// 1. A peer has a topic if, and only if, the peer is among the peers of the topic.
// 2. A topic without peers is not in the table.
class SubscriptionTable {
 public:
  // The bounds of one peer. Peers in the same process have none.
  static constexpr std::size_t kTopicsMax = 262'144;
  static constexpr std::size_t kTopicBytesMax = std::size_t{32} << 20;

  // Peer: one peer's part of the table. While it has topics the table has its address.
  struct Peer {
    Pipe* pipe = nullptr;               // null: the peer is gone, and match() leaves it out
    std::uint64_t mark = 0;             // for the visitor of match()
    std::size_t bytes = 0;              // of all its topics
    PrefixTable<std::uint32_t> topics;  // with the peer's place among the peers of the topic
  };

  SubscriptionTable() noexcept = default;
  SubscriptionTable(const SubscriptionTable&) = delete;
  SubscriptionTable& operator=(const SubscriptionTable&) = delete;

  // True: the topic is new. False: another peer has the topic, or this one has it already. protocol_error: the peer
  // would exceed a bound; resource_exhausted: no memory. After an error nothing has changed.
  [[nodiscard]] Result<bool> add(Peer& peer, Bytes topic) noexcept;
  void remove(Peer& peer, Bytes topic) noexcept;
  [[nodiscard]] std::size_t size() const noexcept {
    return topics_.size();
  }  // topics, also those of peers that are gone
  // The peer has the topic, and no other peer has.
  [[nodiscard]] bool is_last(Peer& peer, Bytes topic) noexcept {
    return peer.topics.find(topic) != nullptr && peers(topic).size() == 1;
  }
  // Removes some topics of the peer, in bounded time, after tell(topic, last) returned true. True: none is left.
  template <typename Tell>
  [[nodiscard]] bool remove_some(Peer& peer, Tell tell) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < kStepTopics && bytes < kStepBytes; ++i) {
      if (!take_first(peer) || !tell(as_bytes(topic_), is_last(peer, as_bytes(topic_)))) {
        break;
      }
      bytes += topic_.size();
      remove(peer, as_bytes(topic_));
    }
    return peer.topics.size() == 0;
  }

  // Calls visit(peer) for each peer of each prefix of `topic`: for a peer with several of them, several times.
  template <typename Visit>
  auto match(Bytes topic, Visit visit) {
    return topics_.match(topic, [&](Peers& peers) {
      for (Peer* peer : peers.all()) {
        if (peer->pipe != nullptr) [[likely]] {
          visit(*peer);
        }
      }
      return true;
    });
  }
  // The peers of exactly this topic, also those that are gone.
  [[nodiscard]] std::span<Peer* const> peers(Bytes topic) noexcept {
    Peers* const peers = topics_.find(topic);
    return peers != nullptr ? peers->all() : std::span<Peer* const>();
  }

 private:
  static constexpr std::size_t kStepTopics = 512;  // about 0.2 ms
  static constexpr std::size_t kStepBytes = 1024 * 1024;

  // The peers of a topic: one in place, or an array.
  struct Peers {
    union {
      Peer* one = nullptr;
      Peer** many;
    };
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;  // of `many`; 0: `one` holds

    Peers() noexcept = default;
    Peers(const Peers&) = delete;
    Peers& operator=(const Peers&) = delete;
    ~Peers() { std::free(capacity != 0 ? many : nullptr); }

    [[nodiscard]] std::span<Peer*> all() noexcept { return {capacity == 0 ? &one : many, count}; }
    [[nodiscard]] bool put(Peer& peer) noexcept;  // false: no memory
    void drop_last() noexcept;
    [[nodiscard]] bool resize(std::uint32_t wanted) noexcept;
  };

  [[nodiscard]] bool take_first(Peer& peer) noexcept;

  PrefixTable<Peers> topics_;
  std::string topic_;  // of remove_some()
};

}  // namespace weft::msg
