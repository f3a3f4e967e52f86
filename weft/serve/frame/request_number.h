// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::serve {

// The way in which a client finds the request of a response among the requests in flight on its connection.
enum class Matching : std::uint8_t {
  in_order,         // responses come in the order of requests. If the peer skips one, the next ones are
                    // misassigned until late_max has passed; by_number prevents that
  in_order_of_key,  // a response has its request's key; those with equal keys come in the order of requests
  by_number,        // a response has the number of its request; any order
};

// A field of the header, an unsigned number of 32 bits, belongs to the client: the client numbers its requests there,
// and the peer sends the number back. A frame that the peer sends without a request has the number 0. A codec that
// names this as its `Correlation` numbers requests. `RequestNumber<&FrameHeader::id>` suits services that do not use
// the id.
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

// Whether answers may leave in any order, because each has the number of its request. The codec's `Correlation` decides
// it.
template <typename Codec>
inline constexpr bool kNumbersRequests = false;
template <typename Codec>
  requires requires { Codec::Correlation::kMatching; }
inline constexpr bool kNumbersRequests<Codec> = Codec::Correlation::kMatching == Matching::by_number;

}  // namespace weft::serve
