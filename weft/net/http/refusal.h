// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::net::http {

// HttpRefusal: why a request is refused. Each has its status and, in serve/web, its counter.
enum class HttpRefusal : std::uint8_t {
  none,
  malformed,     // 400: it does not have the form of RFC 9112
  host,          // 400: no Host in HTTP/1.1, two of them, or one that names no host
  framing,       // 400: it does not say in one way where its body ends: two lengths, a length beside chunks, no number
  chunk,         // 400: a chunk without the form of RFC 9112 section 7.1
  body_large,    // 413: a body of more than body_max bytes
  chunks_large,  // 413: sizes, extensions and trailers of more than framing_max bytes
  target_long,   // 414: a target of more than target_max bytes
  expectation,   // 417: an expectation other than 100-continue
  head_large,    // 431: a head of more than head_max bytes
  many_fields,   // 431: more than fields_max fields
  coding,        // 501: a transfer coding besides chunked
  method_unknown,  // 501: CONNECT
  version,         // 505: another major version than 1
};
inline constexpr std::size_t kRefusals = 14;

[[nodiscard]] constexpr unsigned status_of(HttpRefusal refusal) noexcept {
  switch (refusal) {
    case HttpRefusal::none: return 200;
    case HttpRefusal::malformed:
    case HttpRefusal::host:
    case HttpRefusal::framing:
    case HttpRefusal::chunk: return 400;
    case HttpRefusal::body_large:
    case HttpRefusal::chunks_large: return 413;
    case HttpRefusal::target_long: return 414;
    case HttpRefusal::expectation: return 417;
    case HttpRefusal::head_large:
    case HttpRefusal::many_fields: return 431;
    case HttpRefusal::coding:
    case HttpRefusal::method_unknown: return 501;
    case HttpRefusal::version: return 505;
  }
  return 400;
}

}  // namespace weft::net::http
