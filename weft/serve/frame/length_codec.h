// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "weft/base/endian.h"
#include "weft/serve/frame/frame_codec.h"

namespace weft::serve {

struct NoHeader {};  // header of frames that consist of a body only

struct BodyFrame {
  [[no_unique_address]] NoHeader header;
  Bytes body;
};

// LengthCodec: bodies after their size, a big-endian u16 or u32 that does not count itself. A FrameCodec. Fails with
// message_too_large if the size exceeds the bound.
template <typename Size>
  requires std::same_as<Size, std::uint16_t> || std::same_as<Size, std::uint32_t>
class LengthCodec {
 public:
  using Header = NoHeader;
  using Frame = BodyFrame;
  static constexpr std::size_t kHeaderMax = sizeof(Size);
  static constexpr bool kMoves = true;

  constexpr LengthCodec() noexcept : LengthCodec(kBodyMax) {}
  explicit constexpr LengthCodec(std::size_t body_max) noexcept
      : body_max_(static_cast<Size>(std::min<std::size_t>(body_max, std::numeric_limits<Size>::max()))) {}

  [[nodiscard]] Decoded<Frame> decode(Bytes input) const noexcept {
    if (input.size() < sizeof(Size)) [[unlikely]] {
      return Decoded<Frame>::more(sizeof(Size));
    }
    const std::size_t body_size = load_big_endian<Size>(input.data());
    if (body_size > body_max_) [[unlikely]] {
      return Decoded<Frame>::refused(kTooLarge);
    }
    if (input.size() - sizeof(Size) < body_size) [[unlikely]] {
      return Decoded<Frame>::more(sizeof(Size) + body_size);
    }
    return Decoded<Frame>::whole({{}, input.subspan(sizeof(Size), body_size)}, sizeof(Size) + body_size);
  }

  [[nodiscard]] Result<std::size_t> encode_header(const NoHeader& /*header*/, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept {
    if (body.size() > body_max_) [[unlikely]] {
      return kTooLarge;
    }
    store_big_endian(out.data(), static_cast<Size>(body.size()));
    return sizeof(Size);
  }
  [[nodiscard]] static constexpr Bytes trailer() noexcept { return {}; }
  [[nodiscard]] constexpr std::size_t body_max() const noexcept { return body_max_; }

 private:
  static constexpr Error kTooLarge{Errc::message_too_large, "the body of a frame"};

  Size body_max_;
};
static_assert(FrameCodec<LengthCodec<std::uint16_t>> && FrameCodec<LengthCodec<std::uint32_t>>);

}  // namespace weft::serve
