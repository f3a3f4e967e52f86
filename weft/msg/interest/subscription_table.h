// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/msg/interest/prefix_table.h"

namespace weft::msg {

class Pipe;

// SubscriptionTable: the topics that peers subscribed to, and the peers of each topic.
// Owner: a pattern. Affinity: the send lock.
// Cost: match() is that of PrefixTable, and a visit for each peer. add() and remove() are O(topic), however many topics
// and peers there are. Nothing throws. A subscription costs about 60 bytes if the topics are numbers behind a common
// prefix, and at most 256 and its topic twice; and up to 32 more if other peers have its topic.
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
    bool local = false;                 // in this process: without bounds
    std::uint64_t mark = 0;             // for the visitor of match()
    std::size_t bytes = 0;              // of all its topics
    PrefixTable<std::uint32_t> topics;  // with the peer's place among the peers of the topic
  };

  SubscriptionTable() noexcept = default;
  SubscriptionTable(const SubscriptionTable&) = delete;
  SubscriptionTable& operator=(const SubscriptionTable&) = delete;
  ~SubscriptionTable() { topics_.clear<&free_peers>(); }

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

  // Peers: those of a topic. One is in place, more are in an array, which free() gives back.
  class Peers {
   public:
    [[nodiscard]] std::span<Peer*> all() noexcept {
      Many* const array = many();
      return array != nullptr ? std::span(array->peers(), array->count) : std::span(&one_, one_ != nullptr ? 1 : 0);
    }
    [[nodiscard]] bool put(Peer& peer) noexcept;  // false: no memory, and nothing changed
    void drop_last() noexcept;
    void free() noexcept;

   private:
    struct Many {
      std::uint32_t count;
      std::uint32_t capacity;

      [[nodiscard]] Peer** peers() noexcept { return reinterpret_cast<Peer**>(this + 1); }
    };
    // Null: one_ is a peer, or null.
    [[nodiscard]] Many* many() const noexcept {
      const bool is_many = (reinterpret_cast<std::uintptr_t>(one_) & 1) != 0;
      return is_many ? reinterpret_cast<Many*>(reinterpret_cast<std::byte*>(one_) - 1) : nullptr;
    }
    [[nodiscard]] bool resize(std::uint32_t wanted) noexcept;

    Peer* one_ = nullptr;  // or the byte behind the first of a Many
  };

  [[nodiscard]] bool take_first(Peer& peer) noexcept;

  static void free_peers(Peers& peers) noexcept { peers.free(); }

  PrefixTable<Peers> topics_;
  std::string topic_;  // of remove_some()
};

}  // namespace weft::msg
