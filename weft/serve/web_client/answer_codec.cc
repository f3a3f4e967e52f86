// SPDX-License-Identifier: MIT
#include "weft/serve/web_client/answer_codec.h"

#include <algorithm>

namespace weft::serve::web {

namespace {

namespace http = net::http;
using http::HttpRefusal;

constexpr std::uint32_t kAnswerHeadMax = 64u * 1024 * 1024;
constexpr std::uint64_t kChunkedMax = 0xF000'0000;  // the most that ChunkScanner counts
constexpr std::uint16_t kSwitching = 101;

http::HeadLimits bounded(http::HeadLimits limits) noexcept {
  limits.head_max = std::clamp<std::uint32_t>(limits.head_max, 1, kAnswerHeadMax);
  limits.target_max = limits.head_max;  // a status line has no target: the head alone bounds it
  return limits;
}

}  // namespace

AnswerCodec::AnswerCodec(const AnswerLimits& limits) noexcept
    : head_limits_(bounded(limits)), framing_max_(std::min(limits.framing_max, kAnswerHeadMax)) {}

void AnswerCodec::begin(bool to_head, bool upgrades, std::uint64_t body_max) noexcept {
  scanner_ = {};
  chunks_ = {};
  stage_ = Stage::head;
  interims_ = 0;
  heard_ = false;
  to_head_ = to_head;
  upgrades_ = upgrades;
  body_max_ = body_max;
}

Decoded<AnswerFrame> AnswerCodec::refuse(AnswerFault fault, HttpRefusal why) noexcept {
  stage_ = Stage::refused;
  AnswerFrame frame;
  frame.header.fault = fault;
  frame.header.refusal = why;
  return Decoded<Frame>::whole(frame, 1);
}

void AnswerCodec::end(AnswerFrame& frame) noexcept {
  frame.header.last = true;
  frame.header.keep_alive = keep_alive_;
  stage_ = Stage::idle;
}

Decoded<AnswerFrame> AnswerCodec::decode(Bytes input) noexcept {
  if (input.empty()) {
    return Decoded<Frame>::more(1);
  }
  switch (stage_) {
    case Stage::idle: return refuse(AnswerFault::unasked);
    case Stage::head: heard_ = true; return decode_head(input);
    case Stage::refused: return Decoded<Frame>::refused(Error(Errc::protocol_error, "bytes after a refused answer"));
    default: return decode_piece(input);
  }
}

Decoded<AnswerFrame> AnswerCodec::decode_head(Bytes input) noexcept {
  switch (scanner_.scan(input, head_limits_)) {
    case http::HeadScanner::Found::nothing: return Decoded<Frame>::more(input.size() + 1);
    case http::HeadScanner::Found::refusal: return refuse(AnswerFault::refused, scanner_.refusal());
    case http::HeadScanner::Found::head: break;
  }
  if (scanner_.begin() != 0) {  // an empty line before the head
    return refuse(AnswerFault::refused, HttpRefusal::malformed);
  }
  AnswerFrame frame;
  frame.header.text = as_text(input).substr(0, scanner_.size());
  const std::size_t size = scanner_.size();
  const HttpRefusal why = http::parse_answer_head(frame.header.text, frame.header.head);
  if (why != HttpRefusal::none) {
    return refuse(AnswerFault::refused, why);
  }
  scanner_ = {};
  return take_head(frame, size);
}

Decoded<AnswerFrame> AnswerCodec::take_head(AnswerFrame& frame, std::size_t size) noexcept {
  const http::AnswerHead& head = frame.header.head;
  keep_alive_ = head.keep_alive;
  if (head.is_interim() && !(upgrades_ && head.status == kSwitching)) {
    if (head.status == kSwitching) {
      return refuse(AnswerFault::switched);
    }
    if (++interims_ > kInterimsMax) {
      return refuse(AnswerFault::interims);
    }
    frame.header.part = AnswerPart::interim;
    return Decoded<Frame>::whole(frame, size);
  }
  frame.header.part = AnswerPart::head;
  if (to_head_ || head.is_bodiless() || (head.has_length && head.content_length == 0)) {
    end(frame);
    return Decoded<Frame>::whole(frame, size);
  }
  if (head.content_length > body_max_) {
    return refuse(AnswerFault::refused, HttpRefusal::body_large);
  }
  rest_ = head.content_length;
  stage_ = head.chunked ? Stage::chunks : head.has_length ? Stage::length : Stage::to_the_end;
  keep_alive_ = keep_alive_ && stage_ != Stage::to_the_end;
  return Decoded<Frame>::whole(frame, size);
}

Decoded<AnswerFrame> AnswerCodec::decode_piece(Bytes input) noexcept {
  AnswerFrame frame;
  std::size_t skipped = 0;
  std::size_t size = input.size();
  if (stage_ == Stage::chunks) {
    http::BodyLimits limits;
    limits.body_max = static_cast<std::uint32_t>(std::min(body_max_, kChunkedMax));
    limits.framing_max = framing_max_;
    const auto piece = chunks_.take_piece(input, limits);
    if (piece.found == http::ChunkScanner::Found::refusal) {
      return refuse(AnswerFault::refused, chunks_.refusal());
    }
    skipped = piece.skipped;
    size = piece.size;
    if (piece.found == http::ChunkScanner::Found::end) {
      end(frame);
    }
  } else if (stage_ == Stage::length) {
    size = static_cast<std::size_t>(std::min<std::uint64_t>(rest_, size));
    rest_ -= size;
    if (rest_ == 0) {
      end(frame);
    }
  } else if (size > body_max_) {
    return refuse(AnswerFault::refused, HttpRefusal::body_large);
  } else {
    body_max_ -= size;
  }
  frame.body = input.subspan(skipped, size);
  return Decoded<Frame>::whole(frame, skipped + size);
}

Result<std::size_t> AnswerCodec::encode_header(const ChunkHeader& header, Bytes body,
                                               std::span<std::uint8_t, kHeaderMax> out) const noexcept {
  if (body.size() > kBodyMax) {
    return Error(Errc::invalid_argument, "a chunk of more than 16 MiB");
  }
  return http::write_chunk_line(body.size(), header.after_chunk, out.data());
}

Error error_of(HttpRefusal refusal) noexcept {
  switch (refusal) {
    case HttpRefusal::framing:
      return {Errc::protocol_error,
              "an answer with two lengths, a length beside chunks, or a length that is no number"};
    case HttpRefusal::chunk: return {Errc::protocol_error, "an answer with a malformed chunk"};
    case HttpRefusal::coding: return {Errc::protocol_error, "an answer with a transfer coding besides chunked"};
    case HttpRefusal::version: return {Errc::protocol_error, "an answer of another major version than HTTP/1"};
    case HttpRefusal::body_large:
      return {Errc::message_too_large, "the body of an answer exceeds body_max or streamed_max"};
    case HttpRefusal::chunks_large: return {Errc::message_too_large, "the chunks of an answer exceed framing_max"};
    case HttpRefusal::many_fields: return {Errc::message_too_large, "an answer with more than fields_max fields"};
    case HttpRefusal::target_long:
    case HttpRefusal::head_large: return {Errc::message_too_large, "the head of an answer exceeds head_max"};
    default: return {Errc::protocol_error, "the head of an answer is not of HTTP/1.1"};
  }
}

}  // namespace weft::serve::web
