// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weft/base/list.h"
#include "weft/serve/admission/byte_budget.h"

namespace weft::serve {

// InputHolder: an owner of half-received input, in the list of the owners that hold about as much. A base class.
class InputHolder : public ListHook {
 protected:
  explicit InputHolder(void* owner) noexcept : owner_(owner) {}
  ~InputHolder() = default;

 private:
  friend class InputMemory;
  void* owner_;
};

// InputMemory: the bytes of half-received input of one core's sessions: a bound of their own, within the core's budget.
// When the bytes are spent, the largest holder loses its input. So peers that send a part of a frame and stop do not
// keep other peers from sending theirs.
// Owner: the shard. Affinity: its core. Cost: O(1) a call, and one call of the function for each holder that loses its
// input.
// Invariants:
//   (1) The holders hold at most the limit, and the bytes are charged to the budget.
//   (2) A holder with a block is in the list of the block's class: the power of two below its size. The holder whose
//       bytes came last is at the list's end.
class InputMemory {
 public:
  // Ends the owner and drops its input.
  using Evict = void(void* owner) noexcept;

  InputMemory(ByteBudget::Share& budget, std::size_t limit, Evict* evict) noexcept
      : budget_(budget), limit_(limit), evict_(evict) {}
  InputMemory(const InputMemory&) = delete;
  InputMemory& operator=(const InputMemory&) = delete;
  ~InputMemory() = default;

  // Takes bytes for a block of the holder. While they are not there, evicts another holder: the one with the largest
  // block, and of equals the one that got no bytes for the longest time. Returns false if no other block is as large.
  [[nodiscard]] bool take(std::size_t bytes, const InputHolder& holder) noexcept;
  void give_back(std::size_t bytes) noexcept;
  // The holder has a block of that size; has none any more; got bytes.
  void add(InputHolder& holder, std::size_t bytes) noexcept;
  void remove(InputHolder& holder, std::size_t bytes) noexcept;
  void renew(InputHolder& holder, std::size_t bytes) noexcept {
    holder.unhook();
    lists_[class_of(bytes)].push_back(holder);
  }

 private:
  static constexpr std::size_t kClasses = 64;
  static std::size_t class_of(std::size_t bytes) noexcept {
    const auto bits = static_cast<unsigned>(std::bit_width(bytes | 1));
    return bits - 1;
  }
  [[nodiscard]] InputHolder* largest_beside(const InputHolder& holder) const noexcept;

  ByteBudget::Share& budget_;
  const std::size_t limit_;
  Evict* const evict_;
  std::size_t held_ = 0;
  std::uint64_t used_ = 0;  // a bit for each list that is not empty
  std::array<List<InputHolder>, kClasses> lists_;
};

}  // namespace weft::serve
