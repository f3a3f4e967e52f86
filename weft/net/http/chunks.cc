// SPDX-License-Identifier: MIT
#include "weft/net/http/chunks.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "weft/base/text/hex.h"
#include "weft/net/http/chars.h"

namespace weft::net::http {

namespace {
constexpr std::uint32_t kSizeDigitsMax = 8;  // so that a size fits into 32 bits
}  // namespace

ChunkScanner::Found ChunkScanner::scan(Bytes input, const BodyLimits& limits) noexcept {
  for (;;) {
    if (refusal_ != HttpRefusal::none) {
      return Found::refusal;
    }
    if (part_ == Part::end) {
      return Found::end;
    }
    if (at_ >= input.size()) {
      return Found::nothing;
    }
    ++framing_;
    ++in_line_;
    refusal_ = take(input[at_++], limits);
    if (refusal_ == HttpRefusal::none && (framing_ > limits.framing_max || in_line_ > BodyLimits::kLineMax)) {
      refusal_ = HttpRefusal::chunks_large;
    }
  }
}

// `at_` is the number of bytes of the chunk that are still to come.
ChunkScanner::Piece ChunkScanner::take_piece(Bytes input, const BodyLimits& limits) noexcept {
  Piece piece;
  while (at_ == 0 && refusal_ == HttpRefusal::none && part_ != Part::end && piece.skipped != input.size()) {
    ++framing_;
    ++in_line_;
    refusal_ = take(input[piece.skipped++], limits);
    const bool too_large = framing_ > content_ && framing_ - content_ > limits.framing_max;
    if (refusal_ == HttpRefusal::none && (too_large || in_line_ > BodyLimits::kLineMax)) {
      refusal_ = HttpRefusal::chunks_large;
    }
  }
  piece.found = refusal_ != HttpRefusal::none ? Found::refusal : part_ == Part::end ? Found::end : Found::nothing;
  if (piece.found == Found::nothing) {
    piece.size = std::min<std::size_t>(at_, input.size() - piece.skipped);
    at_ -= static_cast<std::uint32_t>(piece.size);
  }
  return piece;
}

HttpRefusal ChunkScanner::take(std::uint8_t c, const BodyLimits& limits) noexcept {
  switch (part_) {
    case Part::size: return take_size(c);
    case Part::extension:
      if (c == '\r') {
        part_ = Part::size_end;
        return HttpRefusal::none;
      }
      return is_value_char(static_cast<char>(c)) ? HttpRefusal::none : HttpRefusal::chunk;
    case Part::size_end: return c == '\n' ? end_size(limits) : HttpRefusal::chunk;
    case Part::content_cr: return expect(c, '\r', Part::content_end);
    case Part::content_end:
      if (c == '\n') {
        chunk_ = 0;
        begin_line(Part::size);
        return HttpRefusal::none;
      }
      return HttpRefusal::chunk;
    case Part::trailer:
    case Part::value:
    case Part::trailer_end:
    case Part::end: return take_trailer(c);
  }
  return HttpRefusal::chunk;
}

HttpRefusal ChunkScanner::take_size(std::uint8_t c) noexcept {
  const int digit = hex_value(static_cast<char>(c));
  if (digit >= 0 && in_line_ <= kSizeDigitsMax) {
    chunk_ = chunk_ * 16 + static_cast<std::uint32_t>(digit);
    return HttpRefusal::none;
  }
  if (in_line_ == 1 || (c != '\r' && c != ';')) {
    return HttpRefusal::chunk;
  }
  part_ = c == ';' ? Part::extension : Part::size_end;
  return HttpRefusal::none;
}

// After the line of a size: skips the content, or comes to the trailers.
HttpRefusal ChunkScanner::end_size(const BodyLimits& limits) noexcept {
  if (chunk_ == 0) {
    begin_line(Part::trailer);
    return HttpRefusal::none;
  }
  if (chunk_ > limits.body_max || content_ > limits.body_max - chunk_) {
    return HttpRefusal::body_large;
  }
  content_ += chunk_;
  at_ += chunk_;
  begin_line(Part::content_cr);
  return HttpRefusal::none;
}

// A trailer is "name: value". An empty line ends the body.
HttpRefusal ChunkScanner::take_trailer(std::uint8_t c) noexcept {
  const char as_char = static_cast<char>(c);
  if (part_ == Part::trailer_end) {
    if (c != '\n') {
      return HttpRefusal::chunk;
    }
    const bool empty = in_line_ == 2;
    begin_line(empty ? Part::end : Part::trailer);
    return HttpRefusal::none;
  }
  if (c == '\r' && (part_ == Part::value || in_line_ == 1)) {
    part_ = Part::trailer_end;
    return HttpRefusal::none;
  }
  if (part_ == Part::trailer && c == ':' && in_line_ != 1) {
    part_ = Part::value;
    return HttpRefusal::none;
  }
  return (part_ == Part::value ? is_value_char(as_char) : is_token_char(as_char)) ? HttpRefusal::none
                                                                                  : HttpRefusal::chunk;
}

std::size_t copy_chunks(Bytes body, std::uint8_t* into) noexcept {
  const std::uint8_t* const begin = into;
  while (!body.empty()) {
    std::size_t size = 0;
    std::size_t at = 0;
    for (; at < body.size() && hex_value(static_cast<char>(body[at])) >= 0; ++at) {
      size = size * 16 + static_cast<std::size_t>(hex_value(static_cast<char>(body[at])));
    }
    const auto line_end = std::find(body.begin() + static_cast<std::ptrdiff_t>(at), body.end(), std::uint8_t{'\n'});
    at = static_cast<std::size_t>(line_end - body.begin()) + 1;
    if (size == 0 || body.size() < at + size + 2) {
      break;
    }
    copy_bytes(into, body.subspan(at, size));
    into += size;
    body = body.subspan(at + size + 2);
  }
  return static_cast<std::size_t>(into - begin);
}

std::size_t write_chunk_line(std::size_t size, bool after_chunk, std::uint8_t* into) noexcept {
  char line[kChunkLineMax];
  char* at = line;
  const auto append = [&at](std::string_view text) { at = std::copy(text.begin(), text.end(), at); };
  append(after_chunk ? "\r\n" : "");
  at = std::to_chars(at, at + 8, size, 16).ptr;
  append(size == 0 ? "\r\n\r\n" : "\r\n");
  copy_bytes(into, as_bytes(std::string_view(line, static_cast<std::size_t>(at - line))));
  return static_cast<std::size_t>(at - line);
}

}  // namespace weft::net::http
