// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "weft/base/result.h"
#include "weft/base/slot_pool.h"

namespace weft {

// SlotMap: values under 64-bit ids that the map hands out, for tables of sessions, subscriptions, watches.
// Owner: its user. Affinity: one thread.
// Cost: emplace, erase and find O(1). find hashes nothing: it compares the id with the one beside the value. Values
// never move. Memory only grows, a chunk of slots at a time. A walk is O(live + peak / 64). An id costs 8 bytes beside
// its value. `kGenerationBits`: the same as for SlotPool.
// Invariants:
// 1. An id names one value for ever: find() never returns a later value for the id of an erased one.
// 2. live_ has a bit for each slot with a value and no other.
// 3. A value whose destructor runs is in the map no longer: it may find, erase and add any other value.
template <typename T, unsigned kGenerationBits = 32>
class SlotMap {
 public:
  static constexpr std::uint32_t kCapacityMax = SlotPool<T>::kCapacityMax;

  // Holds at most `capacity` values at a time.
  explicit SlotMap(std::uint32_t capacity = kCapacityMax) noexcept : slots_(capacity) {}
  SlotMap(const SlotMap&) = delete;
  SlotMap& operator=(const SlotMap&) = delete;
  ~SlotMap() {
    if constexpr (!std::is_trivially_destructible_v<T>) {
      clear();
    }
  }

  // Fails with resource_exhausted if the map is full, or if there is no memory. If T's constructor throws, nothing
  // changes.
  template <typename... Arguments>
  [[nodiscard]] Result<SlotId> emplace(Arguments&&... arguments) {
    constexpr Error kFull(Errc::resource_exhausted, "the slot map is full");
    Claim claim{slots_, slots_.claim()};
    if (claim.slot == nullptr) [[unlikely]] {
      return kFull;
    }
    const SlotId id = claim.slot->id();
    if (id.slot() / 64 >= live_.size()) [[unlikely]] {
      if (!live_.grow()) {
        return kFull;
      }
      live_[id.slot() / 64] = 0;
    }
    std::construct_at(claim.slot->value(), std::forward<Arguments>(arguments)...);
    claim.slot = nullptr;
    live_[id.slot() / 64] |= std::uint64_t{1} << (id.slot() % 64);
    return id;
  }

  [[nodiscard]] T* find(SlotId id) noexcept {
    auto* slot = slots_.find(id);
    return slot != nullptr ? slot->value() : nullptr;
  }
  [[nodiscard]] const T* find(SlotId id) const noexcept { return const_cast<SlotMap*>(this)->find(id); }

  bool erase(SlotId id) noexcept {  // returns false if the map does not have the id
    auto* slot = slots_.find(id);
    if (slot == nullptr) {
      return false;
    }
    live_[id.slot() / 64] &= ~(std::uint64_t{1} << (id.slot() % 64));
    slots_.retire(slot);
    std::destroy_at(slot->value());
    slots_.recycle(id);
    return true;
  }
  void clear() noexcept {
    for_each([this](SlotId id, T&) { erase(id); });
  }

  // Calls function(SlotId, T&) for each value, in no particular order. `function` may erase any value. A
  // value that it adds may or may not be visited.
  template <typename Function>
  void for_each(Function&& function) {
    walk(0, live_.size(), function);
  }
  // The same for the values in `slots` slots from `first` on, both multiples of 64. Returns the slot at which the walk
  // continues; 0: it is over. Values that come and go between two calls may or may not be visited.
  template <typename Function>
  std::uint32_t for_each_in(std::uint32_t first, std::uint32_t slots, Function&& function) {
    const std::uint32_t words = live_.size();
    const std::uint32_t begin = std::min(first / 64, words);
    const std::uint32_t end = begin + std::min(slots / 64, words - begin);
    walk(begin, end, function);
    return end == words ? 0 : end * 64;
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return slots_.size(); }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return slots_.capacity(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

 private:
  // The values of these words of live_, without `end`.
  template <typename Function>
  void walk(std::uint32_t begin, std::uint32_t end, Function& function) {
    for (std::uint32_t word = begin; word < end; ++word) {
      const std::uint32_t first = word * 64;
      auto* const run = slots_.at(first);
      for (std::uint64_t left = live_[word]; left != 0; left &= left - 1) {
        const auto offset = static_cast<std::uint32_t>(std::countr_zero(left));
        if (run[offset].claimed_as(first + offset)) {  // `function` has not erased it
          function(run[offset].id(), *run[offset].value());
        }
      }
    }
  }

  using Slots = SlotPool<T, kGenerationBits>;
  struct Claim {  // gives the slot back if T's constructor throws or memory runs out
    Slots& slots;
    typename Slots::Slot* slot;

    ~Claim() {
      if (slot != nullptr) {
        slots.release(slot);
      }
    }
  };

  Slots slots_;
  StableArray<std::uint64_t> live_;
};

}  // namespace weft
