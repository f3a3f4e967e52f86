// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>

#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/header_codec.h"

namespace weft::serve {

// How a response finds its request among those that a connection has in flight.
enum class Matching : std::uint8_t {
  in_order,         // the peer answers everything, in the order of asking. One that leaves out a response is mistaken
                    // until late_max has passed: by_number it could not be
  in_order_of_key,  // a response has a key of its request; those with equal keys are answered in the order of asking
  by_number,        // a response has the number that its request was given; any order
};

// Correlation: a policy of a Client: where in a frame's header that key or number is. All are static functions:
//   Matching kMatching
//   bool is_response(header)       false: the peer sends it by itself, and the client's on_push() gets it
//   key(header)                    of in_order_of_key: of a request, and of its response
//   set_number(header, number)     of by_number: a number that is not 0, in a request
//   number(header)                 ... and in its response
template <typename C, typename Codec>
concept Correlation = FrameCodec<Codec> && requires(typename Codec::Header& header) {
  { C::kMatching } -> std::convertible_to<Matching>;
  { C::is_response(header) } -> std::same_as<bool>;
};

// The peer answers in the order of asking. For codecs without a header there is nothing else.
struct InOrder {
  static constexpr Matching kMatching = Matching::in_order;
  template <typename Header>
  static bool is_response(const Header& /*header*/) noexcept {
    return true;
  }
};

// The response has the id of its request, as a service's answer with `frame.header` and the dispatcher's error frames
// have; so ids with slow handlers do not hold up the others. A heartbeat is no response.
struct SameId {
  static constexpr Matching kMatching = Matching::in_order_of_key;
  static bool is_response(const FrameHeader& header) noexcept { return (header.flags & kFlagHeartbeat) == 0; }
  static std::uint32_t key(const FrameHeader& header) noexcept { return header.id; }
};

// A field of the header, an unsigned number of 32 bits, is the client's: it numbers its requests there, and the peer
// sends the number back. `RequestNumber<&FrameHeader::id>` is for services to which the id says nothing.
template <auto kField>
struct RequestNumber {
  static constexpr Matching kMatching = Matching::by_number;
  template <typename Header>
  static bool is_response(const Header& header) noexcept {
    return header.*kField != 0;
  }
  template <typename Header>
  static void set_number(Header& header, std::uint32_t number) noexcept {
    header.*kField = number;
  }
  template <typename Header>
  static std::uint32_t number(const Header& header) noexcept {
    return header.*kField;
  }
};

// What a Client does unless it is told: what the codec names as its `Correlation`, ids where there are ids, else the
// order. The 12-byte header has no number for requests, and its reserved bytes are 0: its ids say what kind of message
// it is.
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
