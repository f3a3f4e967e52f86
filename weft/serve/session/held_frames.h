// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <unordered_map>

#include "weft/mem/buffer.h"
#include "weft/serve/admission/byte_budget.h"

namespace weft::serve {

// HeldFrames: the shared frames in the write queues of one core's sessions.
// Owner: the shard. Affinity: its core.
// Cost: a hash look-up for each queue that holds a frame; none if the last call held the same frame. The first holder
// of a frame allocates, unless a frame was let go before.
// Invariant: each frame is referred to, and charged to the budget, once, from its first holder to its last.
class HeldFrames {
 public:
  struct Held {
    HeldFrames* table;
    mem::Buffer* buffer;
    std::size_t holders;
  };

  explicit HeldFrames(ByteBudget::Share& budget) noexcept : budget_(budget) {}
  HeldFrames(const HeldFrames&) = delete;
  HeldFrames& operator=(const HeldFrames&) = delete;
  ~HeldFrames() = default;  // requires that nothing is held

  // One more queue holds the buffer. Returns null if there is no memory, or the budget is spent.
  [[nodiscard]] Held* hold(mem::Buffer* buffer) noexcept;
  static void release(Held* held) noexcept {
    if (--held->holders == 0) {
      held->table->let_go(*held);
    }
  }

 private:
  using Table = std::unordered_map<const mem::Buffer*, Held>;

  [[nodiscard]] Held* add(mem::Buffer* buffer) noexcept;
  void let_go(Held& held) noexcept;

  ByteBudget::Share& budget_;
  Table table_;
  Table::node_type spare_;  // of a frame that was let go: the next one needs no memory
  Held* last_ = nullptr;    // publishing holds one frame for all members in a row
};

}  // namespace weft::serve
