// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/msg/message/part.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/frame_v1.h"
#include "weft/zmtp/mechanism.h"

namespace weft::msg {

// MessageWriter: the encoded bytes of a connection that the kernel has not taken yet.
// Owner: the connection. Affinity: the holder of the write baton.
// Cost: a part is copied once after its frame header. Parts of kBigPart bytes and more are written in place.
// Invariants:
// 1. The block is rewound only when it is empty; `begins_inside_` keeps whether it then begins inside a message.
// 2. At most one big part is pending, after everything in the block; nothing is encoded after it.
// 3. With a cipher, everything in the block and the big part is sealed, in the order in which it goes out.
// 4. appended = sent + lost + pending, in whole messages. A message counts as sent when the kernel has all of it. The
//    MessageWriter finds that when the block is empty, and in close().
// 5. The batch limit grows from kBatchMin to kBatchMax while batches fill up, and falls back when the writer rests.
class MessageWriter {
 public:
  static constexpr std::size_t kBatchMin = 8 * 1024;
  static constexpr std::size_t kBatchMax = 256 * 1024;
  static constexpr std::size_t kBigPart = 32 * 1024;

  // `subscribes`: a frame of one part that begins with 0 or 1 is a subscription, as old peers take it, and no message.
  explicit MessageWriter(bool subscribes = false) noexcept : subscribes_(subscribes) {}
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;
  ~MessageWriter() { reset(); }

  // `cipher` seals each frame, unless it is null. Messages that close() kept are encoded again in this framing. Returns
  // how many of those are lost because memory ran out.
  std::uint64_t open(net::ByteStream* stream, zmtp::Mechanism* cipher = nullptr,
                     zmtp::Framing framing = zmtp::Framing::v3) noexcept;
  [[nodiscard]] bool is_open() const noexcept { return stream_ != nullptr; }
  // The connection is gone. With `keep`, whole messages of which nothing was sent stay for the next connection. Sealed
  // messages, and those in another framing than that of ZMTP 3, are never kept. Returns how many messages are lost,
  // with the one that lacks parts.
  std::uint64_t close(bool keep) noexcept;

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
  // The common case, in few steps: a small one-part message after others in a batch. If it returns false, call
  // prepare().
  [[nodiscard]] bool append_in_flow(Bytes body) noexcept {
    if (begin_ == end_ || blocked_ || inside_message_ || big_ != nullptr || recodes_ ||
        body.size() > zmtp::kShortBodyMax || block_->capacity() - end_ < body.size() + zmtp::kFrameHeaderSizeMin) {
      return false;
    }
    end_ += zmtp::write_short_frame(block_->data() + end_, body);
    count_appended();
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
  // Requires empty(). Writes one small part without a copy, if the kernel takes all of it; otherwise keeps the rest.
  void write_through(std::uint8_t flags, Bytes body) noexcept;

  void grow_limit(std::size_t most = kBatchMax) noexcept { limit_ = std::min({limit_ * 2, most, kBatchMax}); }
  void rest() noexcept;  // releases the block, if empty, and sets the batch limit back to kBatchMin
  void reset() noexcept;

  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }  // bytes that the kernel took, ever

  // Any thread: whole messages, ever. Relaxed, because the counts order nothing.
  [[nodiscard]] std::uint64_t appended() const noexcept { return appended_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t pending_messages() const noexcept {
    const std::uint64_t gone = sent() + lost_.load(std::memory_order_relaxed);
    const std::uint64_t all = appended();
    return all > gone ? all - gone : 0;
  }

 private:
  // Whole messages among those in the batch.
  struct Split {
    std::uint64_t sent = 0;
    std::uint64_t kept = 0;
  };
  void handle(const sys::IoResult& result) noexcept;
  void advance(std::size_t bytes) noexcept;
  void drop_big() noexcept;
  void note_part(std::uint8_t flags) noexcept;
  void append_recoded(std::uint8_t flags, Bytes body) noexcept;
  [[nodiscard]] std::uint64_t recode_kept() noexcept;
  [[nodiscard]] Split split_batch(bool keep) noexcept;
  [[nodiscard]] std::uint64_t count_sent_ends() const noexcept;
  [[nodiscard]] bool reserve_ends(std::uint64_t count) noexcept;
  void note_end() noexcept;
  void rewind() noexcept;  // the block is empty
  // With the baton only, like the next.
  static void add(std::atomic<std::uint64_t>& count, std::uint64_t messages) noexcept {
    count.store(count.load(std::memory_order_relaxed) + messages, std::memory_order_relaxed);
  }
  void count_appended() noexcept { add(appended_, 1); }

  net::ByteStream* stream_ = nullptr;
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
  const bool subscribes_;
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> lost_{0};
  mem::Buffer* ends_ = nullptr;  // if recodes_: the places in the block where messages end, std::uint32_t each
  std::uint32_t end_count_ = 0;
};

}  // namespace weft::msg
