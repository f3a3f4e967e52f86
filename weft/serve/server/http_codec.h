// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/serve/frame/frame_codec.h"

namespace weft::serve {

// The head of an answer. Fields that are empty here are not sent.
struct HttpResponse {
  static constexpr std::size_t kOfBody = ~std::size_t{0};

  std::uint16_t status = 200;
  bool keep_alive = true;  // false sends "Connection: close"; the service then closes
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string_view allow = {};           // 405: the allowed methods
  std::size_t content_length = kOfBody;  // HEAD: the size of the body that is not sent
};

// The head of a request; views into the input. A request that this codec refuses is a frame too, so that a
// service can answer it: `refusal` is the status. It is the last frame of its connection.
struct HttpRequest {
  std::string_view method = {};  // "GET"
  std::string_view target = {};  // as the peer sent it
  std::string_view path = {};    // the target without host and query; empty: it has no path
  bool keep_alive = false;
  std::uint16_t refusal = 0;  // 400 malformed, 411 no length, 413 large body, 431 large head, 505 version; 0: none

  [[nodiscard]] bool head() const noexcept { return method == "HEAD"; }
  // The default answer to the request.
  operator HttpResponse() const noexcept {  // NOLINT(google-explicit-constructor): echoes the request's header
    HttpResponse response;
    response.status = refusal != 0 ? refusal : std::uint16_t{200};
    response.keep_alive = keep_alive;
    return response;
  }
};

struct HttpFrame {
  HttpRequest header;
  Bytes body;
};

// HttpCodec: requests of HTTP/1.0 and 1.1 in, answers out. A FrameCodec. The library http_parser decodes the
// requests; a build without it refuses every request (supported()). Bodies need a Content-Length; chunked
// bodies are refused. The codec ignores other wishes of a request (Upgrade, Expect). body_max() bounds
// requests, kBodyMax bounds answers.
// Cost: every byte of a head is parsed once, however the input is cut.
// Errors of decode: protocol_error behind a refusal; not_supported. Errors of encode_header: invalid_argument:
// a content type that is too long or not plain text; message_too_large; not_supported.
class HttpCodec {
 public:
  using Header = HttpResponse;
  using Frame = HttpFrame;
  static constexpr std::size_t kHeaderMax = 384;
  static constexpr std::size_t kTextMax = 96;  // bytes of a content type, and of a list of methods

  HttpCodec() noexcept : HttpCodec(8 * 1024, 8 * 1024) {}
  HttpCodec(std::uint32_t head_max, std::uint32_t body_max) noexcept;

  [[nodiscard]] static bool supported() noexcept;

  [[nodiscard]] Decoded<Frame> decode(Bytes input) noexcept;
  [[nodiscard]] Result<std::size_t> encode_header(const HttpResponse& header, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept;
  [[nodiscard]] static Bytes trailer() noexcept { return {}; }
  [[nodiscard]] std::size_t body_max() const noexcept { return body_max_; }
  [[nodiscard]] std::size_t head_max() const noexcept { return head_max_; }

 private:
  struct Events;  // callbacks of the parser

  void begin_head() noexcept;
  // True: the head is whole, or refused: then refusal_ is set too.
  [[nodiscard]] bool parse_head(Bytes window) noexcept;
  void check_head(bool chunked, std::uint64_t length) noexcept;
  [[nodiscard]] HttpRequest request(Bytes input) const noexcept;

  std::uint32_t head_max_;
  std::uint32_t body_max_;
  alignas(8) std::array<std::byte, 32> parser_{};  // the library's parser, whose only pointer is set for each call
  std::uint32_t parsed_ = 0;                       // bytes of the head that were parsed
  std::uint32_t head_size_ = 0;                    // 0: the head is incomplete
  std::uint32_t body_size_ = 0;
  std::uint32_t target_begin_ = 0, target_size_ = 0;
  std::uint32_t name_begin_ = 0, name_size_ = 0;  // of the present field
  std::uint16_t refusal_ = 0;
  std::uint16_t hosts_ = 0;
  std::uint8_t method_ = 0;
  bool in_value_ = true;
  bool keep_alive_ = false;
  bool refused_ = false;  // after a refusal decode() returns no more frames
};
static_assert(FrameCodec<HttpCodec>);

}  // namespace weft::serve
