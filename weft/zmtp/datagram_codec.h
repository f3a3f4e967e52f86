// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/bytes.h"
#include "weft/zmtp/frame.h"

namespace weft::zmtp {

// A datagram of a RADIO is the length of a group (1 byte), the group, and the body. It stands for a message of two
// parts. A datagram of DGRAM is the body alone; the first part of the message is the other end's address.

// IncomingFrames: a datagram as the ZMTP 3 frames of its message.
// Owner: a stream. Affinity: the reader. Cost: a copy of the datagram, by the reader's take().
// Invariant: each put() gives bytes. A datagram that is not a message becomes an empty part alone, which the socket
// drops and counts as an unexpected message.
class IncomingFrames {
 public:
  // Both require empty(); `body` stays valid until empty(). A part of more than `part_max` bytes makes the datagram no
  // message.
  void put_grouped(Bytes datagram, std::uint64_t part_max) noexcept;
  void put_addressed(Bytes address, Bytes body, std::uint64_t part_max) noexcept;
  void put_malformed() noexcept;

  [[nodiscard]] bool empty() const noexcept { return at_ == size_ && body_.empty(); }
  [[nodiscard]] std::size_t take(MutableBytes into) noexcept;  // copies the next bytes; returns how many

 private:
  static constexpr std::size_t kHeadMax = kShortBodyMax;

  void put(Bytes head, Bytes body, std::uint64_t part_max) noexcept;

  std::array<std::uint8_t, kFrameHeaderSizeMin + kHeadMax + kFrameHeaderSizeMax> prefix_;
  std::size_t at_ = 0;
  std::size_t size_ = 0;  // of the frame of the first part, and the header of the second
  Bytes body_;
};

// OutgoingFrames: the frames in the bytes that a Writer writes.
// Owner: a call, on its stack.
// Requires: the bytes are whole frames, and a body that does not follow its header begins a span.
class OutgoingFrames {
 public:
  explicit OutgoingFrames(std::span<const Bytes> from) noexcept : from_(from) {}

  struct Frame {
    ZmtpFrameHeader header;
    Bytes header_and_body;  // if they follow each other
    Bytes body;
  };
  [[nodiscard]] bool next(Frame& frame) noexcept;                      // false: none is left
  [[nodiscard]] std::size_t taken() const noexcept { return taken_; }  // bytes of the frames so far

 private:
  std::span<const Bytes> from_;
  std::size_t at_ = 0;  // in the first span
  std::size_t taken_ = 0;
};

}  // namespace weft::zmtp
