// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/msg/wire/frame_run.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/frame_v1.h"
#include "weft/zmtp/mechanism.h"

namespace weft::msg {

// MessageReader: the bytes of a connection that were read but not taken yet, and the frames in them.
// Owner: the connection. Affinity: the holder of the read baton.
// Cost: one system call reads up to kBlockSize. Frames are parsed in place. A frame of kBigFrame bytes and more is read
// straight into a buffer of its own. An idle reader holds no block; with part of a small frame, it holds a small block.
// Invariants:
// 1. A size that the peer claims never sizes an allocation by itself: a big frame's buffer grows as its bytes arrive.
// 2. Bytes that a view shows stay in place until consume() or fill(); for a holder of the block, until it releases it.
class MessageReader {
 public:
  static constexpr std::size_t kBlockSize = 256 * 1024;
  static constexpr std::size_t kBigFrame = 128 * 1024;
  static constexpr std::size_t kBigFirst = 1024 * 1024;
  static constexpr std::size_t kBehindBig = 8 * 1024;      // read after a big frame; a next big frame's part is copied
  static constexpr std::size_t kBigReadMax = 1024 * 1024;  // of a big frame in one read, so that one read is short
  static constexpr std::size_t kSharedMin = 32 * 1024;     // a block that holds less is not worth pinning: see Frame
  static constexpr std::size_t kSettleMax = 32 * 1024;     // settle() copies so many unparsed bytes out of a block
  static constexpr std::size_t kRawMax = 8192;  // of one raw message; libzmq's limit, by which programs size buffers

  MessageReader() = default;
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;
  ~MessageReader() { reset(); }
  void reset() noexcept;

  struct Frame {
    zmtp::ZmtpFrameHeader header;
    Bytes body;
    // `body` lies in it. Null for raw bytes, and while fewer than kSharedMin bytes were read into the block: a caller
    // that keeps the body copies it. So a peer pins at most 8 times the bytes that it sent.
    mem::Buffer* block = nullptr;
  };
  enum class Step : std::uint8_t { frame, header_only, need_more, malformed, forged };
  // The first frame. header_only: the header is known but the body is not complete. With a cipher, the reader decrypts
  // the frame in place and shows the frame inside. forged: the cipher refused the frame.
  [[nodiscard]] Step look(Frame& frame) noexcept;
  [[nodiscard]] zmtp::Breach breach() const noexcept { return breach_; }  // after forged: the reason
  void consume() noexcept;                                                // after look() gave a frame
  // The common case, in few steps: whole messages of short ZMTP 3 frames, in the clear, go into `run`, which was empty.
  // Returns how many. 0: the first message is not one of these; call look(). `multipart`: as in FrameRun::measure().
  [[nodiscard]] std::size_t take_run(FrameRun& run, bool multipart) noexcept {
    if (begin_ == end_ || big_ != nullptr || recodes_) {
      return 0;
    }
    const Bytes input(block_->data() + begin_, end_ - begin_);
    const FrameRun::Frames frames = FrameRun::measure(input, multipart);
    if (frames.count != 0) {
      run.assign(block_, input.first(frames.size));
      begin_ += frames.size;
    }
    return frames.count;
  }
  // For the connection at hand. Without framing, look() shows the bytes in pieces, each without a block to share.
  void set_cipher(zmtp::Mechanism* cipher, zmtp::Framing framing = zmtp::Framing::v3) noexcept;
  // For a header_only frame: the header of the frame inside, as far as the outer header says it.
  [[nodiscard]] zmtp::ZmtpFrameHeader inner_header(const zmtp::ZmtpFrameHeader& header) const noexcept;

  // Everything that was read and not taken. The handshake parses it.
  [[nodiscard]] Bytes unparsed() const noexcept;
  void consume_bytes(std::size_t size) noexcept { begin_ += size; }

  // One read. `header`: that of an incomplete first frame, or null. Without memory the status is failed, with ENOMEM.
  // `drained` afterwards: the read failed or took less than its room, so the kernel has no more bytes for now.
  // `most`: of bytes into the block.
  [[nodiscard]] sys::IoResult fill(net::ByteStream& stream, const zmtp::ZmtpFrameHeader* header, bool& drained,
                                   std::size_t most = kBlockSize) noexcept;
  void settle() noexcept;  // when there is nothing to read: keeps only the memory that the unparsed bytes need
  [[nodiscard]] bool inside_big() const noexcept { return big_ != nullptr; }
  [[nodiscard]] std::size_t big_filled() const noexcept { return big_filled_; }  // bytes of its body; inside_big()
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_ && big_ == nullptr; }

 private:
  [[nodiscard]] Step find_body(Frame& frame, Bytes input, ParseStatus status) noexcept;
  [[nodiscard]] Step find_recoded_frame(Frame& frame, Bytes input) noexcept;
  [[nodiscard]] Step open(Frame& frame, std::uint8_t* body) noexcept;
  [[nodiscard]] bool prepare_block() noexcept;
  [[nodiscard]] bool begin_big(const zmtp::ZmtpFrameHeader& header) noexcept;
  [[nodiscard]] bool grow_big() noexcept;
  void drop_block() noexcept;

  zmtp::Mechanism* cipher_ = nullptr;
  zmtp::Framing framing_ = zmtp::Framing::v3;
  bool recodes_ = false;  // as in the MessageWriter
  bool opened_ = false;   // the first frame was opened already
  std::uint8_t opened_flags_ = 0;
  zmtp::Breach breach_ = zmtp::Breach::none;
  mem::Buffer* block_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t frame_size_ = 0;  // of the frame that look() gave, in the block

  mem::Buffer* big_ = nullptr;  // body of the first frame, when it is big
  zmtp::ZmtpFrameHeader big_header_;
  std::size_t big_filled_ = 0;
  bool after_big_ = false;  // nothing was read since a big frame was consumed: the next frame is likely big too
};

}  // namespace weft::msg
