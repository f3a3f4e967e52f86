// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>

#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/frame/request_number.h"

namespace weft::serve {

// Correlation: a policy of a Client. It locates the key or number in a frame's header. All functions are static:
//   Matching kMatching
//   bool is_response(header)       false: the peer sent the frame unasked, and the client's on_push() gets it
//   key(header)                    for in_order_of_key: the key of a request, and of its response
//   set_number(header, number)       for by_number: writes a number other than 0 into a request
//   number(header)                  for by_number: reads that number from the response
// It may also have:
//   set_time_left(header, left)     writes the time until the deadline into a request; negative: there is no deadline
//   withdrawal(header)              the header of the frame that follows a request which was given up, without a body
template <typename C, typename Codec>
concept Correlation = FrameCodec<Codec> && requires(typename Codec::Header& header) {
  { C::kMatching } -> std::convertible_to<Matching>;
  { C::is_response(header) } -> std::same_as<bool>;
};

// The peer answers in the order of the requests. Codecs without a header allow no other policy. A frame that comes
// while no request waits answers none: it proves that the order is broken, and ends the connection.
struct InOrder {
  static constexpr Matching kMatching = Matching::in_order;
  template <typename Header>
  static bool is_response(const Header& /*header*/) noexcept {
    return true;
  }
};

// The response has the id of its request. Services that answer with `frame.header` and the dispatcher's error frames
// comply. So ids with slow handlers do not delay other ids. A heartbeat is not a response, and neither is a frame with
// kFlagPush. A peer that pushes frames without that flag must give them ids that no request has.
struct SameId {
  static constexpr Matching kMatching = Matching::in_order_of_key;
  static bool is_response(const FrameHeader& header) noexcept {
    return (header.flags & (kFlagHeartbeat | kFlagPush)) == 0;
  }
  static std::uint32_t key(const FrameHeader& header) noexcept { return header.id; }
};

// The default policy of a Client: the codec's `Correlation` if it has one; ids for the 12-byte header; otherwise the
// order. The 12-byte header has no number for requests: its reserved bytes must be 0, and its id names the kind of
// message. NumberedCodec has one.
template <typename Codec>
struct DefaultCorrelation {
  using Type = InOrder;
};
template <typename Codec>
  requires requires { typename Codec::Correlation; }
struct DefaultCorrelation<Codec> {
  using Type = typename Codec::Correlation;
};
template <>
struct DefaultCorrelation<HeaderCodec> {
  using Type = SameId;
};

}  // namespace weft::serve
