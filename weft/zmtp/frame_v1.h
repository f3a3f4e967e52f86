// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/assert.h"
#include "weft/base/bytes.h"
#include "weft/base/endian.h"
#include "weft/zmtp/frame.h"

namespace weft::zmtp {

// The way a connection cuts messages into frames. ZMTP 2.0 does so as 3.x does, without commands. none: no
// frames at all, since the peer speaks no ZMTP and its bytes are passed on as they come.
enum class Framing : std::uint8_t { v3, v1, none };

// ZMTP 1.0 framing (RFC 13): a length of one byte, or FF and a length of 8 bytes (big endian); a flags byte,
// which the length counts; the body. Only bit 0 (more) of the flags has a meaning; libzmq 2.x sets others.
inline constexpr std::size_t kFrameHeaderSizeMaxV1 = 10;
inline constexpr std::uint8_t kEscapeV1 = 0xFF;

// As parse_frame_header; `flags` is kMore or 0. Malformed: a length of 0 or above 2^63.
[[nodiscard]] inline ParseStatus parse_frame_header_v1(Bytes input, ZmtpFrameHeader& out) noexcept {
  if (input.empty()) {
    return ParseStatus::need_more;
  }
  const std::size_t size = input[0] == kEscapeV1 ? kFrameHeaderSizeMaxV1 : kFrameHeaderSizeMin;
  if (input[0] == 0) {
    return ParseStatus::malformed;
  }
  if (input.size() < size) {
    return ParseStatus::need_more;
  }
  const std::uint64_t length = size == kFrameHeaderSizeMin ? input[0] : load_big_endian<std::uint64_t>(&input[1]);
  if (length == 0 || length - 1 > kFrameBodySizeMax) {
    return ParseStatus::malformed;
  }
  out = {static_cast<std::uint8_t>(input[size - 1] & kMore), static_cast<std::uint8_t>(size), length - 1};
  return ParseStatus::complete;
}

// As write_frame_header; `to` has room for kFrameHeaderSizeMaxV1, `flags` is 0 or kMore.
inline std::size_t write_frame_header_v1(std::uint8_t* to, std::uint8_t flags, std::uint64_t body_size) noexcept {
  WEFT_DCHECK((flags == 0 || flags == kMore) && body_size <= kFrameBodySizeMax);
  const std::uint64_t length = body_size + 1;
  if (length < kEscapeV1) {
    to[0] = static_cast<std::uint8_t>(length);
    to[1] = flags;
    return kFrameHeaderSizeMin;
  }
  to[0] = kEscapeV1;
  store_big_endian<std::uint64_t>(to + 1, length);
  to[9] = flags;
  return kFrameHeaderSizeMaxV1;
}

}  // namespace weft::zmtp
