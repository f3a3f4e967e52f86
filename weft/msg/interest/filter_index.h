// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weft/base/filter.h"
#include "weft/base/result.h"

namespace weft::msg {

// FilterIndex: the exact, tokens and glob filters of peers, and the peers of each. Prefixes are SubscriptionTable's.
// Owner: a SubscriptionTable, or a subscriber with one peer. Affinity: that of the owner.
// Cost: a topic is one hash and one probe for the exact filters, a hash of its tokens and a probe for each *shape* of
// the tokens filters (which of the tokens are `*`, and how many there are), and a radix tree of literal heads for the
// globs, which are tried one by one. An unused kind costs one test. A filter costs about 110 bytes, a glob 350,
// another peer of it up to 300. add() and remove() take O(text).
// Hashes have a secret key: no peer can choose filters that share a place.
// Bounds: there are kShapesMax shapes, of which one peer brings kShapesOfPeerMax; tokens of another shape are tried one
// by one, as globs. For one peer and message, these trials take at most the larger of kStepsMin and the peer's share of
// kSteps, one to three nanoseconds each, and one filter more. Then the peer is undecided.
// Invariants:
// 1. A peer is among the holders of a filter if, and only if, the filter is in the peer's list.
// 2. A filter without holders is not in the index.
class FilterIndex {
 public:
  static constexpr std::size_t kShapesMax = 256;
  static constexpr std::size_t kShapesOfPeerMax = 32;
  static constexpr std::size_t kSteps = 16'384;
  static constexpr std::size_t kStepsMin = 1024;

  struct Entry;
  struct Own;

  // Peer: one peer's part of the index, which has its address while it has filters.
  struct Peer {
    Peer() noexcept;
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;
    ~Peer();

    [[nodiscard]] std::size_t filters() const noexcept;

    std::uint64_t mark = 0;    // of the last message that is known to match
    std::unique_ptr<Own> own;  // null: no filters
  };

  // Added: the change that add() made.
  enum class Added : std::uint8_t { nothing, holder, filter };  // the peer had it; others have it; it is new

  FilterIndex() noexcept;
  FilterIndex(const FilterIndex&) = delete;
  FilterIndex& operator=(const FilterIndex&) = delete;
  ~FilterIndex();

  [[nodiscard]] bool empty() const noexcept { return state_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept;  // filters

  // `filter` is not a prefix. resource_exhausted: no memory, and nothing changed.
  [[nodiscard]] Result<Added> add(Peer& peer, const FilterView& filter) noexcept;
  void remove(Peer& peer, const FilterView& filter) noexcept;
  [[nodiscard]] bool has(const Peer& peer, const FilterView& filter) const noexcept;
  [[nodiscard]] std::size_t holders(const FilterView& filter) const noexcept;
  // The text is the index's, until the filter is removed. Requires filters() != 0.
  [[nodiscard]] static FilterView last_of(const Peer& peer) noexcept;

  // Calls visit(peer, true) for peers with a filter that matches, and visit(peer, false) for those that are undecided.
  // Leaves out peers whose mark is `mark`: a visitor that sets the mark sees no peer twice. Marks differ by message.
  template <typename Visit>
  void match(std::string_view topic, std::uint64_t mark, Visit visit);
  // Whether any filter matches, however many steps that takes.
  [[nodiscard]] bool matches(std::string_view topic) const;

 private:
  using Visitor = void (*)(void* context, Peer& peer, bool matched);
  struct Holder;
  struct Holders;
  struct Group;
  struct Shape;
  struct Topic;
  struct State;

  void match_all(std::string_view topic, std::uint64_t mark, Visitor visitor, void* context);
  static void try_group(Group& group, std::string_view topic, std::uint64_t mark, std::size_t steps, Visitor visitor,
                        void* context);
  [[nodiscard]] Entry* find(const FilterView& filter) const noexcept;
  [[nodiscard]] Entry* make_entry(Peer& peer, const FilterView& filter) noexcept;
  void free_entry(Entry& entry) noexcept;
  [[nodiscard]] Group* make_group(Peer& peer, const Entry& entry) noexcept;
  void leave_group(Peer& peer, Entry& entry, std::uint32_t place) noexcept;
  void forget_peer_without_filters(Peer& peer) noexcept;

  std::unique_ptr<State> state_;  // null: no filters
};

template <typename Visit>
void FilterIndex::match(std::string_view topic, std::uint64_t mark, Visit visit) {
  if (state_ != nullptr) {
    match_all(
        topic, mark, [](void* context, Peer& peer, bool matched) { (*static_cast<Visit*>(context))(peer, matched); },
        &visit);
  }
}

}  // namespace weft::msg
