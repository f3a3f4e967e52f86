// SPDX-License-Identifier: MIT
#pragma once

#include <concepts>
#include <cstdint>

#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/frame/header_codec.h"

namespace weft::serve {

// How a client finds the request of a response among the requests in flight on its connection.
enum class Matching : std::uint8_t {
  in_order,         // responses come in the order of requests. If the peer skips one, the next ones are
                    // misassigned until late_max has passed; by_number prevents that
  in_order_of_key,  // a response has its request's key; those with equal keys come in the order of requests
  by_number,        // a response has the number that its request was given; any order
};

// Correlation: a policy of a Client. It knows where in a frame's header the key or number is. All functions are
// static:
//   Matching kMatching
//   bool is_response(header)       false: the peer sent the frame unasked, and the client's on_push() gets it
//   key(header)                    for in_order_of_key: the key of a request, and of its response
//   set_number(header, number)       for by_number: writes a number other than 0 into a request
//   number(header)                  for by_number: reads that number from the response
template <typename C, typename Codec>
concept Correlation = FrameCodec<Codec> && requires(typename Codec::Header& header) {
  { C::kMatching } -> std::convertible_to<Matching>;
  { C::is_response(header) } -> std::same_as<bool>;
};

// The peer answers in the order of the requests. Codecs without a header allow no other policy.
struct InOrder {
  static constexpr Matching kMatching = Matching::in_order;
  template <typename Header>
  static bool is_response(const Header& /*header*/) noexcept {
    return true;
  }
};

// The response has the id of its request. Services that answer with `frame.header` and the dispatcher's error
// frames keep to that. So ids with slow handlers do not delay other ids. A heartbeat is no response.
struct SameId {
  static constexpr Matching kMatching = Matching::in_order_of_key;
  static bool is_response(const FrameHeader& header) noexcept { return (header.flags & kFlagHeartbeat) == 0; }
  static std::uint32_t key(const FrameHeader& header) noexcept { return header.id; }
};

// A field of the header, an unsigned number of 32 bits, belongs to the client: the client numbers its requests
// there, and the peer sends the number back. `RequestNumber<&FrameHeader::id>` suits services that do not use the id.
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

// The policy of a Client that names none: the codec's `Correlation` if it has one; ids for the 12-byte header;
// otherwise the order. The 12-byte header has no number for requests: its reserved bytes must be 0, and its id
// names the kind of message.
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
