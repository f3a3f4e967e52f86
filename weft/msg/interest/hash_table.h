// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace weft::msg {

// The prime 2^61 - 1: a product modulo it needs no division.
inline constexpr std::uint64_t kHashPrime = (std::uint64_t{1} << 61) - 1;

[[nodiscard]] inline std::uint64_t add_hashes(std::uint64_t a, std::uint64_t b) noexcept {  // both below the prime
  const std::uint64_t sum = a + b;
  return sum >= kHashPrime ? sum - kHashPrime : sum;
}
[[nodiscard]] inline std::uint64_t multiply_hashes(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return add_hashes(static_cast<std::uint64_t>(product) & kHashPrime, static_cast<std::uint64_t>(product >> 61));
}
// A polynomial in the secret `key` whose coefficients are the size and the bytes, seven at a time. Of two different
// texts of at most 255 bytes, chosen without the key, the hashes are equal for 37 keys of 2^61 at most.
[[nodiscard]] inline std::uint64_t hash_bytes(std::uint64_t key, const char* data, std::size_t size) noexcept {
  constexpr std::size_t kStep = 7;
  std::uint64_t hash = size + 1;
  for (; size > kStep; data += kStep, size -= kStep) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, kStep);
    hash = add_hashes(multiply_hashes(hash, key), word);
  }
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    word = word << 8 | static_cast<unsigned char>(data[i]);
  }
  return add_hashes(multiply_hashes(hash, key), word);
}

// HashTable<Item>: pointers to items by their hashes, which are below the prime.
// Owner: FilterIndex. Affinity: that of the owner.
// Cost: a look-up reads one slot of 16 bytes and, for each other item with a hash nearby, the next one. 21 to 43 bytes
// an item, and none without items. The place of a hash is a random multiple of it, so that no peer can choose hashes
// that share a place.
template <typename Item>
class HashTable {
 public:
  HashTable() noexcept = default;
  HashTable(const HashTable&) = delete;
  HashTable& operator=(const HashTable&) = delete;
  ~HashTable() { std::free(slots_); }

  void set_multiplier(std::uint64_t random) noexcept { multiplier_ = random | 1; }  // while the table is empty
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Returns the first item of that hash for which is_it(item), or null.
  template <typename IsIt>
  [[nodiscard]] Item* find(std::uint64_t hash, IsIt is_it) const noexcept {
    if (size_ == 0) {
      return nullptr;
    }
    for (std::size_t place = place_of(hash); slots_[place].item != nullptr; place = next(place)) {
      if (slots_[place].hash == hash && is_it(*slots_[place].item)) {
        return slots_[place].item;
      }
    }
    return nullptr;
  }
  // Room for one more. Returns false if there is no memory.
  [[nodiscard]] bool reserve_one() noexcept {
    return (size_ + 1) * 4 <= capacity_ * 3 || resize(capacity_ == 0 ? kCapacityMin : capacity_ * 2);
  }
  // Requires reserve_one().
  void insert(std::uint64_t hash, Item& item) noexcept {
    put(hash, &item);
    ++size_;
  }
  void erase(std::uint64_t hash, const Item& item) noexcept {
    std::size_t gap = find_slot(hash, item);
    for (std::size_t place = next(gap); slots_[place].item != nullptr; place = next(place)) {
      const std::size_t home = place_of(slots_[place].hash);
      if (((place - home) & (capacity_ - 1)) >= ((place - gap) & (capacity_ - 1))) {
        slots_[gap] = slots_[place];
        gap = place;
      }
    }
    slots_[gap].item = nullptr;
    if (--size_ == 0) {
      std::free(slots_);
      slots_ = nullptr;
      capacity_ = 0;
    } else if (capacity_ > kCapacityMin && size_ * 8 < capacity_) {
      (void)resize(capacity_ / 2);  // without memory the table stays as large as it is
    }
  }
  // The item has moved.
  void replace(std::uint64_t hash, const Item& old, Item& item) noexcept { slots_[find_slot(hash, old)].item = &item; }
  template <typename Visit>
  void for_each(Visit visit) {
    for (std::size_t place = 0; place < capacity_; ++place) {
      if (slots_[place].item != nullptr) {
        visit(*slots_[place].item);
      }
    }
  }

 private:
  static constexpr std::size_t kCapacityMin = 4;
  struct Slot {
    std::uint64_t hash;
    Item* item;  // null: the slot is free
  };

  [[nodiscard]] std::size_t place_of(std::uint64_t hash) const noexcept {
    return static_cast<std::size_t>((hash * multiplier_) >> 32) * capacity_ >> 32;
  }
  [[nodiscard]] std::size_t next(std::size_t place) const noexcept { return (place + 1) & (capacity_ - 1); }
  [[nodiscard]] std::size_t find_slot(std::uint64_t hash, const Item& item) const noexcept {
    std::size_t place = place_of(hash);
    while (slots_[place].item != &item) {
      place = next(place);
    }
    return place;
  }
  void put(std::uint64_t hash, Item* item) noexcept {
    std::size_t place = place_of(hash);
    while (slots_[place].item != nullptr) {
      place = next(place);
    }
    slots_[place] = {hash, item};
  }
  [[nodiscard]] bool resize(std::size_t capacity) noexcept {
    auto* const slots = static_cast<Slot*>(std::calloc(capacity, sizeof(Slot)));
    if (slots == nullptr) {
      return false;
    }
    Slot* const old = slots_;
    const std::size_t old_capacity = capacity_;
    slots_ = slots;
    capacity_ = capacity;
    for (std::size_t place = 0; place < old_capacity; ++place) {
      if (old[place].item != nullptr) {
        put(old[place].hash, old[place].item);
      }
    }
    std::free(old);
    return true;
  }

  Slot* slots_ = nullptr;
  std::size_t capacity_ = 0;  // 0, or a power of two up to 2^31
  std::size_t size_ = 0;
  std::uint64_t multiplier_ = 1;
};

}  // namespace weft::msg
