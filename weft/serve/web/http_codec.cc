// SPDX-License-Identifier: MIT
#include "weft/serve/web/http_codec.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "weft/net/http/status.h"
#include "weft/serve/web/date.h"

namespace weft::serve::web {

namespace {

namespace http = net::http;
using http::HttpRefusal;

constexpr std::uint32_t kBoundMax = 64u * 1024 * 1024;
constexpr std::uint32_t kStreamedBoundMax = 0xF000'0000;  // so that its framing can be counted, too
constexpr std::size_t kFixedMax = 256;                    // bytes of a head without Fields

class Text {  // writes into a buffer that is large enough
 public:
  explicit Text(std::uint8_t* out) noexcept : at_(out) {}
  Text& operator<<(std::string_view text) noexcept {
    copy_bytes(at_, as_bytes(text));
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

// Writes the size line before a chunk, with the line end of the one before, or after the last one.
Result<std::size_t> encode_chunk(const ResponseHead& header, Bytes body, std::uint8_t* out) noexcept {
  if (body.empty() != (header.part == ResponsePart::end) || body.size() > kBodyMax) {
    return Error(Errc::invalid_argument, "a chunk has 1 byte to 16 MiB, and the end has none");
  }
  return http::write_chunk_line(body.size(), header.after_chunk, out);
}

HttpLimits clamped(HttpLimits limits) noexcept {
  for (std::uint32_t* bound : {&limits.head_max, &limits.target_max, &limits.body_max, &limits.framing_max}) {
    *bound = std::min(*bound, kBoundMax);
  }
  limits.streamed_max = std::min(limits.streamed_max, kStreamedBoundMax);
  limits.head_max = std::max<std::uint32_t>(limits.head_max, 1);
  limits.requests_max = std::max<std::uint32_t>(limits.requests_max, 1);
  return limits;
}

}  // namespace

HttpCodec::HttpCodec(const HttpLimits& limits) noexcept : limits_(clamped(limits)) {}

void HttpCodec::begin_request() noexcept {
  scanner_ = {};
  chunks_ = {};
  length_ = 0;
  chunked_ = false;
  stage_ = keep_alive_ ? Stage::head : Stage::refused;
}

Decoded<HttpFrame> HttpCodec::refuse(HttpRefusal why, std::size_t size) noexcept {
  stage_ = Stage::refused;
  HttpFrame frame;
  frame.header.refusal = why;
  return Decoded<Frame>::whole(frame, std::max<std::size_t>(size, 1));
}

Decoded<HttpFrame> HttpCodec::decode(Bytes input) noexcept {
  if (input.empty()) {
    return Decoded<Frame>::more(1);
  }
  if (stage_ == Stage::refused) {
    return Decoded<Frame>::refused(Error(Errc::protocol_error, "bytes behind the last request of the connection"));
  }
  Decoded<Frame> decoded = stage_ == Stage::head     ? decode_head(input)
                           : stage_ == Stage::pieces ? decode_piece(input)
                                                     : decode_body(input);
  decoded.frame.header.followed = decoded.size < input.size();
  return decoded;
}

Decoded<HttpFrame> HttpCodec::decode_head(Bytes input) noexcept {
  switch (scanner_.scan(input, limits_)) {
    case http::HeadScanner::Found::nothing: return Decoded<Frame>::more(input.size() + 1);
    case http::HeadScanner::Found::refusal: return refuse(scanner_.refusal(), scanner_.size());
    case http::HeadScanner::Found::head: break;
  }
  HttpFrame frame;
  HttpRequest& request = frame.header;
  request.text = head_text(input);
  HttpRefusal why = http::parse_request_head(request.text, limits_, request.head);
  const bool streams =
      why == HttpRefusal::none && streams_ != nullptr && request.head.has_body() && streams_(router_, request.head);
  if (why == HttpRefusal::none && request.head.content_length > (streams ? limits_.streamed_max : limits_.body_max)) {
    why = HttpRefusal::body_large;
  }
  if (why != HttpRefusal::none) {
    return refuse(why, scanner_.size());
  }
  keep_alive_ = request.head.keep_alive && ++requests_ < limits_.requests_max;
  request.keep_alive = keep_alive_;
  length_ = static_cast<std::uint32_t>(request.head.content_length);
  chunked_ = request.head.chunked;
  const std::size_t size = scanner_.size();
  if (!request.head.has_body()) {
    begin_request();
    return Decoded<Frame>::whole(frame, size);
  }
  if (streams) {
    stage_ = Stage::pieces;
    request.part = Part::begin;
    return Decoded<Frame>::whole(frame, size);
  }
  if (request.head.expects_continue) {
    stage_ = Stage::lonely_body;
    request.part = Part::head;
    return Decoded<Frame>::whole(frame, size);
  }
  stage_ = Stage::whole_body;
  return decode_body(input);
}

Decoded<HttpFrame> HttpCodec::decode_body(Bytes input) noexcept {
  const bool lonely = stage_ == Stage::lonely_body;
  const std::size_t begin = lonely ? 0 : scanner_.size();
  const Bytes rest = input.subspan(std::min(begin, input.size()));
  std::size_t size = length_;
  if (chunked_) {
    switch (chunks_.scan(rest, limits_)) {
      case http::ChunkScanner::Found::nothing: return Decoded<Frame>::more(begin + chunks_.least());
      case http::ChunkScanner::Found::refusal: return refuse(chunks_.refusal(), begin + chunks_.size());
      case http::ChunkScanner::Found::end: size = chunks_.size(); break;
    }
  } else if (rest.size() < size) {
    return Decoded<Frame>::more(begin + size);
  }
  HttpFrame frame;
  HttpRequest& request = frame.header;
  if (!lonely) {
    request.text = head_text(input);
    (void)http::parse_request_head(request.text, limits_, request.head);
  }
  request.part = lonely ? Part::body : Part::whole;
  request.chunked = chunked_;
  request.content_size = chunked_ ? chunks_.content_size() : size;
  request.keep_alive = keep_alive_;
  frame.body = rest.first(size);
  begin_request();
  return Decoded<Frame>::whole(frame, begin + size);
}

Decoded<HttpFrame> HttpCodec::decode_piece(Bytes input) noexcept {
  HttpFrame frame;
  frame.header.part = Part::piece;
  frame.header.keep_alive = keep_alive_;
  std::size_t skipped = 0;
  std::size_t size = std::min<std::size_t>(length_, input.size());
  if (chunked_) {
    http::BodyLimits limits = limits_;
    limits.body_max = limits_.streamed_max;
    const auto piece = chunks_.take_piece(input, limits);
    if (piece.found == http::ChunkScanner::Found::refusal) {
      return refuse(chunks_.refusal(), piece.skipped);
    }
    frame.header.last = piece.found == http::ChunkScanner::Found::end;
    skipped = piece.skipped;
    size = piece.size;
  } else {
    length_ -= static_cast<std::uint32_t>(size);
    frame.header.last = length_ == 0;
  }
  frame.body = input.subspan(skipped, size);
  frame.header.content_size = size;
  if (frame.header.last) {
    begin_request();
  }
  return Decoded<Frame>::whole(frame, skipped + size);
}

// The answer to a request that was not whole in time. It has no body, since the method may be HEAD.
std::size_t HttpCodec::farewell(EndCause why, std::span<std::uint8_t, kFarewellMax> out) noexcept {
  constexpr std::string_view kFirst = "HTTP/1.1 408 Request Timeout\r\nDate: ";
  constexpr std::string_view kRest = "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
  static_assert(kFirst.size() + kDateSize + kRest.size() <= kFarewellMax);
  if (why != EndCause::late || answered_late_ || stage_ == Stage::refused) {
    return 0;
  }
  answered_late_ = true;
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto date = http_date(now);
  Text text(out.data());
  text << kFirst << std::string_view(date.data(), date.size()) << kRest;
  return static_cast<std::size_t>(text.at() - out.data());
}

// 204 and 304 have no body, and 204 no length either (RFC 9110 section 8.6).
Result<std::size_t> HttpCodec::encode_header(const ResponseHead& header, Bytes body,
                                             std::span<std::uint8_t, kHeaderMax> out) const noexcept {
  static_assert(kFixedMax + Fields::kBytesMax <= kHeaderMax);
  if (header.part == ResponsePart::chunk || header.part == ResponsePart::end) {
    return encode_chunk(header, body, out.data());
  }
  const bool bodiless = header.status == 204 || header.status == 304;
  if (header.status < 200 || header.status > 599 || (bodiless && !body.empty()) || header.date.size() > 32) {
    return Error(Errc::invalid_argument, "the head of an answer");
  }
  if (body.size() > kBodyMax) {
    return Error(Errc::message_too_large, "the body of an answer");
  }
  Text text(out.data());
  text << "HTTP/1.1 " << std::size_t{header.status} << " " << http::reason_phrase(header.status) << "\r\n";
  if (!header.date.empty()) {
    text << "Date: " << header.date << "\r\n";
  }
  if (header.fields != nullptr) {
    text << header.fields->lines();
  }
  if (header.upgrade) {
    text << "Upgrade: websocket\r\nConnection: Upgrade\r\n";
  }
  if (header.chunked) {
    text << "Transfer-Encoding: chunked\r\n";
  } else if (header.status == 204) {
    // The end of a body does not follow from the place where none can begin.
  } else if (header.content_length != ResponseHead::kOfBody) {
    text << "Content-Length: " << header.content_length << "\r\n";
  } else if (!bodiless && header.part == ResponsePart::whole) {
    text << "Content-Length: " << body.size() << "\r\n";
  }
  if (!header.keep_alive) {
    text << "Connection: close\r\n";
  } else if (header.http_1_0) {
    text << "Connection: keep-alive\r\n";
  }
  text << "\r\n";
  return static_cast<std::size_t>(text.at() - out.data());
}

}  // namespace weft::serve::web
