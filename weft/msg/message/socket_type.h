// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

// Every socket type, a row each. A new pattern is a file in weft/msg/pattern/, a row here and a line in
// tests/conformance/pattern_test.cc. The enumerator, the maker's declaration and the pattern table come from the row.
//
// ROW(name, number, wire type, maker, traits that differ from PatternTraits's defaults...)
// `number` is that of the C API and never changes; numbers from 32 on belong to Weft. `wire type` is the type in the
// handshake (zmtp::WireType): two socket types with one wire type have the same peers. Several types may share a
// maker.
#define WEFT_SOCKET_TYPES(ROW)                                                                        \
  ROW(pair, 0, pair, make_pair)                                                                       \
  ROW(pub, 1, pub, make_publisher, .receives = false, .conflates = true, .takes_subscriptions = true, \
      .connects_once = true)                                                                          \
  ROW(sub, 2, sub, make_subscriber, .sends = false, .conflates = true, .connects_once = true)         \
  ROW(req, 3, req, make_req, .one_lock = true, .connects_once = true)                                 \
  ROW(rep, 4, rep, make_rep, .one_lock = true)                                                        \
  ROW(dealer, 5, dealer, make_dealer, .conflates = true, .takes_hiccup = true, .connects_once = true) \
  ROW(router, 6, router, make_router, .takes_goodbye = true)                                          \
  ROW(pull, 7, pull, make_pull, .sends = false, .conflates = true)                                    \
  ROW(push, 8, push, make_push, .receives = false, .conflates = true)                                 \
  ROW(xpub, 9, xpub, make_publisher, .takes_subscriptions = true)                                     \
  ROW(xsub, 10, xsub, make_subscriber)                                                                \
  ROW(stream, 11, stream, make_stream) /* also of a raw ROUTER, with the traits of a ROUTER */        \
  ROW(server, 12, server, make_server, .single_part = true, .takes_goodbye = true)                    \
  ROW(client, 13, client, make_dealer, .single_part = true, .takes_hiccup = true)                     \
  ROW(radio, 14, radio, make_radio, .receives = false, .single_part = true, .groups = true)           \
  ROW(dish, 15, dish, make_dish, .sends = false, .single_part = true, .groups = true)                 \
  ROW(gather, 16, gather, make_pull, .sends = false, .single_part = true)                             \
  ROW(scatter, 17, scatter, make_push, .receives = false, .single_part = true)                        \
  ROW(dgram, 18, dgram, make_dgram) /* udp only */                                                    \
  ROW(peer, 19, peer, make_server, .single_part = true, .takes_hiccup = true, .takes_goodbye = true)  \
  ROW(channel, 20, channel, make_pair, .single_part = true)

namespace weft {

// The type of a socket: `SocketType::push`, `SocketType::sub` and so on.
enum class SocketType : std::uint8_t {
#define WEFT_ROW(name, number, ...) name = number,
  WEFT_SOCKET_TYPES(WEFT_ROW)
#undef WEFT_ROW
};

}  // namespace weft
