// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/endian.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/frame/request_number.h"

namespace weft::serve {

// NumberedCodec: messages with an id and a request number after a header of 16 bytes, big endian:
//   0 version u8 = 3 | 1 flags u8 | 2 reserved u16 = 0 | 4 id u32 | 8 number u32 | 12 body size u32
// A client numbers its requests, and the answer has the number of its request. So answers may leave in any order, and
// the client never takes a frame without a number for an answer. A service answers with `frame.header`; a frame without
// a request has number
// 0. The frames are those of HeaderCodec, with the number, so that a Dispatcher serves both.
// A FrameCodec. Cost: two loads of eight bytes a frame. A wrong version is refused at its first byte. Errors:
// protocol_error (wrong version, or reserved bytes that are not 0); message_too_large.
class NumberedCodec {
 public:
  using Header = FrameHeader;
  using Frame = HeaderCodec::Frame;
  using Correlation = RequestNumber<&FrameHeader::number>;
  static constexpr std::size_t kHeaderSize = 16;
  static constexpr std::size_t kHeaderMax = kHeaderSize;
  static constexpr bool kMoves = true;
  static constexpr std::uint8_t kVersion = 3;

  constexpr NumberedCodec() noexcept = default;
  // A bound above kBodyMax counts as kBodyMax, which is the format's own bound.
  explicit constexpr NumberedCodec(std::size_t body_max) noexcept
      : body_max_(static_cast<std::uint32_t>(std::min(body_max, kBodyMax))) {}

  [[nodiscard]] Decoded<Frame> decode(Bytes input) const noexcept {
    using Outcome = Decoded<Frame>;
    if (input.size() < kHeaderSize) [[unlikely]] {
      return input.empty() || input[0] == kVersion ? Outcome::more(kHeaderSize) : Outcome::refused(kWrongVersion);
    }
    const auto first = load_big_endian<std::uint64_t>(input.data());     // version, flags, reserved, id
    const auto last = load_big_endian<std::uint64_t>(input.data() + 8);  // number, size
    const std::size_t body_size = static_cast<std::uint32_t>(last);
    if (first >> 56U != kVersion || body_size > body_max_ || (first >> 32U & 0xFFFFU) != 0) [[unlikely]] {
      return Outcome::refused(first >> 56U != kVersion ? kWrongVersion
                              : body_size > body_max_  ? kTooLarge
                                                       : kReservedInUse);
    }
    if (input.size() - kHeaderSize < body_size) [[unlikely]] {
      return Outcome::more(kHeaderSize + body_size);
    }
    const FrameHeader header{static_cast<std::uint32_t>(first), static_cast<std::uint8_t>(first >> 48U),
                             static_cast<std::uint32_t>(last >> 32U)};
    return Outcome::whole({header, input.subspan(kHeaderSize, body_size)}, kHeaderSize + body_size);
  }

  [[nodiscard]] Result<std::size_t> encode_header(const FrameHeader& header, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept {
    if (body.size() > body_max_) [[unlikely]] {
      return kTooLarge;
    }
    store_big_endian(out.data(), std::uint64_t{kVersion} << 56U | std::uint64_t{header.flags} << 48U | header.id);
    store_big_endian(out.data() + 8, std::uint64_t{header.number} << 32U | static_cast<std::uint32_t>(body.size()));
    return kHeaderSize;
  }
  [[nodiscard]] static constexpr Bytes trailer() noexcept { return {}; }
  [[nodiscard]] constexpr std::size_t body_max() const noexcept { return body_max_; }

 private:
  static constexpr Error kWrongVersion{Errc::protocol_error, "the version of a frame is not 3"};
  static constexpr Error kReservedInUse{Errc::protocol_error, "the reserved bytes of a frame are not 0"};
  static constexpr Error kTooLarge{Errc::message_too_large, "the body of a frame"};

  std::uint32_t body_max_ = kBodyMax;
};
static_assert(FrameCodec<NumberedCodec> && kNumbersRequests<NumberedCodec>);

}  // namespace weft::serve
