// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/serve/admission/byte_budget.h"

namespace weft::serve {

// WriteQueue: the frames of a connection that the kernel has not taken yet, in the order in which they go out.
// Owner: a session. Affinity: one core. Cost: a frame is copied once, behind others in a pooled block of 4 to 64 KB, or
// referred to; nothing is allocated while there is room. An empty queue has no block.
// Invariants:
//   (1) Whole frames or the rest of one frame that was begun: nothing is ever dropped from the middle of a frame.
//   (2) A block holds whole frames only, but for the rest of the one that was begun; where each ends is known.
//   (3) What the blocks take is charged to the budget until they are released. Bytes that are referred to are not: who
//       shares them among many sessions bounds them.
class WriteQueue {
 public:
  static constexpr std::size_t kBlockMin = 4 * 1024;
  static constexpr std::size_t kBlockMax = 64 * 1024;
  static constexpr std::size_t kGatherMax = 64;  // what one write takes

  WriteQueue() = default;
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;
  ~WriteQueue() = default;  // requires clear(): the budget is not kept here

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // bytes

  // Where a frame of up to `size` bytes may be written in the block at hand; null: there is no room, see reserve().
  [[nodiscard]] std::uint8_t* room(std::size_t size) noexcept {
    return tail_ != nullptr && tail_->limit >= tail_->end + size + sizeof(std::uint32_t) ? tail_->bytes + tail_->end
                                                                                         : nullptr;
  }
  // The same in a new block. Null: no memory, or the budget is spent.
  [[nodiscard]] std::uint8_t* reserve(std::size_t size, ByteBudget::Share& budget) noexcept;
  // The frame that was written where room() or reserve() said.
  void commit(std::size_t size) noexcept {
    Segment& segment = *tail_;
    segment.end += static_cast<std::uint32_t>(size);
    segment.limit -= static_cast<std::uint32_t>(sizeof(std::uint32_t));
    ++segment.frames;
    segment.ends[-static_cast<std::ptrdiff_t>(segment.frames)] = segment.end;
    size_ += size;
  }
  // A frame whose first `skip` bytes went out already, which requires an empty queue. False: as reserve().
  [[nodiscard]] bool append_rest(std::span<const Bytes> parts, std::size_t skip, ByteBudget::Share& budget) noexcept;
  // A frame in bytes that `buffer` keeps; takes a reference of its own. False: as reserve().
  [[nodiscard]] bool append_shared(mem::Buffer* buffer, Bytes frame, ByteBudget::Share& budget) noexcept;

  // All of it, when that lies in one piece; else nothing.
  [[nodiscard]] Bytes sole() const noexcept {
    return head_ != nullptr && head_ == tail_ ? Bytes(head_->bytes + head_->begin, head_->end - head_->begin) : Bytes();
  }
  // What goes out next. Returns how many elements were filled.
  std::size_t gather(std::span<Bytes> into) const noexcept;
  void advance(std::size_t bytes, ByteBudget::Share& budget) noexcept;  // they went out

  struct Dropped {
    std::size_t frames = 0;
    std::size_t bytes = 0;
  };
  // Takes out the oldest frames of which nothing went out yet, until that makes `wanted` bytes.
  Dropped drop_oldest(std::size_t wanted, ByteBudget::Share& budget) noexcept;
  std::size_t clear(ByteBudget::Share& budget) noexcept;  // how many frames were in it

 private:
  // At the front of a block that it describes, or alone before bytes of others.
  struct Segment {
    Segment* next;
    mem::Buffer* shared;  // holds the bytes; null: the block does, behind this
    std::uint8_t* bytes;
    std::uint32_t* ends;   // behind the block: where each frame ends, from there down; null for a shared one
    std::uint32_t begin;   // of what has to go out
    std::uint32_t end;     // of the last frame
    std::uint32_t limit;   // of what may be written: behind it are the ends; 0 for a shared one
    std::uint32_t frames;  // that are or were in it
    std::uint32_t first;   // the frame at `begin`
    bool begun;            // some of it went out already
  };

  static std::uint32_t end_of(const Segment& segment, std::uint32_t frame) noexcept {
    return segment.ends == nullptr ? segment.end : segment.ends[-static_cast<std::ptrdiff_t>(frame) - 1];
  }
  [[nodiscard]] Segment* add_segment(std::size_t size, ByteBudget::Share& budget) noexcept;
  static void release(Segment* segment, ByteBudget::Share& budget) noexcept;
  void pop(ByteBudget::Share& budget) noexcept;
  // Takes frames out of one segment. True: it is empty now.
  static bool drop_from(Segment& segment, std::size_t wanted, Dropped& dropped) noexcept;

  Segment* head_ = nullptr;
  Segment* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace weft::serve
