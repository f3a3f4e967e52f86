// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weft/mem/buffer.h"

namespace weft::mem {

// Pool: one thread's free buffers by size class (powers of two, 128 B to 256 KB).
// Owner: the thread that uses it; when the thread ends the pool waits, with what it holds, for the next new thread.
// Affinity: owning thread, but for give_back(), which any thread may call.
// Invariants:
//   (1) A buffer rests in its owner's lists, in its owner's returned stack, or in one freer's outgoing chain.
//   (2) Each class keeps at most kKeptBytes (at least kKeptMin buffers); what is above goes back to malloc.
class Pool {
 public:
  static Pool* mine() noexcept;  // the calling thread's; null only when memory ran out or the thread is ending

  Buffer* take(std::size_t size) noexcept;
  void put(Buffer* buffer) noexcept;                     // buffer of this pool, called by its thread
  void send(Buffer* buffer) noexcept;                    // buffer of another pool: joins the outgoing chain
  void flush() noexcept;                                 // sends the outgoing chain now
  void give_back(Buffer* first, Buffer* last) noexcept;  // any thread: a chain of this pool's buffers

 private:
  static constexpr std::size_t kSmallest = 128;
  static constexpr std::size_t kClasses = 12;
  static constexpr std::size_t kKeptBytes = 1024 * 1024;
  static constexpr std::size_t kKeptMin = 4;
  static constexpr std::size_t kOutgoingCount = 32;
  static constexpr std::size_t kOutgoingBytes = 64 * 1024;
  static_assert(kSmallest << (kClasses - 1) == Buffer::kPooledMax);
  friend struct PoolHolder;

  static std::uint32_t class_of(std::size_t size) noexcept {
    return size <= kSmallest ? 0 : static_cast<std::uint32_t>(std::bit_width(size - 1)) - 7;
  }
  static std::size_t class_size(std::uint32_t index) noexcept { return kSmallest << index; }
  void collect_returned() noexcept;

  struct FreeList {
    Buffer* first = nullptr;
    std::size_t count = 0;
  };
  std::array<FreeList, kClasses> free_{};
  Pool* outgoing_owner_ = nullptr;
  Buffer* outgoing_first_ = nullptr;
  Buffer* outgoing_last_ = nullptr;
  std::size_t outgoing_count_ = 0;
  std::size_t outgoing_bytes_ = 0;
  Pool* next_orphan_ = nullptr;
  alignas(128) std::atomic<Buffer*> returned_{nullptr};
};

}  // namespace weft::mem
