// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/serve/session/input_memory.h"

namespace weft::serve {

// PartialInput: the bytes of a connection that were received and not decoded. They are less than a frame, or they came
// while reading was paused.
// Owner: a session. Affinity: one core.
// Cost: one pooled block while it holds bytes, otherwise none. Bytes move only when the block is too short after them.
// Invariants:
//   (1) The block is taken from the core's InputMemory until drop(). Another holder may evict the owner, which then
//       calls drop().
//   (2) The block is in proportion to the bytes received: a size that the peer only announces takes at most kStep.
class PartialInput : private InputHolder {
 public:
  static constexpr std::size_t kMin = 128;
  static constexpr std::size_t kStep =
      64 * 1024;  // up to this size the first bytes of a frame get a block for all of it

  explicit PartialInput(void* owner) noexcept : InputHolder(owner) {}  // the owner that is evicted
  PartialInput(const PartialInput&) = delete;
  PartialInput& operator=(const PartialInput&) = delete;
  ~PartialInput() = default;  // requires drop(): the object keeps no reference to the memory

  [[nodiscard]] bool empty() const noexcept { return block_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return end_ - begin_; }
  [[nodiscard]] Bytes bytes() const noexcept {
    return block_ == nullptr ? Bytes() : Bytes(block_->data() + begin_, end_ - begin_);
  }
  // The bytes that the codec needs, from the first one here, before it decodes again. 0: it decodes any number.
  [[nodiscard]] std::size_t needed() const noexcept { return needed_; }
  void set_needed(std::size_t bytes) noexcept { needed_ = bytes; }

  // Makes room for `more` bytes after the bytes here, and for needed() bytes within the bound of (2). Returns false if
  // there is no memory, or none that others may lose; nothing changed.
  [[nodiscard]] bool make_room(std::size_t more, InputMemory& memory) noexcept;
  // Where to read the missing ones of needed() bytes, at most `max` of them. Empty: none are missing, or empty().
  [[nodiscard]] MutableBytes missing(std::size_t max) noexcept {
    if (block_ == nullptr || size() >= needed_) {
      return {};
    }
    return {block_->data() + end_, std::min({needed_ - size(), block_->capacity() - end_, max})};
  }
  // Adds bytes that were read to the place of missing().
  void extend(std::size_t bytes, InputMemory& memory) noexcept {
    if (bytes != 0) {
      end_ += bytes;
      memory.renew(*this, block_->capacity());
    }
  }
  // Copies bytes after those here. Returns false like make_room().
  [[nodiscard]] bool append(Bytes bytes, InputMemory& memory) noexcept;
  // Removes decoded bytes from the front; the caller drops an empty object.
  void consume(std::size_t bytes) noexcept { begin_ += bytes; }
  void drop(InputMemory& memory) noexcept;  // all bytes and the block

 private:
  mem::Buffer* block_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t needed_ = 0;
};

}  // namespace weft::serve
