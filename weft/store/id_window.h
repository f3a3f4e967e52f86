// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/store/settings.h"

namespace weft::store {

// IdWindow: the ids of the recently stored messages of one stream, and their sequences.
// Owner: a stream. Affinity: one thread. Cost: a probe for each message, which mostly reads one cache line; about 140 B
// of memory for each id.
// Invariants:
// 1. The window has an id from its add() until forget_before() passes its time, or until the bounds push it out, oldest
//    first; overflowed() counts those.
// 2. At most `ids_max` ids, and `bytes_max` bytes of them.
class IdWindow {
 public:
  static constexpr std::size_t kIdsMax = 1'000'000;
  static constexpr std::size_t kBytesMax = 64 * 1024 * 1024;

  explicit IdWindow(std::size_t ids_max = kIdsMax, std::size_t bytes_max = kBytesMax)
      : ids_max_(ids_max), bytes_max_(bytes_max) {}

  // Ids of a time before `since` are unknown.
  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view id, WallTime since = WallTime::min()) const;
  // Times of successive ids never decrease. A known id keeps its first sequence.
  void add(std::string_view id, std::uint64_t sequence, WallTime time, WallTime since = WallTime::min());
  // For ids that are read from rows. A known id loses its earlier sequence.
  void renew(std::string_view id, std::uint64_t sequence, WallTime time);
  void forget_from(std::uint64_t sequence);  // takes back the newest ids, whose sequences are this one or above
  void forget_before(WallTime time, std::size_t most = ~std::size_t{0});  // at most so many
  // For a window that is not used any longer: gives the memory of `most` ids back. Returns true when none is left.
  [[nodiscard]] bool free_some(std::size_t most) noexcept;

  [[nodiscard]] std::optional<std::uint64_t> first_sequence() const noexcept {  // of the oldest id
    return order_.empty() ? std::nullopt : std::optional(order_.front().sequence);
  }
  [[nodiscard]] std::optional<std::uint64_t> last_sequence() const noexcept {  // of the newest id
    return order_.empty() ? std::nullopt : std::optional(order_.back().sequence);
  }
  // Calls `visit(id, sequence, time)` for each id from `sequence` on, oldest first.
  template <typename Visit>
  void visit_from(std::uint64_t sequence, const Visit& visit) const {
    auto at = order_.end();
    while (at != order_.begin() && (at - 1)->sequence >= sequence) {
      --at;
    }
    for (; at != order_.end(); ++at) {
      if (!at->id.empty()) {  // otherwise it was renewed
        visit(at->id, at->sequence, at->time);
      }
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return order_.size(); }
  [[nodiscard]] std::uint64_t overflowed() const noexcept { return overflowed_; }

 private:
  struct Entry {
    WallTime time;
    std::uint64_t sequence;
    std::uint64_t hash;
    std::string id;
  };
  // Place: the place of an id: the low halves of its hash and of its number, so that eight share a cache line.
  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t number = 0;  // with kTaken; 0: the place is free
  };
  static constexpr std::uint32_t kTaken = std::uint32_t{1} << 31;
  static constexpr std::size_t kPlacesLeast = 16;
  static_assert(kIdsMax < kTaken);

  [[nodiscard]] std::optional<std::size_t> place_of(std::string_view id, std::uint64_t hash) const;  // in order_
  void grow();  // throws std::bad_alloc, and then changes nothing
  void put(std::uint64_t hash, std::uint64_t number) noexcept;
  void empty_place(std::size_t place, std::uint64_t hash) noexcept;
  void take(std::uint64_t hash, std::uint64_t number) noexcept;
  void drop_oldest();

  std::size_t ids_max_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::uint64_t overflowed_ = 0;
  std::deque<Entry> order_;    // by age
  std::uint64_t first_ = 1;    // number of the oldest one; the others follow
  std::vector<Place> places_;  // by hash, linear probing; a power of two, at least twice as many as ids
};

}  // namespace weft::store
