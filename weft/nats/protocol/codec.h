// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/nats/protocol/limits.h"
#include "weft/serve/frame/frame_codec.h"

namespace weft::nats {

// The operations of the client protocol. INFO, MSG, HMSG, +OK and -ERR come from the server; CONNECT, PUB, HPUB, SUB
// and UNSUB go to it; PING and PONG do both.
enum class Op : std::uint8_t { info, message, ping, pong, ok, error, connect, publish, subscribe, unsubscribe };

// Head: an operation without its body. In a received one the texts are views into the input.
struct Head {
  Op op = Op::ping;
  std::string_view subject{};    // of a message; of a subscription, with wildcards
  std::string_view reply{};      // of a message: where answers go; of SUB: the group. Empty: none
  std::uint64_t sid = 0;         // the number of the subscription
  std::uint64_t count = 0;       // of UNSUB: it ends after that many messages; 0: at once
  std::size_t headers_size = 0;  // so many bytes of the body are the header block, as HMSG and HPUB
};

// Codec: the client's end of the NATS protocol, as a serve::FrameCodec. The body of INFO, -ERR and CONNECT is their
// text, that of a message is its header block and its bytes.
// Owner: a session. Affinity: one thread at a time. Cost: no allocation; each byte of a line is searched at most twice
// however the input is cut, and the bytes of a message are not touched.
// Bounds: a line has at most kControlLineMax bytes, INFO kInfoMax; a header block kHeadersMax; a message `message_max`,
// which is at most kMessageMax.
// Invariants:
//   1. A number beyond its bound, a line without its CRLF, an unknown operation and a header block of another form are
//      protocol_error; a message beyond its bound is message_too_large as soon as its line is there.
//   2. No text of the caller can become a second operation: encode_header() refuses a subject, a reply or a text with a
//      byte that ends a word or a line.
class Codec {
 public:
  using Header = Head;
  struct Frame {
    Head header{};
    Bytes body{};
  };
  static constexpr std::size_t kHeaderMax = kSubjectMax + kReplyMax + 64;

  constexpr Codec() noexcept = default;
  explicit constexpr Codec(std::size_t message_max) noexcept : message_max_(std::min(message_max, kMessageMax)) {}

  [[nodiscard]] serve::Decoded<Frame> decode(Bytes input) noexcept;
  // Errors: message_too_large (the body); invalid_argument (a text has a byte that may not be there, or is too long).
  [[nodiscard]] Result<std::size_t> encode_header(const Head& head, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept;
  [[nodiscard]] Bytes trailer() const noexcept { return as_bytes("\r\n"); }
  [[nodiscard]] std::size_t body_max() const noexcept { return message_max_; }

 private:
  [[nodiscard]] serve::Decoded<Frame> decode_line(Bytes input, std::string_view line, std::size_t size) noexcept;
  [[nodiscard]] serve::Decoded<Frame> decode_message(Bytes input, std::string_view words, bool with_headers,
                                                     std::size_t size) const noexcept;
  [[nodiscard]] serve::Decoded<Frame> decode_body(Bytes input, const Head& head, bool with_headers, std::size_t size,
                                                  std::uint64_t body) const noexcept;

  std::size_t message_max_ = kMessageMaxDefault;
  std::uint32_t searched_ = 0;  // the line does not end before this offset
};
static_assert(serve::FrameCodec<Codec>);

}  // namespace weft::nats
