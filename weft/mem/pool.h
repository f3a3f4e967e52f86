// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "weft/mem/buffer.h"
#include "weft/mem/return_stack.h"

namespace weft::mem {

// Returns memory from the calling thread's pool; any thread may free it. Aligned for every type. 0 bytes get an address
// of their own. Null if there is no memory. Cost: that of Buffer, which contains the memory: sizes are rounded up to
// 128 B, 256 B ... 256 KB, and each block has 64 bytes before it. Beyond that, malloc and free.
[[nodiscard]] inline void* pool_allocate(std::size_t size) noexcept {
  Buffer* const buffer = Buffer::make(size);
  return buffer == nullptr ? nullptr : buffer->data();
}
// Null is accepted.
inline void pool_deallocate(void* block) noexcept {
  if (block != nullptr) {
    Buffer::of(block)->release();
  }
}

// Pool: one thread's free buffers by size class (powers of two, 128 B to 256 KB).
// Owner: the thread that uses it. When the thread ends, the pool waits for the next new thread, with a few buffers.
// Affinity: owning thread, except give_back(), which any thread may call.
// Cost: taking and freeing touch no memory of the buffer. Buffers that another thread freed come back in
// parcels. A parcel is written into one of its own buffers, so that neither side follows a list through cold
// memory.
// Invariants:
// 1. A buffer rests in its owner's lists, in a parcel on its owner's returned stack, or in one freer's
//    outgoing list.
// 2. Each class keeps at most kKeptBytes (at least kKeptMin buffers: 2 and 4 MiB in the two largest). Buffers
//    above that go back to malloc. A queue that holds more than that costs one allocation for each block that
//    is read.
// 3. The returned stack holds at most kReturnedBytes, and a parcel of each thread that frees: the thread that frees
//    buffers above that gives them back to malloc, whatever the owner does.
// 4. A pool without a thread keeps at most kEndedBytes of each class, and as much on its returned stack.
// 5. The reference count of a buffer that rests is 1.
// 6. A free needs no memory. A thread without a pool gets one with its first free if there is memory.
class Pool {
 public:
  // The calling thread's pool. Null only if there is no memory or the thread is ending.
  [[nodiscard]] static Pool* mine() noexcept;

  Buffer* take(std::size_t size) noexcept;
  void put(Buffer* buffer) noexcept;   // a buffer of this pool; called by the pool's thread
  void send(Buffer* buffer) noexcept;  // a buffer of another pool; joins the outgoing list
  void flush() noexcept;               // sends the outgoing list now

  // Any thread. All `buffers` belong to this pool; at least one and at most kParcelMax, of so many bytes with their
  // headers.
  void give_back(Buffer* const* buffers, std::size_t count, std::size_t bytes) noexcept;

  Pool* next_orphan = nullptr;  // in the list of pools without a thread

 private:
  static constexpr std::size_t kSmallest = 128;
  static constexpr std::size_t kClasses = 12;
  static constexpr std::size_t kKeptBytes = 1024 * 1024;
  static constexpr std::size_t kKeptMin = 16;
  static constexpr std::size_t kParcelMax = 15;
  static constexpr std::size_t kOutgoingBytes = 64 * 1024;
  static constexpr std::size_t kReturnedBytes = 4 * 1024 * 1024;
  static constexpr std::size_t kEndedBytes = 64 * 1024;
  static_assert(kSmallest << (kClasses - 1) == Buffer::kPooledMax);
  friend struct PoolHolder;

  struct Parcel {
    Parcel* next;
    std::uint32_t count;
    std::uint32_t bytes;                         // of all its buffers
    std::array<Buffer*, kParcelMax - 1> others;  // all but the one that the parcel is written into
  };
  static_assert(sizeof(Parcel) <= kSmallest);

  // A stack: the buffer that was freed last is taken next. It grows when a buffer is made, so that a free needs no
  // memory.
  struct FreeList {
    Buffer** buffers = nullptr;
    std::size_t count = 0;
    std::size_t room = 0;
    std::size_t made = 0;  // by malloc, except for those that this pool gave back; other threads do not count theirs
  };

  static std::uint32_t class_of(std::size_t size) noexcept {
    return size <= kSmallest ? 0 : static_cast<std::uint32_t>(std::bit_width(size - 1)) - 7;
  }
  static std::size_t class_size(std::uint32_t index) noexcept { return kSmallest << index; }
  [[gnu::noinline]] static Pool* find_mine() noexcept;
  [[gnu::noinline]] Buffer* take_returned(std::uint32_t index) noexcept;
  [[gnu::noinline]] static void free_to_system(FreeList& list, Buffer* buffer) noexcept;
  static void make_room(FreeList& list, std::size_t size) noexcept;
  void collect_returned() noexcept;
  void begin_thread() noexcept { returned_.set_bytes_max(kReturnedBytes); }
  void end_thread() noexcept;

  std::array<FreeList, kClasses> free_{};
  Pool* outgoing_owner_ = nullptr;
  std::size_t outgoing_count_ = 0;
  std::size_t outgoing_bytes_ = 0;
  std::array<Buffer*, kParcelMax> outgoing_{};
  ReturnStack<Parcel> returned_{kReturnedBytes};
};

}  // namespace weft::mem
