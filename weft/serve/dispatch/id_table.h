// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/result.h"

namespace weft::serve {

// IdTable: values by 32-bit ids that the program has chosen. A value is never removed.
// Owner: its user. Affinity: one thread.
// Cost: ids below kDenseMax index an array that is as long as the largest of them. The others are in an open
// table, at most half full, behind a multiplicative hash. find() allocates nothing, add() does. The result of
// find() is valid until the next add().
// Invariant: `T{}` converts to false and is never added: it marks free places.
template <typename T>
class IdTable {
 public:
  static constexpr std::uint32_t kDenseMax = 1024;
  static constexpr std::size_t kSizeMax = 65536;

  IdTable() { open_.resize(room_of(kSmallest)); }

  // Errors: invalid_state (the id has a value); resource_exhausted (the table holds kSizeMax values).
  Result<void> add(std::uint32_t id, const T& value) {
    if (find(id) != nullptr) {
      return Error(Errc::invalid_state, "this id has a handler already");
    }
    if (size_ == kSizeMax) {
      return Error(Errc::resource_exhausted, "too many handlers");
    }
    if (id < kDenseMax) {
      dense_.resize(std::max<std::size_t>(dense_.size(), id + std::size_t{1}));
      dense_[id] = value;
    } else {
      if ((open_size_ + 1) * 2 > places()) {
        grow();
      }
      *place_for(id) = {id, value};
      ++open_size_;
    }
    ++size_;
    return {};
  }

  [[nodiscard]] const T* find(std::uint32_t id) const noexcept {
    if (id < dense_.size()) [[likely]] {
      return dense_[id] ? &dense_[id] : nullptr;
    }
    const Entry* entry = &open_[home(id)];
    while (entry->id != id && entry->value) {
      ++entry;
    }
    return entry->value ? &entry->value : nullptr;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  struct Entry {
    std::uint32_t id = 0;
    T value{};
  };
  static constexpr std::size_t kSmallest = 8;

  // Runs do not wrap: after the last place is room for all values, and a free entry after that.
  [[nodiscard]] static std::size_t room_of(std::size_t places) noexcept { return places + places / 2 + 1; }
  [[nodiscard]] std::size_t places() const noexcept { return std::size_t{1} << (64 - shift_); }
  [[nodiscard]] std::size_t home(std::uint32_t id) const noexcept {
    return id * std::uint64_t{0x9E37'79B9'7F4A'7C15} >> shift_;
  }
  [[nodiscard]] Entry* place_for(std::uint32_t id) noexcept {
    Entry* entry = &open_[home(id)];
    while (entry->value) {
      ++entry;
    }
    return entry;
  }
  void grow() {
    std::vector<Entry> old(room_of(places() * 2));
    old.swap(open_);
    --shift_;
    for (const Entry& entry : old) {
      if (entry.value) {
        *place_for(entry.id) = entry;
      }
    }
  }

  std::vector<T> dense_;
  std::vector<Entry> open_;
  int shift_ = 64 - std::countr_zero(kSmallest);
  std::size_t open_size_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::serve
