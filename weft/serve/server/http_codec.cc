// SPDX-License-Identifier: MIT
#include "weft/serve/server/http_codec.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <utility>

#ifdef WEFT_HAVE_HTTP_PARSER
#include <http_parser.h>
#endif

namespace weft::serve {

namespace {
constexpr std::uint32_t kBoundMax = 64u * 1024 * 1024;
constexpr std::uint16_t kMalformed = 400, kNoLength = 411, kBodyTooLarge = 413, kHeadTooLarge = 431, kVersion = 505;
#ifndef WEFT_HAVE_HTTP_PARSER
constexpr Error kNotBuilt(Errc::not_supported, "this build has no HTTP parser");
#endif
}  // namespace

HttpCodec::HttpCodec(std::uint32_t head_max, std::uint32_t body_max) noexcept
    : head_max_(std::clamp<std::uint32_t>(head_max, 1, kBoundMax)), body_max_(std::min(body_max, kBoundMax)) {}

#ifdef WEFT_HAVE_HTTP_PARSER

namespace {

bool is_host(std::string_view name) noexcept {
  constexpr std::string_view kHost = "host";
  return std::equal(name.begin(), name.end(), kHost.begin(), kHost.end(),
                    [](char a, char b) { return (a | 0x20) == b; });
}

std::string_view path_of(std::string_view target) noexcept {
  http_parser_url url;
  http_parser_url_init(&url);
  if (http_parser_parse_url(target.data(), target.size(), 0, &url) != 0 || (url.field_set & (1u << UF_PATH)) == 0) {
    return {};
  }
  return target.substr(url.field_data[UF_PATH].off, url.field_data[UF_PATH].len);
}

// True: only printable characters, so no end of line.
bool is_plain(std::string_view text) noexcept {
  return text.size() <= HttpCodec::kTextMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

class Text {  // writes into a buffer that is large enough
 public:
  explicit Text(std::uint8_t* out) noexcept : at_(out) {}
  Text& operator<<(std::string_view text) noexcept {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return *this;
  }
  Text& operator<<(std::size_t number) noexcept {
    char digits[20];
    const auto result = std::to_chars(digits, digits + sizeof digits, number);
    return *this << std::string_view(digits, static_cast<std::size_t>(result.ptr - digits));
  }
  [[nodiscard]] const std::uint8_t* at() const noexcept { return at_; }

 private:
  std::uint8_t* at_;
};

std::string_view reason_of(std::uint16_t status) noexcept {
  const char* const text = http_status_str(static_cast<http_status>(status));
  return text != nullptr ? text : "";
}

}  // namespace

// The parser passes pointers into the input. The codec keeps their offsets, because the input may move
// before the next call.
struct HttpCodec::Events {
  struct Call {
    HttpCodec* codec;
    Bytes input;
  };
  static Call& call(http_parser* parser) noexcept { return *static_cast<Call*>(parser->data); }
  static std::uint32_t offset(const Call& call, const char* at) noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<const std::uint8_t*>(at) - call.input.data());
  }

  static int on_url(http_parser* parser, const char* at, std::size_t size) noexcept {
    const Call& now = call(parser);
    HttpCodec& codec = *now.codec;
    if (codec.target_size_ == 0) {
      codec.target_begin_ = offset(now, at);
    }
    codec.target_size_ += static_cast<std::uint32_t>(size);
    return 0;
  }
  static int on_header_field(http_parser* parser, const char* at, std::size_t size) noexcept {
    const Call& now = call(parser);
    HttpCodec& codec = *now.codec;
    if (std::exchange(codec.in_value_, false)) {
      codec.name_begin_ = offset(now, at);
      codec.name_size_ = 0;
    }
    codec.name_size_ += static_cast<std::uint32_t>(size);
    return 0;
  }
  static int on_header_value(http_parser* parser, const char* /*at*/, std::size_t /*size*/) noexcept {
    const Call& now = call(parser);
    HttpCodec& codec = *now.codec;
    if (!std::exchange(codec.in_value_, true) &&
        is_host(as_text(now.input.subspan(codec.name_begin_, codec.name_size_)))) {
      codec.hosts_ = static_cast<std::uint16_t>(std::min(codec.hosts_ + 1, 2));
    }
    return 0;
  }
  static int on_headers_complete(http_parser* parser) noexcept {
    HttpCodec& codec = *call(parser).codec;
    codec.method_ = static_cast<std::uint8_t>(parser->method);
    codec.keep_alive_ = http_should_keep_alive(parser) != 0;
    const bool hosted = parser->http_minor == 0 ? codec.hosts_ <= 1 : codec.hosts_ == 1;
    codec.refusal_ = parser->http_major != 1 ? kVersion : !hosted ? kMalformed : std::uint16_t{0};
    codec.check_head(parser->uses_transfer_encoding != 0, parser->content_length);
    return 1;  // the parser skips the body
  }
  static int on_message_complete(http_parser* parser) noexcept {
    http_parser_pause(parser, 1);
    return 0;
  }
  static const http_parser_settings* settings() noexcept {
    static const http_parser_settings kSettings = [] {
      http_parser_settings settings;
      http_parser_settings_init(&settings);
      settings.on_url = &on_url;
      settings.on_header_field = &on_header_field;
      settings.on_header_value = &on_header_value;
      settings.on_headers_complete = &on_headers_complete;
      settings.on_message_complete = &on_message_complete;
      return settings;
    }();
    return &kSettings;
  }
};

bool HttpCodec::supported() noexcept { return true; }

void HttpCodec::check_head(bool chunked, std::uint64_t length) noexcept {
  body_size_ = 0;
  if (refusal_ != 0) {
    return;
  }
  if (chunked) {
    refusal_ = kNoLength;
  } else if (length != std::numeric_limits<std::uint64_t>::max()) {  // the parser's value for "no length"
    if (length > body_max_) {
      refusal_ = kBodyTooLarge;
    } else {
      body_size_ = static_cast<std::uint32_t>(length);
    }
  }
}

void HttpCodec::begin_head() noexcept {
  http_parser parser;
  http_parser_init(&parser, HTTP_REQUEST);
  std::memcpy(parser_.data(), &parser, sizeof parser);
  parsed_ = head_size_ = body_size_ = target_begin_ = target_size_ = name_begin_ = name_size_ = 0;
  refusal_ = hosts_ = 0;
  method_ = 0;
  in_value_ = true;
  keep_alive_ = false;
}

bool HttpCodec::parse_head(Bytes window) noexcept {
  static_assert(sizeof(http_parser) <= sizeof(parser_));
  if (parsed_ == 0) {
    begin_head();
  }
  http_parser parser;
  std::memcpy(&parser, parser_.data(), sizeof parser);
  Events::Call call{this, window};
  parser.data = &call;
  const Bytes fresh = window.subspan(parsed_);
  const std::size_t parsed =
      http_parser_execute(&parser, Events::settings(), reinterpret_cast<const char*>(fresh.data()), fresh.size());
  parser.data = nullptr;
  std::memcpy(parser_.data(), &parser, sizeof parser);
  switch (HTTP_PARSER_ERRNO(&parser)) {
    case HPE_PAUSED:  // the head is whole
      head_size_ = parsed_ + static_cast<std::uint32_t>(parsed);
      return true;
    case HPE_OK:
      parsed_ = static_cast<std::uint32_t>(window.size());
      if (window.size() < head_max_) {
        return false;
      }
      refusal_ = kHeadTooLarge;
      head_size_ = parsed_;
      return true;
    case HPE_HEADER_OVERFLOW: refusal_ = kHeadTooLarge; break;
    default: refusal_ = kMalformed; break;
  }
  head_size_ = static_cast<std::uint32_t>(std::min(parsed_ + parsed + 1, window.size()));  // with the byte at fault
  return true;
}

HttpRequest HttpCodec::request(Bytes input) const noexcept {
  HttpRequest request;
  request.refusal = refusal_;
  if (refusal_ == 0) {
    request.method = http_method_str(static_cast<http_method>(method_));
    request.target = as_text(input.subspan(target_begin_, target_size_));
    request.path = path_of(request.target);
    request.keep_alive = keep_alive_;
  }
  return request;
}

Decoded<HttpFrame> HttpCodec::decode(Bytes input) noexcept {
  if (input.empty()) {
    return Decoded<Frame>::more(1);
  }
  if (refused_) {
    return Decoded<Frame>::refused(Error(Errc::protocol_error, "the request is refused"));
  }
  if (head_size_ == 0 && !parse_head(input.first(std::min<std::size_t>(input.size(), head_max_)))) {
    return Decoded<Frame>::more(input.size() + 1);
  }
  const std::size_t size = std::size_t{head_size_} + body_size_;
  if (input.size() < size) {
    return Decoded<Frame>::more(size);
  }
  const HttpFrame frame{request(input), input.subspan(head_size_, body_size_)};
  refused_ = refusal_ != 0;
  parsed_ = head_size_ = 0;
  return Decoded<Frame>::whole(frame, size);
}

Result<std::size_t> HttpCodec::encode_header(const HttpResponse& header, Bytes body,
                                             std::span<std::uint8_t, kHeaderMax> out) const noexcept {
  if (body.size() > kBodyMax) {
    return Error(Errc::message_too_large, "the body of an answer");
  }
  if (header.status < 100 || header.status > 999 || !is_plain(header.content_type) || !is_plain(header.allow)) {
    return Error(Errc::invalid_argument, "the head of an answer");
  }
  Text text(out.data());
  text << "HTTP/1.1 " << std::size_t{header.status} << " " << reason_of(header.status)
       << "\r\nContent-Type: " << header.content_type << "\r\nContent-Length: "
       << (header.content_length == HttpResponse::kOfBody ? body.size() : header.content_length);
  if (!header.allow.empty()) {
    text << "\r\nAllow: " << header.allow;
  }
  text << (header.keep_alive ? "\r\nConnection: keep-alive\r\n\r\n" : "\r\nConnection: close\r\n\r\n");
  return static_cast<std::size_t>(text.at() - out.data());
}

#else

bool HttpCodec::supported() noexcept { return false; }
Decoded<HttpFrame> HttpCodec::decode(Bytes /*input*/) noexcept { return Decoded<Frame>::refused(kNotBuilt); }
Result<std::size_t> HttpCodec::encode_header(const HttpResponse& /*header*/, Bytes /*body*/,
                                             std::span<std::uint8_t, kHeaderMax> /*out*/) const noexcept {
  return kNotBuilt;
}

#endif

}  // namespace weft::serve
