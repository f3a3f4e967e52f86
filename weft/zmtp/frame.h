// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/base/endian.h"

namespace weft::zmtp {

// ZMTP 3 framing (RFC 23 "framing"): one flags byte, a size of 1 or 8 bytes (big endian), the body.
inline constexpr std::uint8_t kMore = 0x01;     // another part of the same message follows; messages only
inline constexpr std::uint8_t kLong = 0x02;     // the size takes 8 bytes
inline constexpr std::uint8_t kCommand = 0x04;  // the body is a command
inline constexpr std::size_t kFrameHeaderSizeMin = 2;
inline constexpr std::size_t kShortBodyMax = 255;  // longer bodies have a header of kFrameHeaderSizeMax
inline constexpr std::size_t kFrameHeaderSizeMax = 9;
inline constexpr std::uint64_t kFrameBodySizeMax = INT64_MAX;  // the wire size has 63 bits

// The content of one frame header. `flags` are the wire's, kLong included; `header_size` is 2 or 9.
struct ZmtpFrameHeader {
  std::uint8_t flags = 0;
  std::uint8_t header_size = 0;
  std::uint64_t body_size = 0;
};

// Reads the header at the front of `input`. Malformed: a reserved flag bit, kCommand with kMore, a size of
// 2^63 or more. Bad flags are reported from the first byte on. `out` is written only when complete. Both size
// forms are valid for any size. Cost: a few branches.
[[nodiscard]] inline ParseStatus parse_frame_header(Bytes input, ZmtpFrameHeader& out) noexcept {
  if (input.empty()) {
    return ParseStatus::need_more;
  }
  const std::uint8_t flags = input[0];
  if (flags > (kMore | kLong | kCommand) || (flags & (kMore | kCommand)) == (kMore | kCommand)) [[unlikely]] {
    return ParseStatus::malformed;
  }
  if ((flags & kLong) == 0) [[likely]] {
    if (input.size() < kFrameHeaderSizeMin) [[unlikely]] {
      return ParseStatus::need_more;
    }
    out = {flags, std::uint8_t{kFrameHeaderSizeMin}, input[1]};
    return ParseStatus::complete;
  }
  if (input.size() < kFrameHeaderSizeMax) [[unlikely]] {
    return ParseStatus::need_more;
  }
  const std::uint64_t body_size = load_big_endian<std::uint64_t>(input.data() + 1);
  if (body_size > kFrameBodySizeMax) [[unlikely]] {
    return ParseStatus::malformed;
  }
  out = {flags, std::uint8_t{kFrameHeaderSizeMax}, body_size};
  return ParseStatus::complete;
}

[[nodiscard]] inline std::size_t frame_header_size(std::uint64_t body_size) noexcept {
  return body_size <= kShortBodyMax ? kFrameHeaderSizeMin : kFrameHeaderSizeMax;
}

// Writes the shortest header for `body_size` and returns its size. `to` has room for kFrameHeaderSizeMax or
// for frame_header_size(body_size). `flags` is 0, kMore or kCommand; the function sets kLong.
inline std::size_t write_frame_header(std::uint8_t* to, std::uint8_t flags, std::uint64_t body_size) noexcept {
  WEFT_DCHECK((flags == 0 || flags == kMore || flags == kCommand) && body_size <= kFrameBodySizeMax);
  if (body_size <= kShortBodyMax) [[likely]] {
    to[0] = flags;
    to[1] = static_cast<std::uint8_t>(body_size);
    return kFrameHeaderSizeMin;
  }
  to[0] = static_cast<std::uint8_t>(flags | kLong);
  store_big_endian<std::uint64_t>(to + 1, body_size);
  return kFrameHeaderSizeMax;
}

// The size of the frame at the front of `input`, if that is a whole short frame with no flags but of `allowed`;
// otherwise 0.
[[nodiscard]] inline std::size_t short_frame_size(Bytes input, std::uint8_t allowed = 0) noexcept {
  if (input.size() < kFrameHeaderSizeMin || (input[0] & ~allowed) != 0) {
    return 0;
  }
  const std::size_t size = kFrameHeaderSizeMin + input[1];
  return size <= input.size() ? size : 0;
}
// Writes such a frame and returns its size, which is kFrameHeaderSizeMin more than the body's.
inline std::size_t write_short_frame(std::uint8_t* to, Bytes body) noexcept {
  WEFT_DCHECK(body.size() <= kShortBodyMax);
  to[0] = 0;
  to[1] = static_cast<std::uint8_t>(body.size());
  copy_bytes(to + kFrameHeaderSizeMin, body);
  return kFrameHeaderSizeMin + body.size();
}

}  // namespace weft::zmtp
