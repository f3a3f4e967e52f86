// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/net/http/chunks.h"
#include "weft/net/http/head_scanner.h"
#include "weft/net/http/refusal.h"
#include "weft/net/http/request_head.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/web/fields.h"

namespace weft::serve::web {

// Bounds of a connection that speaks HTTP. Those of time are its session's, see session_limits().
struct HttpLimits : net::http::HeadLimits, net::http::BodyLimits {
  std::uint32_t streamed_max = 1024 * 1024 * 1024;  // bytes of a body that its handler takes as it arrives
  std::uint32_t streamed_rate_min = 64;  // bytes a second of such a body, after the first body_timeout; 0: any rate
  std::uint32_t requests_max = 10'000;   // of one connection; the answer to the last one closes it
};

// The part of an answer that a frame is.
enum class ResponsePart : std::uint8_t {
  whole,  // head and body
  head,   // the head alone: the body follows
  chunk,  // a chunk of the body, which is not empty
  end,    // the end of the chunks
};

// The head of an answer, besides the fields that the codec writes itself.
struct ResponseHead {
  static constexpr std::size_t kOfBody = ~std::size_t{0};

  std::uint16_t status = 200;
  bool keep_alive = true;    // false sends "Connection: close"; the service then closes
  bool http_1_0 = false;     // the peer keeps the connection only if the answer has "Connection: keep-alive"
  bool upgrade = false;      // the answer has the fields that offer a WebSocket on this path
  bool chunked = false;      // of ResponsePart::head: chunks follow
  bool after_chunk = false;  // of ResponsePart::chunk and end: a chunk was sent before
  ResponsePart part = ResponsePart::whole;
  std::size_t content_length = kOfBody;  // HEAD: the size of the body that is not sent
  std::string_view date{};               // see DateClock; empty: no field Date
  const Fields* fields = nullptr;
};

// The part of a request that a frame has.
enum class Part : std::uint8_t {
  whole,  // head and body
  head,   // a head with "Expect: 100-continue": the peer waits for 100 before it sends the body
  body,   // that body: `head` is empty
  begin,  // a head whose body follows in pieces, see HttpCodec::set_streams()
  piece,  // the next bytes of that body, without framing, or no bytes: `head` is empty
};

// The head of a request; views into the input. A request that this codec refuses is a frame, too, so that a service can
// answer it: it is the last frame of its connection.
struct HttpRequest {
  net::http::RequestHead head;
  std::string_view text;         // the bytes of the head
  std::size_t content_size = 0;  // of the body, without the framing of chunks
  net::http::HttpRefusal refusal = net::http::HttpRefusal::none;
  Part part = Part::whole;
  bool chunked = false;     // the frame's body is chunks: copy_chunks()
  bool keep_alive = false;  // the connection stays open after the answer
  bool followed = false;    // more bytes had come; this depends on the cuts
  bool last = false;        // Part::piece: the body ends with it

  // Whether the frame counts for message_rate: the pieces of a body are one message with its head.
  [[nodiscard]] bool is_message() const noexcept { return part != Part::piece; }

  // The default answer to the request.
  operator ResponseHead() const noexcept {  // NOLINT(google-explicit-constructor): echoes the request's header
    ResponseHead answer;
    answer.status = static_cast<std::uint16_t>(net::http::status_of(refusal));
    answer.keep_alive = keep_alive;
    answer.http_1_0 = head.minor == 0;
    return answer;
  }
};

struct HttpFrame {
  HttpRequest header;
  Bytes body;  // as received: with the framing of chunks
};

// HttpCodec: requests of HTTP/1.0 and 1.1 in, answers out (RFC 9112). A FrameCodec. A frame is a whole request, with a
// body that has a length or chunks. A request that expects 100-continue is two frames: its head, then its body.
// A body that its handler takes as it comes is any number of frames after that of its head.
// The codec ignores other wishes of a request: Upgrade, TE, trailers. A peer that is late with a request gets 408 as
// the codec's farewell.
// Cost: the scanner reads every byte of a head once, however the input is cut; a whole head is parsed once, and once
// more if its body comes later.
// Errors of decode: protocol_error after a refusal, or after the last of requests_max. Errors of encode_header:
// invalid_argument (not a status); message_too_large.
class HttpCodec {
 public:
  using Header = ResponseHead;
  using Frame = HttpFrame;
  // Whether the handler of a request takes its body as it comes. `router`: as given to set_streams().
  using Streams = bool (*)(const void* router, const net::http::RequestHead& head) noexcept;
  static constexpr std::size_t kHeaderMax = 4096;

  HttpCodec() noexcept : HttpCodec(HttpLimits()) {}
  // Bounds of more than 64 MiB count as 64 MiB.
  explicit HttpCodec(const HttpLimits& limits) noexcept;

  [[nodiscard]] Decoded<Frame> decode(Bytes input) noexcept;
  [[nodiscard]] Result<std::size_t> encode_header(const ResponseHead& header, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept;
  [[nodiscard]] static Bytes trailer() noexcept { return {}; }
  [[nodiscard]] std::size_t body_max() const noexcept { return limits_.body_max; }
  [[nodiscard]] const HttpLimits& limits() const noexcept { return limits_; }
  // Without it every body is collected. `router` outlives the codec and its copies.
  void set_streams(Streams streams, const void* router) noexcept {
    streams_ = streams;
    router_ = router;
  }
  [[nodiscard]] std::size_t farewell(EndCause why, std::span<std::uint8_t, kFarewellMax> out) noexcept;
  [[nodiscard]] bool in_body() const noexcept { return stage_ == Stage::whole_body || stage_ == Stage::lonely_body; }
  // Inside a body whose head was a frame.
  [[nodiscard]] bool in_message() const noexcept { return stage_ == Stage::pieces || stage_ == Stage::lonely_body; }
  [[nodiscard]] bool answered_late() const noexcept { return answered_late_; }  // farewell() answered

 private:
  enum class Stage : std::uint8_t {
    head,         // the input begins with a head
    whole_body,   // the input begins with a head that is whole; its body is not
    lonely_body,  // the input begins with a body whose head was a frame
    pieces,       // the input begins inside a body that is handed over in pieces
    refused,      // nothing more is decoded
  };

  [[nodiscard]] Decoded<Frame> decode_head(Bytes input) noexcept;
  [[nodiscard]] Decoded<Frame> decode_body(Bytes input) noexcept;
  [[nodiscard]] Decoded<Frame> decode_piece(Bytes input) noexcept;
  [[nodiscard]] Decoded<Frame> refuse(net::http::HttpRefusal why, std::size_t size) noexcept;
  [[nodiscard]] std::string_view head_text(Bytes input) const noexcept {
    return as_text(input).substr(scanner_.begin(), scanner_.size() - scanner_.begin());
  }
  void begin_request() noexcept;

  HttpLimits limits_;
  Streams streams_ = nullptr;
  const void* router_ = nullptr;
  net::http::HeadScanner scanner_;
  net::http::ChunkScanner chunks_;
  std::uint32_t length_ = 0;    // of a body with a length
  std::uint32_t requests_ = 0;  // that were decoded
  Stage stage_ = Stage::head;
  bool chunked_ = false;
  bool keep_alive_ = false;
  bool answered_late_ = false;
};
static_assert(FrameCodec<HttpCodec> && HasFarewell<HttpCodec> && TellsParts<HttpCodec> && HasMessages<HttpCodec>);

}  // namespace weft::serve::web
