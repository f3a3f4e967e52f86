// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/msg/message/part.h"
#include "weft/net/stream.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/frame_v1.h"
#include "weft/zmtp/mechanism.h"

namespace weft::msg {

// Writer: the encoded bytes of a connection that the kernel has not taken yet.
// Owner: the connection. Affinity: the holder of the write baton.
// Cost: a part is copied once behind its frame header; parts of kBigPart and more are written from where they lie.
// Invariants:
//   (1) The block is rewound only when it is empty; whether it then begins inside a message is remembered.
//   (2) At most one big part is pending, behind everything in the block; nothing is encoded behind it.
//   (3) With a cipher everything in the block and the big part is sealed, in the order in which it goes out.
//   (4) The batch limit grows from kBatchMin to kBatchMax while batches fill up, and falls back when the writer rests.
class Writer {
 public:
  static constexpr std::size_t kBatchMin = 8 * 1024;
  static constexpr std::size_t kBatchMax = 256 * 1024;
  static constexpr std::size_t kBigPart = 32 * 1024;

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { reset(); }

  // `cipher`: null, or what seals each frame. What was kept for this connection is cut into frames as it has it.
  void open(net::Stream* stream, zmtp::Mechanism* cipher = nullptr, zmtp::Framing framing = zmtp::Framing::v3) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return stream_ != nullptr; }
  // The connection is gone. With `keep`, whole messages of which nothing was sent stay for the next connection, unless
  // they were sealed or cut into frames for this one alone.
  void close(bool keep) noexcept;

  [[nodiscard]] bool blocked() const noexcept { return blocked_; }  // the kernel took no more, or the stream failed
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_ && big_ == nullptr; }
  [[nodiscard]] std::size_t pending() const noexcept { return end_ - begin_ + big_rest_.size(); }
  [[nodiscard]] bool full() const noexcept { return pending() >= limit_; }
  // The last message that was begun lacks parts.
  [[nodiscard]] bool inside_message() const noexcept { return inside_message_; }

  [[nodiscard]] bool seals() const noexcept { return cipher_ != nullptr; }
  // What a frame takes besides its body, at most.
  [[nodiscard]] std::size_t frame_overhead() const noexcept { return overhead_; }

  // Whether a part of `size` bytes can be appended now; makes or enlarges an empty block if need be.
  [[nodiscard]] bool prepare(std::size_t size) noexcept;
  // The common case, in few steps: a small single-part message behind others in a batch. False: see prepare().
  [[nodiscard]] bool append_in_flow(Bytes body) noexcept {
    if (begin_ == end_ || blocked_ || inside_message_ || big_ != nullptr || recodes_ ||
        body.size() > zmtp::kShortBodyMax || block_->capacity() - end_ < body.size() + zmtp::kFrameHeaderSizeMin) {
      return false;
    }
    end_ += zmtp::write_short_frame(block_->data() + end_, body);
    return true;
  }
  // Requires prepare(). `flags` as in zmtp::write_frame_header.
  void append(std::uint8_t flags, Bytes body) noexcept;
  // Frames already encoded, in the clear; requires prepare(raw_size(frames)).
  [[nodiscard]] std::size_t raw_size(Bytes frames) const noexcept;
  void append_raw(Bytes frames) noexcept;
  // A part of kBigPart and more; adopts one reference to `buffer`. Requires prepare(0). flush() next.
  void append_big(std::uint8_t flags, mem::Buffer* buffer, Bytes body) noexcept;
  // The same when seals(), from bytes that stay whose they are. False when memory ran out.
  [[nodiscard]] bool seal_big(std::uint8_t flags, Bytes body) noexcept;

  // The same for bytes that belong to somebody else, who lends them until keep_rest(); flush() between the two writes
  // from where they lie. False when memory ran out, and nothing is changed. Requires prepare(0).
  [[nodiscard]] bool lend_big(std::uint8_t flags, Bytes body) noexcept;
  void keep_rest() noexcept;  // copies what was lent and is not out

  // Writes until everything is out or the kernel takes no more.
  void flush() noexcept;
  // Requires empty(). Writes one small part without copying it, if the kernel takes it whole; else keeps the rest.
  void write_through(std::uint8_t flags, Bytes body) noexcept;

  void grow_limit() noexcept { limit_ = limit_ < kBatchMax ? limit_ * 2 : kBatchMax; }
  void rest() noexcept;  // gives the block back, if empty, and starts small again
  void reset() noexcept;

  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }  // bytes that the kernel took, ever

 private:
  void handle(const sys::IoResult& result) noexcept;
  void advance(std::size_t bytes) noexcept;
  void drop_big() noexcept;
  void note_part(std::uint8_t flags) noexcept;
  void append_recoded(std::uint8_t flags, Bytes body) noexcept;
  void recode_kept() noexcept;

  net::Stream* stream_ = nullptr;
  zmtp::Mechanism* cipher_ = nullptr;
  std::size_t overhead_ = zmtp::kFrameHeaderSizeMax;
  mem::Buffer* block_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t limit_ = kBatchMin;
  mem::Buffer* big_ = nullptr;
  Bytes big_rest_;
  std::uint64_t written_ = 0;
  bool lent_ = false;  // big_rest_ is somebody else's, and `big_` has room for it
  bool inside_message_ = false;
  bool begins_inside_ = false;  // the block begins with a later part of a message
  bool blocked_ = false;
  bool failed_ = false;
  zmtp::Framing framing_ = zmtp::Framing::v3;
  bool recodes_ = false;  // a cipher, or another framing than that of ZMTP 3: whatever is not the common case
};

}  // namespace weft::msg
