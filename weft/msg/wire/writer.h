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
// Cost: a part is copied once behind its frame header. Parts of kBigPart bytes and more are written in place.
// Invariants:
// 1. The block is rewound only when it is empty; `begins_inside_` keeps whether it then begins inside a message.
// 2. At most one big part is pending, behind everything in the block; nothing is encoded behind it.
// 3. With a cipher, everything in the block and the big part is sealed, in the order in which it goes out.
// 4. The batch limit grows from kBatchMin to kBatchMax while batches fill up, and falls back when the writer rests.
class Writer {
 public:
  static constexpr std::size_t kBatchMin = 8 * 1024;
  static constexpr std::size_t kBatchMax = 256 * 1024;
  static constexpr std::size_t kBigPart = 32 * 1024;

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { reset(); }

  // `cipher` seals each frame, unless it is null. Messages that close() kept are encoded again in this framing.
  void open(net::Stream* stream, zmtp::Mechanism* cipher = nullptr, zmtp::Framing framing = zmtp::Framing::v3) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return stream_ != nullptr; }
  // The connection is gone. With `keep`, whole messages of which nothing was sent stay for the next connection. Sealed
  // messages, and those in another framing than that of ZMTP 3, are never kept.
  void close(bool keep) noexcept;

  [[nodiscard]] bool blocked() const noexcept { return blocked_; }  // the kernel took no more, or the stream failed
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_ && big_ == nullptr; }
  [[nodiscard]] std::size_t pending() const noexcept { return end_ - begin_ + big_rest_.size(); }
  [[nodiscard]] bool full() const noexcept { return pending() >= limit_; }
  // The message that was begun last lacks parts.
  [[nodiscard]] bool inside_message() const noexcept { return inside_message_; }

  [[nodiscard]] bool seals() const noexcept { return cipher_ != nullptr; }
  // The most bytes that a frame takes besides its body.
  [[nodiscard]] std::size_t frame_overhead() const noexcept { return overhead_; }

  // Whether a part of `size` bytes can be appended now. Makes a block, or exchanges an empty one that is too small.
  [[nodiscard]] bool prepare(std::size_t size) noexcept;
  // The common case, in few steps: a small one-part message behind others in a batch. False: call prepare().
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
  // `frames`: encoded already as ZMTP 3, in the clear. append_raw() requires prepare(raw_size(frames)).
  [[nodiscard]] std::size_t raw_size(Bytes frames) const noexcept;
  void append_raw(Bytes frames) noexcept;
  // A part of kBigPart bytes and more; adopts one reference to `buffer`. Requires prepare(0). Call flush() next.
  void append_big(std::uint8_t flags, mem::Buffer* buffer, Bytes body) noexcept;
  // The same when seals(): seals a copy, and the caller keeps `body`. False when memory ran out.
  [[nodiscard]] bool seal_big(std::uint8_t flags, Bytes body) noexcept;

  // The same for bytes that the caller lends until keep_rest(). A flush() before keep_rest() writes them in place.
  // False when memory ran out, with nothing changed. Requires prepare(0).
  [[nodiscard]] bool lend_big(std::uint8_t flags, Bytes body) noexcept;
  void keep_rest() noexcept;  // copies the lent bytes that the kernel has not taken

  // Writes until the kernel has taken everything or takes no more.
  void flush() noexcept;
  // Requires empty(). Writes one small part without a copy, if the kernel takes all of it; else keeps the rest.
  void write_through(std::uint8_t flags, Bytes body) noexcept;

  void grow_limit() noexcept { limit_ = limit_ < kBatchMax ? limit_ * 2 : kBatchMax; }
  void rest() noexcept;  // releases the block, if empty, and sets the batch limit back to kBatchMin
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
  bool lent_ = false;  // big_rest_ belongs to the caller, and big_ has room for it
  bool inside_message_ = false;
  bool begins_inside_ = false;  // the block begins with a later part of a message
  bool blocked_ = false;
  bool failed_ = false;
  zmtp::Framing framing_ = zmtp::Framing::v3;
  bool recodes_ = false;  // not the common case: a cipher, or another framing than that of ZMTP 3
};

}  // namespace weft::msg
