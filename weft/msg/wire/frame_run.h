// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/zmtp/frame.h"

namespace weft::msg {

// FrameRun: whole messages of short parts, one after the other in a read block, as they came. The reader hands them out
// at once, so that the pipe calls the connection once a run, and no part is copied into a channel.
// Owner: a pipe. Affinity: the receive lock.
// Cost: a few instructions for each message. A run that is not empty holds one reference to the block.
// Invariants:
// 1. The bytes stay in place, whatever the reader does meanwhile.
class FrameRun {
 public:
  static constexpr std::size_t kMax = 32;       // messages; those in a run do not count towards the high-water mark
  static constexpr std::size_t kPartsMax = 64;  // of them together

  FrameRun() noexcept = default;
  FrameRun(const FrameRun&) = delete;
  FrameRun& operator=(const FrameRun&) = delete;
  ~FrameRun() { drop_block(); }

  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  struct Frames {
    std::size_t count = 0;
    std::size_t size = 0;  // in bytes
  };
  // The whole messages of short parts at the front of `input`. `multipart`: else only those of one part.
  [[nodiscard]] static Frames measure(Bytes input, bool multipart) noexcept {
    Frames whole;
    while (whole.count < kMax) {
      const std::size_t frame = zmtp::short_frame_size(input.subspan(whole.size));
      if (frame == 0) {
        break;
      }
      whole.size += frame;
      ++whole.count;
    }
    const bool parts_follow = multipart && whole.count < kMax && whole.size < input.size() && input[whole.size] != 0;
    return parts_follow ? measure_parts(input, whole) : whole;
  }
  // The messages that are left, of which the first may have lost parts.
  [[nodiscard]] std::size_t count() const noexcept {
    return measure({begin_, static_cast<std::size_t>(end_ - begin_)}, true).count;
  }
  // Requires empty(). `frames`: as measure() found them in `block`.
  void assign(mem::Buffer* block, Bytes frames) noexcept {
    block->add_reference();
    block_ = block;
    begin_ = frames.data();
    end_ = begin_ + frames.size();
  }

  // The first part, and whether its message has more. Requires !empty().
  [[nodiscard]] Bytes front() const noexcept { return {begin_ + zmtp::kFrameHeaderSizeMin, begin_[1]}; }
  [[nodiscard]] bool more() const noexcept { return begin_[0] != 0; }
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

  // Goes on after `whole`, which are of one part each.
  [[nodiscard]] static Frames measure_parts(Bytes input, Frames whole) noexcept {
    std::size_t size = whole.size;
    for (std::size_t parts = whole.count; whole.count < kMax && parts < kPartsMax; ++parts) {
      const std::size_t frame = zmtp::short_frame_size(input.subspan(size), zmtp::kMore);
      if (frame == 0) {
        break;
      }
      const bool ends_message = input[size] == 0;
      size += frame;
      if (ends_message) {
        whole = {whole.count + 1, size};
      }
    }
    return whole;
  }

  const std::uint8_t* begin_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  mem::Buffer* block_ = nullptr;
};

}  // namespace weft::msg
