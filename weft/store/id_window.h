// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weft/store/settings.h"

namespace weft::store {

// IdWindow: the ids of the messages that one stream stored lately, and their sequences.
// Owner: a stream. Affinity: one thread. Cost: a hash probe a message; about 100 B an id, in memory.
// Invariants:
// 1. An id is known from its add() until forget_before() passes its time, or until the bounds push it out, oldest
//    first; overflowed() counts those.
// 2. At most `ids_max` ids, and `bytes_max` bytes of them.
class IdWindow {
 public:
  static constexpr std::size_t kIdsMax = 1'000'000;
  static constexpr std::size_t kBytesMax = 64 * 1024 * 1024;

  explicit IdWindow(std::size_t ids_max = kIdsMax, std::size_t bytes_max = kBytesMax)
      : ids_max_(ids_max), bytes_max_(bytes_max) {}

  [[nodiscard]] std::optional<std::uint64_t> find(std::string_view id) const;
  // Times of successive ids never decrease. An id that is known keeps its first sequence.
  void add(std::string_view id, std::uint64_t sequence, WallTime time);
  void forget_from(std::uint64_t sequence);  // takes the newest ids back, whose sequences are not below this
  void forget_before(WallTime time);
  void clear() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
  [[nodiscard]] std::uint64_t overflowed() const noexcept { return overflowed_; }

 private:
  struct Entry {
    WallTime time;
    std::uint64_t sequence;
    std::string id;
  };
  void drop_oldest();

  std::size_t ids_max_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::uint64_t overflowed_ = 0;
  std::deque<Entry> order_;                                  // by age; its entries do not move
  std::unordered_map<std::string_view, std::uint64_t> ids_;  // the keys point into order_
};

}  // namespace weft::store
