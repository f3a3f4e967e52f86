// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/zmtp/frame.h"

namespace weft::msg {

// FrameRun: whole messages of one short part each, one behind the other in a read block, as they came. The reader hands
// them out at once, so that the pipe calls the connection once a run.
// Owner: a pipe. Affinity: the receive lock.
// Cost: a few instructions for each message. A run that is not empty holds one reference to the block.
// Invariants:
// 1. The bytes stay in place, whatever the reader does meanwhile.
class FrameRun {
 public:
  static constexpr std::size_t kMax = 32;  // messages; those in a run do not count towards the high-water mark

  FrameRun() noexcept = default;
  FrameRun(const FrameRun&) = delete;
  FrameRun& operator=(const FrameRun&) = delete;
  ~FrameRun() { drop_block(); }

  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  struct Frames {
    std::size_t count = 0;
    std::size_t size = 0;  // in bytes
  };
  // The whole short frames of one-part messages at the front of `input`, at most kMax frames.
  [[nodiscard]] static Frames measure(Bytes input) noexcept {
    Frames frames;
    while (frames.count < kMax) {
      const std::size_t frame = zmtp::short_frame_size(input.subspan(frames.size));
      if (frame == 0) {
        break;
      }
      frames.size += frame;
      ++frames.count;
    }
    return frames;
  }
  // The messages that are left.
  [[nodiscard]] std::size_t count() const noexcept {
    return measure({begin_, static_cast<std::size_t>(end_ - begin_)}).count;
  }
  // Requires empty(). `frames`: as measure() found them in `block`.
  void assign(mem::Buffer* block, Bytes frames) noexcept {
    block->add_reference();
    block_ = block;
    begin_ = frames.data();
    end_ = begin_ + frames.size();
  }

  // The first message. Requires !empty().
  [[nodiscard]] Bytes front() const noexcept { return {begin_ + zmtp::kFrameHeaderSizeMin, begin_[1]}; }
  void pop() noexcept {
    begin_ += zmtp::kFrameHeaderSizeMin + begin_[1];
    if (begin_ == end_) [[unlikely]] {
      drop_block();
    }
  }

 private:
  void drop_block() noexcept {
    if (block_ != nullptr) {
      block_->release();
      block_ = nullptr;
    }
  }

  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  mem::Buffer* block_ = nullptr;
};

}  // namespace weft::msg
