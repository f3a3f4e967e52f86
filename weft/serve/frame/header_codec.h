// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/endian.h"
#include "weft/serve/frame/frame_codec.h"

namespace weft::serve {

// Flags of a frame. The codec passes all eight bits unchanged; both ends agree on their meaning.
inline constexpr std::uint8_t kFlagCompressed = 0x01;  // the body is compressed, with a method that both ends agreed on
inline constexpr std::uint8_t kFlagHeartbeat = 0x02;   // a sign of life, which the receiver does not answer
inline constexpr std::uint8_t kFlagError = 0x04;       // an error response, see error_frame.h
inline constexpr std::uint8_t kFlagAuthCheck = 0x08;   // the receiver shall check the sender's authorisation
inline constexpr std::uint8_t kFlagPush = 0x10;        // the frame answers no request

struct FrameHeader {
  std::uint32_t id = 0;  // names the kind of message
  std::uint8_t flags = 0;
  std::uint32_t number = 0;  // of the request (numbered_codec.h); 0: the frame is neither a request nor an answer

  friend constexpr bool operator==(const FrameHeader&, const FrameHeader&) noexcept = default;
};

// HeaderCodec: messages with an id after a header of 12 bytes, big endian:
//   0 version u8 = 2 | 1 flags u8 | 2 id u32 | 6 body size u32 | 10 reserved u16 = 0
// A FrameCodec. Cost: two loads of eight bytes a frame. A wrong version is refused at its first byte. Errors:
// protocol_error (wrong version, or reserved bytes that are not 0); message_too_large; invalid_argument (a header with
// a request number, for which this format has no place).
class HeaderCodec {
 public:
  using Header = FrameHeader;
  struct Frame {
    FrameHeader header;
    Bytes body;
  };
  static constexpr std::size_t kHeaderSize = 12;
  static constexpr std::size_t kHeaderMax = kHeaderSize;
  static constexpr bool kMoves = true;
  static constexpr std::uint8_t kVersion = 2;

  constexpr HeaderCodec() noexcept = default;
  // A bound above kBodyMax counts as kBodyMax, which is the format's own bound.
  explicit constexpr HeaderCodec(std::size_t body_max) noexcept
      : body_max_(static_cast<std::uint32_t>(std::min(body_max, kBodyMax))) {}

  [[nodiscard]] Decoded<Frame> decode(Bytes input) const noexcept {
    using Outcome = Decoded<Frame>;
    if (input.size() < kHeaderSize) [[unlikely]] {
      return input.empty() || input[0] == kVersion ? Outcome::more(kHeaderSize) : Outcome::refused(kWrongVersion);
    }
    const auto first = load_big_endian<std::uint64_t>(input.data());     // version, flags, id, size's first half
    const auto last = load_big_endian<std::uint64_t>(input.data() + 4);  // id's second half, size, reserved
    const std::size_t body_size = static_cast<std::uint32_t>(last >> 16U);
    if (first >> 56U != kVersion || body_size > body_max_ || (last & 0xFFFFU) != 0) [[unlikely]] {
      return Outcome::refused(first >> 56U != kVersion ? kWrongVersion
                              : body_size > body_max_  ? kTooLarge
                                                       : kReservedInUse);
    }
    if (input.size() - kHeaderSize < body_size) [[unlikely]] {
      return Outcome::more(kHeaderSize + body_size);
    }
    const FrameHeader header{static_cast<std::uint32_t>(first >> 16U), static_cast<std::uint8_t>(first >> 48U)};
    return Outcome::whole({header, input.subspan(kHeaderSize, body_size)}, kHeaderSize + body_size);
  }

  [[nodiscard]] Result<std::size_t> encode_header(const FrameHeader& header, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept {
    if (body.size() > body_max_ || header.number != 0) [[unlikely]] {
      return header.number != 0 ? kNumbered : kTooLarge;
    }
    const auto size = static_cast<std::uint32_t>(body.size());
    store_big_endian(out.data(), std::uint64_t{kVersion} << 56U | std::uint64_t{header.flags} << 48U |
                                     std::uint64_t{header.id} << 16U | size >> 16U);
    store_big_endian(out.data() + 8, size << 16U);
    return kHeaderSize;
  }
  [[nodiscard]] static constexpr Bytes trailer() noexcept { return {}; }
  [[nodiscard]] constexpr std::size_t body_max() const noexcept { return body_max_; }

 private:
  static constexpr Error kWrongVersion{Errc::protocol_error, "the version of a frame is not 2"};
  static constexpr Error kReservedInUse{Errc::protocol_error, "the reserved bytes of a frame are not 0"};
  static constexpr Error kTooLarge{Errc::message_too_large, "the body of a frame"};
  static constexpr Error kNumbered{Errc::invalid_argument, "the header of 12 bytes has no place for a request number"};

  std::uint32_t body_max_ = kBodyMax;
};
static_assert(FrameCodec<HeaderCodec>);

}  // namespace weft::serve
