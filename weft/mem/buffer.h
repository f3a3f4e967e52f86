// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/sync/atomic_counted.h"

namespace weft::mem {

class Pool;
class Buffer;

struct BufferDisposer {
  static void dispose(Buffer* buffer) noexcept;
};

// Buffer: a block of bytes with a reference count, from the pool of the thread that made it.
// Owner: its references. Affinity: the count is atomic; the program decides which thread may use the bytes.
// Cost: make and release on one thread are a list operation. A release on another thread collects blocks and
// returns them to their owner in batches, one compare-exchange a batch. Beyond kPooledMax: malloc and free.
class Buffer : public sync::AtomicCounted<Buffer, BufferDisposer> {
 public:
  static constexpr std::size_t kPooledMax = 256 * 1024;

  // Returns a buffer of at least `size` bytes (see capacity()) with one reference. Null if there is no memory.
  [[nodiscard]] static Buffer* make(std::size_t size) noexcept;

  // Returns a buffer with room for `size` bytes and the bytes of `buffer`, which ends. `buffer` has one reference and
  // is of malloc (beyond kPooledMax). Returns null, and changes nothing, if there is no memory. Most systems move such
  // blocks without copying them.
  [[nodiscard]] static Buffer* enlarge(Buffer* buffer, std::size_t size) noexcept;

  // Wraps the caller's bytes. The last release calls `free_bytes(bytes.data(), hint)`, on whatever thread it
  // happens, and drops an exception of that call.
  using FreeFunction = void(void* data, void* hint);
  [[nodiscard]] static Buffer* make_external(MutableBytes bytes, FreeFunction* free_bytes, void* hint) noexcept;
  static void keep_bytes(void* /*data*/, void* /*hint*/) noexcept {}  // for bytes that live for ever

  // Not for external buffers.
  [[nodiscard]] std::uint8_t* data() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }
  [[nodiscard]] static Buffer* of(void* data) noexcept { return static_cast<Buffer*>(data) - 1; }  // data() of it
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  [[nodiscard]] bool external() const noexcept { return external_.free_bytes != nullptr; }
  [[nodiscard]] bool constant() const noexcept { return external_.free_bytes == &keep_bytes; }

 private:
  friend class Pool;
  friend struct BufferDisposer;
  Buffer(Pool* owner, std::uint32_t size_class, std::size_t capacity) noexcept
      : size_class_(size_class), owner_(owner), capacity_(capacity) {}
  void recycle() noexcept;

  std::uint32_t size_class_;  // beside the count
  Pool* owner_;               // null: malloc
  std::size_t capacity_;
  struct External {
    void* data = nullptr;
    FreeFunction* free_bytes = nullptr;  // null: not external
    void* hint = nullptr;
  } external_;
  [[maybe_unused]] std::array<std::uint64_t, 2> padding_{};
};
static_assert(sizeof(Buffer) == 64);

inline void BufferDisposer::dispose(Buffer* buffer) noexcept { buffer->recycle(); }

}  // namespace weft::mem
