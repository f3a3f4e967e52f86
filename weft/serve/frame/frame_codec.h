// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"

namespace weft::serve {

// Decoded: the result of decoding bytes that begin with a frame. A value; its frame is views into the
// input. Exactly one of:
//   a frame: `size` > 0 is the number of bytes that it took
//   a wish: `least` is the number of bytes that the input must have before the next call; more than it had
//   an error: the connection must be closed
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

// FrameCodec: frames to bytes and back, without I/O. A codec is a small copyable value, one for each connection
// and direction; it owns no memory. Affinity: one thread at a time.
//
// decode(input): `input` begins where the last frame ended, or, after a wish, with the bytes of the last call.
// Then the work for one frame is linear in its size, and the result is the same however the bytes were cut. A
// frame whose body exceeds the codec's bound is refused as soon as its size is known. After a first error
// nothing more is decoded.
// encode_header(header, body, out): writes the bytes before the body and returns their number. Errors:
// message_too_large (the body exceeds the bound); invalid_argument (the body cannot be framed).
// trailer(): the bytes after the body.
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

// The reason why this end ends a connection whose peer may still read.
enum class EndCause : std::uint8_t {
  closed,   // the service closes it, or the peer has ended
  refused,  // decode() returned an error
  late,     // a frame that began was not complete in time
  quiet,    // no byte came for too long
  stopped,  // the server stops
};
inline constexpr std::size_t kFarewellMax = 160;  // bytes

// A codec may have a farewell: farewell(why, out) writes the bytes that follow the last sent frame, and returns their
// number; 0: no farewell. The session closes such a connection at the end of its time, and does not cut it. At most one
// call of a connection returns bytes.
template <typename C>
concept HasFarewell = requires(C codec, EndCause why, std::span<std::uint8_t, kFarewellMax> out) {
  { codec.farewell(why, out) } -> std::same_as<std::size_t>;
};

// A codec may separate the head of a frame from its body. Then a session has a time limit for each. in_body(): whether
// the frame whose next bytes decode() needs has its head.
template <typename C>
concept TellsParts = requires(const C codec) {
  { codec.in_body() } -> std::same_as<bool>;
};

// A codec may have messages of several frames. in_message(): whether the next frame belongs to one that has begun, so
// that the stream of the peer may not end here.
template <typename C>
concept HasMessages = requires(const C codec) {
  { codec.in_message() } -> std::same_as<bool>;
};

// A codec may say `static constexpr bool kMoves = true`: it refers to nothing of its core, and its copy on another core
// continues, see Session::move_to(). It is trivially copyable.
template <typename C>
concept MovesBetweenCores = std::is_trivially_copyable_v<C> && requires { requires C::kMoves; };

// A codec may send another body than the caller's, such as a compressed one. packs(header, body) returns whether it
// does. pack(header, body) returns the body for the next encode_header(), valid until end_pack(sent), or an error of
// encode_header(). Only send() packs; a SharedFrame and a frame of state are sent as they are.
template <typename C>
concept PacksBodies = requires(C codec, const C constant, const typename C::Header& header, Bytes body) {
  { constant.packs(header, body) } -> std::same_as<bool>;
  { codec.pack(header, body) } -> std::same_as<Result<Bytes>>;
  { codec.end_pack(true) } -> std::same_as<void>;
};

inline constexpr std::size_t kBodyMax = std::size_t{16} << 20;  // the default bound of every codec: 16 MiB

// Decodes frames from the beginning of `input` until on_frame(frame) returns false or no whole frame is left.
struct [[nodiscard]] DecodeResult {
  std::size_t consumed = 0;  // bytes of whole frames
  std::size_t least = 0;     // bytes that must follow before the next call; 0: on_frame stopped, or an error
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

// Encodes a whole frame in one piece, for a caller without a better place for its parts. Errors: buffer_too_small;
// those of encode_header().
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
