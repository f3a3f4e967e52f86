// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/bytes.h"
#include "weft/mem/buffer.h"
#include "weft/msg/wire/frame_run.h"
#include "weft/net/stream.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/frame_v1.h"
#include "weft/zmtp/mechanism.h"

namespace weft::msg {

// Reader: the bytes of a connection that were read but not taken yet, and the frames in them.
// Owner: the connection. Affinity: the holder of the read baton.
// Cost: one system call reads up to kBlockSize; frames are looked at in place. A frame of kBigFrame and more is read
// straight into a buffer of its own. An idle reader holds no block, one with part of a small frame a small block.
// Invariants:
//   (1) A size that the peer claims never sizes an allocation by itself: a big frame's buffer grows as its bytes
//   arrive. (2) Bytes that a view shows stay in place until consume() or a fill(), and longer for who holds the block.
class Reader {
 public:
  static constexpr std::size_t kBlockSize = 256 * 1024;
  static constexpr std::size_t kBigFrame = 128 * 1024;
  static constexpr std::size_t kBigFirst = 1024 * 1024;
  static constexpr std::size_t kBehindBig = 8 * 1024;  // read behind a big frame: of another one it would be copied
  static constexpr std::size_t kRawMax = 8192;  // of one raw message; libzmq's, on which programs size their buffers

  Reader() = default;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { reset(); }
  void reset() noexcept;

  struct Frame {
    zmtp::FrameHeader header;
    Bytes body;
    mem::Buffer* block = nullptr;  // what `body` lies in
  };
  enum class Step : std::uint8_t { frame, header_only, need_more, malformed, forged };
  // The first frame. header_only: the header is known but the body is not complete. With a cipher a frame is opened
  // where it lies and shown as what was in it; forged: it cannot be opened.
  [[nodiscard]] Step look(Frame& frame) noexcept;
  [[nodiscard]] zmtp::Breach breach() const noexcept { return breach_; }  // after forged: why
  void consume() noexcept;                                                // after look() gave a frame
  // The common case, in few steps: whole short frames in the clear and of ZMTP 3, of messages of one part, go into
  // `run`, which was empty. False: there is none at the front, see look().
  [[nodiscard]] bool take_run(FrameRun& run) noexcept {
    if (begin_ == end_ || big_ != nullptr || recodes_) {
      return false;
    }
    const Bytes input(block_->data() + begin_, end_ - begin_);
    const std::size_t size = FrameRun::measure(input);
    if (size == 0) {
      return false;
    }
    run.assign(block_, input.first(size));
    begin_ += size;
    return true;
  }
  // For the connection at hand. Without framing, what was read is shown in pieces, each without a block to share.
  void set_cipher(zmtp::Mechanism* cipher, zmtp::Framing framing = zmtp::Framing::v3) noexcept;
  // Of a header_only frame: the header as far as it is known of what is inside.
  [[nodiscard]] zmtp::FrameHeader inner_header(const zmtp::FrameHeader& header) const noexcept;

  // What the handshake sees: everything that was read and not taken.
  [[nodiscard]] Bytes unparsed() const noexcept;
  void consume_bytes(std::size_t size) noexcept { begin_ += size; }

  // One read. `header` is that of an incomplete first frame, or null. resource_exhausted shows as status failed,
  // ENOMEM. `drained` afterwards: the read took less than there was room for, so nothing is left for now.
  [[nodiscard]] sys::IoResult fill(net::Stream& stream, const zmtp::FrameHeader* header, bool& drained) noexcept;
  void settle() noexcept;  // nothing to read for now: hold no more memory than what is there needs
  [[nodiscard]] bool inside_big() const noexcept { return big_ != nullptr; }
  [[nodiscard]] std::size_t big_filled() const noexcept { return big_filled_; }  // of it, when inside_big()
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_ && big_ == nullptr; }

 private:
  [[nodiscard]] Step look_at_body(Frame& frame, Bytes input, zmtp::ParseStatus status) noexcept;
  [[nodiscard]] Step look_recoded(Frame& frame, Bytes input) noexcept;
  [[nodiscard]] Step open(Frame& frame, std::uint8_t* body) noexcept;
  [[nodiscard]] bool prepare_block() noexcept;
  [[nodiscard]] bool begin_big(const zmtp::FrameHeader& header) noexcept;
  [[nodiscard]] bool grow_big() noexcept;
  void drop_block() noexcept;

  zmtp::Mechanism* cipher_ = nullptr;
  zmtp::Framing framing_ = zmtp::Framing::v3;
  bool recodes_ = false;  // as in the Writer
  bool opened_ = false;   // the first frame was opened already
  std::uint8_t opened_flags_ = 0;
  zmtp::Breach breach_ = zmtp::Breach::none;
  bool raw_ = false;
  bool unusual_ = false;  // raw_, or there is a big frame
  mem::Buffer* block_ = nullptr;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t frame_size_ = 0;  // of the frame that look() gave, in the block

  mem::Buffer* big_ = nullptr;  // body of the first frame, when it is big
  zmtp::FrameHeader big_header_;
  std::size_t big_filled_ = 0;
  bool after_big_ = false;  // nothing was read since a big frame was consumed: what comes is likely another
};

}  // namespace weft::msg
