// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::serve {

// Decoded: what a codec made of the bytes from the beginning of a frame on. A value; its frame is views into the input.
// Exactly one of: a frame (`size` > 0: the bytes it took), a wish (`least`: how many bytes the input must have in all
// before it is worth asking again, more than it had), an error (the connection cannot go on).
template <typename Frame>
struct [[nodiscard]] Decoded {
  Frame frame{};
  std::size_t size = 0;
  std::size_t least = 0;
  Error error;

  static constexpr Decoded whole(const Frame& frame, std::size_t size) noexcept { return {frame, size, 0, Error()}; }
  static constexpr Decoded more(std::size_t least) noexcept { return {Frame{}, 0, least, Error()}; }
  static constexpr Decoded refused(const Error& error) noexcept { return {Frame{}, 0, 0, error}; }

  [[nodiscard]] constexpr bool complete() const noexcept { return size != 0; }
  [[nodiscard]] constexpr bool failed() const noexcept { return !(error == Errc::ok); }
};

// FrameCodec: frames to bytes and back, without I/O. A codec is a small copyable value, one for each connection and
// direction; it owns no memory. Affinity: one thread at a time.
//
// decode(input): `input` begins where the last frame ended, or, after a wish, with the bytes of the last call. Then the
//   work for one frame is linear in its size however it was cut, and so is the outcome the same. A frame whose body
//   exceeds the codec's bound is refused as soon as that shows. A first error stays: nothing is decoded after it.
// encode_header(header, body, out): what goes before the body, and how many bytes that is; trailer(): what goes behind
//   it. message_too_large: the body exceeds the bound; invalid_argument: such a body cannot be framed.
template <typename C>
concept FrameCodec =
    std::copyable<C> && requires(C codec, const C constant, const typename C::Header& header, typename C::Frame frame,
                                 Bytes bytes, std::span<std::uint8_t, C::kHeaderMax> out) {
      { codec.decode(bytes) } -> std::same_as<Decoded<typename C::Frame>>;
      { constant.encode_header(header, bytes, out) } -> std::same_as<Result<std::size_t>>;
      { constant.trailer() } -> std::same_as<Bytes>;
      { constant.body_max() } -> std::same_as<std::size_t>;
      { frame.body } -> std::convertible_to<Bytes>;
      { frame.header } -> std::convertible_to<typename C::Header>;
    };

inline constexpr std::size_t kBodyMax = std::size_t{16} << 20;  // the default bound of every codec: 16 MiB

// Decodes frames from the beginning of `input` until on_frame(frame) returns false or there is no whole one left.
struct [[nodiscard]] DecodeResult {
  std::size_t consumed = 0;  // bytes of whole frames
  std::size_t least = 0;     // of what follows, before it is worth asking again; 0: on_frame stopped, or an error
  Error error;
};
template <FrameCodec C, typename OnFrame>
DecodeResult decode_all(C& codec, Bytes input, OnFrame&& on_frame) {
  DecodeResult result;
  for (;;) {
    const auto decoded = codec.decode(input.subspan(result.consumed));
    if (!decoded.complete()) {
      result.least = decoded.least;
      result.error = decoded.error;
      return result;
    }
    result.consumed += decoded.size;
    if (!on_frame(decoded.frame)) {
      return result;
    }
  }
}

// A whole frame in one piece, for who has no better place for its parts. buffer_too_small, and what encode_header says.
template <FrameCodec C>
[[nodiscard]] Result<std::size_t> encode_frame(const C& codec, const typename C::Header& header, Bytes body,
                                               MutableBytes out) {
  std::array<std::uint8_t, C::kHeaderMax> front;
  const std::size_t front_size = WEFT_TRY(codec.encode_header(header, body, std::span(front)));
  const Bytes back = codec.trailer();
  const std::size_t size = front_size + body.size() + back.size();
  if (out.size() < size) {
    return Error(Errc::buffer_too_small, "the frame");
  }
  copy_bytes(out.data(), Bytes(front).first(front_size));
  copy_bytes(out.data() + front_size, body);
  copy_bytes(out.data() + front_size + body.size(), back);
  return size;
}

}  // namespace weft::serve
