// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/serve/admission/byte_budget.h"
#include "weft/serve/frame/frame_kind.h"
#include "weft/serve/session/held_frames.h"

namespace weft::serve {

// WriteQueue: the frames of a connection that the kernel has not taken yet, in the order in which they leave.
// Owner: a session. Affinity: one core.
// Cost: a frame is copied once, after others in a pooled block of 4 to 64 KB, or referred to. Nothing is allocated
// while the block has room. An empty queue has no block. A frame with a key has a pooled block of its own, from 128
// bytes on. A frame is found by its key with one look-up in a hash table. Its memory is charged too, and the table
// doubles when there are more keys, so the cost of a frame is amortized O(1).
// Invariants:
//   (1) The queue holds whole frames, or the rest of one frame that was begun. Nothing is dropped from the
//       middle of a frame.
//   (2) A block holds whole frames only, except for the rest of the frame that was begun. The end of each frame
//       is recorded.
//   (3) The memory of blocks is charged to the budget until they are released. Bytes that are referred to are
//       charged once for all queues of the core (HeldFrames).
//   (4) Of the frames with one key, the queue holds at most one of which no byte was written. find() finds it.
class WriteQueue {
 public:
  static constexpr std::size_t kBlockMin = 4 * 1024;
  static constexpr std::size_t kBlockMax = 64 * 1024;
  static constexpr std::size_t kGatherMax = 64;  // elements for one write

  WriteQueue() = default;
  WriteQueue(const WriteQueue&) = delete;
  WriteQueue& operator=(const WriteQueue&) = delete;
  ~WriteQueue() = default;  // requires clear(): the queue keeps no budget

  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // bytes

  // Where the caller may write a frame of up to `size` bytes in the last block. Returns null if there is no room, see
  // reserve().
  [[nodiscard]] std::uint8_t* room(std::size_t size) noexcept {
    return tail_ != nullptr && tail_->limit >= tail_->end + size + sizeof(std::uint32_t) ? tail_->bytes + tail_->end
                                                                                         : nullptr;
  }
  // As room(), in a new block. Returns null if there is no memory, or the budget is spent.
  [[nodiscard]] std::uint8_t* reserve(std::size_t size, ByteBudget::Share& budget) noexcept;
  // Appends the frame that the caller wrote at the place of room() or reserve().
  void commit(std::size_t size) noexcept {
    Segment& segment = *tail_;
    segment.end += static_cast<std::uint32_t>(size);
    segment.limit -= static_cast<std::uint32_t>(sizeof(std::uint32_t));
    ++segment.frames;
    segment.ends[-static_cast<std::ptrdiff_t>(segment.frames)] = segment.end;
    size_ += size;
  }
  // Appends a frame whose first `skip` bytes were written already. A `skip` above 0 requires an empty queue. Returns
  // false like reserve().
  [[nodiscard]] bool append_rest(std::span<const Bytes> parts, std::size_t skip, ByteBudget::Share& budget) noexcept;
  // Appends a frame inside `buffer`, which `frames` holds until the frame has left. Returns false like reserve().
  [[nodiscard]] bool append_shared(HeldFrames& frames, mem::Buffer* buffer, Bytes frame,
                                   ByteBudget::Share& budget) noexcept;

  struct KeyedFrame {
    FrameKey key;
    std::span<const Bytes> parts;   // together not empty
    mem::Buffer* buffer = nullptr;  // holds the bytes, which are in one part; null: the queue copies them
  };
  // A queued frame with a key of which no byte was written. Valid until the queue changes.
  struct Keyed;
  [[nodiscard]] Keyed* find(FrameKey key) const noexcept;  // null if there is none
  [[nodiscard]] static std::size_t size_of(const Keyed& keyed) noexcept;
  // Appends a frame whose key find() does not find. Returns false like reserve().
  [[nodiscard]] bool append_keyed(const KeyedFrame& frame, HeldFrames& frames, ByteBudget::Share& budget) noexcept;
  // Puts the frame into the place of an older one with the same key. Returns false, and keeps the older one, like
  // reserve().
  [[nodiscard]] bool replace(Keyed& older, const KeyedFrame& frame, HeldFrames& frames) noexcept;

  // All queued bytes, if they lie in one piece; otherwise empty.
  [[nodiscard]] Bytes sole() const noexcept {
    return head_ != nullptr && head_ == tail_ ? Bytes(head_->bytes + head_->begin, head_->end - head_->begin) : Bytes();
  }
  // Fills `into` with the bytes that leave next. Returns the number of elements filled.
  std::size_t gather(std::span<Bytes> into) const noexcept;
  void advance(std::size_t bytes, ByteBudget::Share& budget) noexcept;  // removes bytes that were written

  // Says the kind of the frame that was appended last, once. The queue is not empty.
  void mark_last(FrameKind kind) noexcept {
    if (kind == FrameKind::state) [[unlikely]] {
      mark_state(*tail_);
      ++states_;
    }
  }

  struct Dropped {
    std::size_t frames = 0;
    std::size_t states = 0;  // of the frames
    std::size_t bytes = 0;
  };
  // Drops the oldest frames of which no byte was written yet, until `wanted` bytes are dropped.
  Dropped drop_oldest(std::size_t wanted, ByteBudget::Share& budget) noexcept;
  // Drops the frames of state of which no byte was written yet. Returns their number. The cost is for the frames since
  // the last call, and for the block that was the last one then. Without such a frame it costs nothing.
  std::size_t drop_state(ByteBudget::Share& budget) noexcept;
  std::size_t clear(ByteBudget::Share& budget) noexcept;  // drops all; returns the number of frames

 private:
  static constexpr std::size_t kBlockAfterKeyed = 256;  // bytes: a frame with a key may follow soon

  // The queued frames with a key of which no byte was written, by their keys.
  struct Index;
  // Describes one block, in front of its bytes, or bytes of another buffer, in a block of its own.
  struct Segment {
    Segment* next;
    Segment* searched;         // of the head: no segment before that one has state to drop; null: none is searched
    Index* index;              // of the head; null: it would be empty
    HeldFrames::Held* shared;  // holds the bytes; null: they lie after this segment
    std::uint8_t* bytes;
    // The end of each frame, from the back of the block downward, and kState; null for a segment of one frame, which is
    // shared or has a key.
    std::uint32_t* ends;
    std::uint32_t begin;   // of the bytes to write
    std::uint32_t end;     // of the last frame
    std::uint32_t limit;   // of the room for frames, before `ends`; 0 for a segment of one frame
    std::uint32_t frames;  // frames appended so far
    std::uint32_t first;   // index of the frame at `begin`
    bool begun;            // the first bytes of frame `first` were written
    bool state;            // of a shared segment: its frame is of state
    bool indexed;          // its frame has a key, and is in the index
  };
  static constexpr std::uint32_t kState = std::uint32_t{1} << 31;  // no segment is as long as that

  static std::uint32_t end_of(const Segment& segment, std::uint32_t frame) noexcept {
    return segment.ends == nullptr ? segment.end : segment.ends[-static_cast<std::ptrdiff_t>(frame) - 1] & ~kState;
  }
  static bool is_state(const Segment& segment, std::uint32_t frame) noexcept {
    return segment.ends == nullptr ? segment.state
                                   : (segment.ends[-static_cast<std::ptrdiff_t>(frame) - 1] & kState) != 0;
  }
  static void mark_state(Segment& segment) noexcept {
    if (segment.ends == nullptr) {
      segment.state = true;
    } else {
      segment.ends[-static_cast<std::ptrdiff_t>(segment.frames)] |= kState;
    }
  }
  // Makes a segment with room for `size` bytes after it. Returns null like reserve().
  template <typename Kind>
  [[nodiscard]] static Kind* make_segment(std::size_t size, ByteBudget::Share& budget) noexcept;
  void link(Segment& segment) noexcept;
  [[nodiscard]] static bool put(Keyed& segment, const KeyedFrame& frame, HeldFrames& frames) noexcept;
  [[nodiscard]] bool make_index_room(Index*& index, ByteBudget::Share& budget) noexcept;
  void forget(Segment& segment, ByteBudget::Share& budget) noexcept;  // its frame cannot be replaced any more
  static void release(Segment* segment, ByteBudget::Share& budget) noexcept;
  void pop(ByteBudget::Share& budget) noexcept;
  [[nodiscard]] static std::size_t states_of(const Segment& segment) noexcept;  // that have not left in whole
  // Drops frames of one segment. Returns true if the segment is empty now.
  static bool drop_from(Segment& segment, std::size_t wanted, Dropped& dropped) noexcept;
  static bool drop_state_from(Segment& segment, Dropped& dropped) noexcept;
  // Calls drop(segment) for each from `from` on, until it has dropped `wanted` bytes or `states` frames of state, and
  // removes those for which it returns true. It returns false for `from`, if that is not the head.
  template <typename Drop>
  Dropped drop_with(Segment* from, std::size_t wanted, std::size_t states, ByteBudget::Share& budget,
                    const Drop& drop) noexcept;

  Segment* head_ = nullptr;
  Segment* tail_ = nullptr;
  std::size_t size_ = 0;
  std::size_t states_ = 0;  // frames of state, one that was begun too
};

}  // namespace weft::serve
