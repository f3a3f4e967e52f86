// SPDX-License-Identifier: MIT
#include "weft/serve/web/websocket_codec.h"

#include <algorithm>
#include <optional>

#include "weft/base/endian.h"
#include "weft/base/text/utf8.h"

namespace weft::serve::web {

namespace {

namespace ws = net::ws;

constexpr std::uint32_t kMessageMax = 64u * 1024 * 1024;
constexpr std::size_t kReasonMax = ws::kControlBodyMax - 2;
constexpr StaticText kTooLarge("a WebSocket message of more than message_max bytes");
constexpr StaticText kNoText("a WebSocket text that is not UTF-8");

constexpr Error kTooLargeToSend(Errc::message_too_large, "a WebSocket message of more than 16 MiB");

bool is_text(Bytes bytes) noexcept {
  ws::Utf8Scanner scanner;
  return scanner.take(bytes) && scanner.complete();
}

}  // namespace

WebSocketCodec::WebSocketCodec(const WebSocketLimits& limits) noexcept
    : message_max_(std::min(limits.message_max, kMessageMax)) {}

Decoded<WebSocketFrame> WebSocketCodec::refuse(StaticText why, CloseStatus status) noexcept {
  ended_ = true;
  refusal_ = status;
  return Decoded<Frame>::refused(
      Error(status == CloseStatus::size ? Errc::message_too_large : Errc::protocol_error, why));
}

// The broken rule of a header; null: none. It may be called again for the same frame.
StaticText WebSocketCodec::check(const ws::WsFrameHeader& header) const noexcept {
  if (ws::is_control(header.opcode)) {
    return {};
  }
  const bool inside = message_ != Opcode::continuation;
  if ((header.opcode == Opcode::continuation) != inside) {
    return inside ? StaticText("a WebSocket message inside another")
                  : StaticText("a WebSocket continuation of no message");
  }
  const std::uint32_t most = (inside ? compressed_ : header.compressed) ? compressed_max() : message_max_;
  return header.body_size > most - message_size_ ? kTooLarge : StaticText();
}

// Scans the bytes of a text's frame that have come since the last call. Returns false if they are not UTF-8.
bool WebSocketCodec::scan(Bytes body, const ws::MaskKey& mask) noexcept {
  std::uint8_t clear[512];
  while (scanned_ < body.size()) {
    const std::size_t size = std::min(sizeof clear, body.size() - scanned_);
    ws::copy_masked(clear, body.subspan(scanned_, size), mask, scanned_);
    if (!scanner_.take(Bytes(clear, size))) {
      return false;
    }
    scanned_ += static_cast<std::uint32_t>(size);
  }
  return true;
}

Decoded<WebSocketFrame> WebSocketCodec::decode(Bytes input) noexcept {
  if (input.empty()) {
    return Decoded<Frame>::more(1);
  }
  if (ended_) {
    return Decoded<Frame>::refused(Error(Errc::protocol_error, "bytes behind the end of a WebSocket"));
  }
  ws::WsFrameHeader header;
  const ws::Parsed parsed = ws::parse_header(input, masker_ == nullptr, header, deflate_ != nullptr);
  if (parsed.status == ParseStatus::malformed) {
    return refuse(parsed.problem);
  }
  if (parsed.status == ParseStatus::need_more) {
    return Decoded<Frame>::more(input.size() + 1);
  }
  if (const StaticText problem = check(header); problem != nullptr) {
    return refuse(problem, problem == kTooLarge ? CloseStatus::size : CloseStatus::protocol);
  }
  const auto size = static_cast<std::size_t>(header.body_size);
  const std::size_t whole = header.header_size + size;
  const Bytes body = input.subspan(header.header_size, std::min(size, input.size() - header.header_size));
  const bool control = ws::is_control(header.opcode);
  const bool first = message_ == Opcode::continuation;
  const Opcode kind = control || first ? header.opcode : message_;
  const bool compressed = !control && (first ? header.compressed : compressed_);
  const bool clear_text = kind == Opcode::text && !compressed;
  const ws::MaskKey mask = header.mask.value_or(ws::MaskKey{});
  if (clear_text && !scan(body, mask)) {
    return refuse(kNoText, CloseStatus::text);
  }
  if (body.size() < size) {
    const std::size_t step = clear_text ? (size - body.size() > kScanStep ? kScanStep : 1) : size;
    return Decoded<Frame>::more(std::min(whole, input.size() + step));
  }
  const WebSocketHead head{header.opcode, kind, header.last, mask, compressed};
  if (header.opcode == Opcode::close) {
    return end_close(header, head, body);
  }
  if (!control) {
    if (clear_text && header.last && !scanner_.complete()) {
      return refuse(kNoText, CloseStatus::text);
    }
    message_ = header.last ? Opcode::continuation : kind;
    compressed_ = compressed;
    message_size_ = header.last ? 0 : message_size_ + static_cast<std::uint32_t>(size);
    scanned_ = 0;
    if (header.last) {
      scanner_ = {};
    }
  }
  return Decoded<Frame>::whole({head, body}, whole);
}

Decoded<WebSocketFrame> WebSocketCodec::end_close(const ws::WsFrameHeader& header, const WebSocketHead& head,
                                                  Bytes body) noexcept {
  std::uint8_t clear[ws::kControlBodyMax];
  ws::copy_masked(clear, body, head.mask, 0);
  const ws::CloseBody parsed = ws::parse_close_body(Bytes(clear, body.size()));
  if (parsed.problem != nullptr) {
    return refuse(parsed.problem, parsed.answer);
  }
  ended_ = true;
  peer_status_ = parsed.status;
  return Decoded<Frame>::whole({head, body}, header.header_size + body.size());
}

Bytes WebSocketMasker::put_on(Bytes body) {
  if (room_.size() < body.size() || (room_.size() > kRoomKept && body.size() <= kRoomKept)) {
    room_ = std::vector<std::uint8_t>(body.size());
  }
  mask_ = masks_.next();
  ws::copy_masked(room_.data(), body, mask_, 0);
  return Bytes(room_).first(body.size());
}

// The rule that a frame to be sent breaks.
Error WebSocketCodec::check_out(Opcode opcode, Bytes body) const noexcept {
  if (body.size() > serve::kBodyMax) {
    return kTooLargeToSend;
  }
  if (opcode == Opcode::continuation) {
    return {Errc::invalid_argument, "a WebSocket message is sent whole"};
  }
  if (opcode == Opcode::close && !close_sent_) {
    return {Errc::invalid_argument, "web::close() sends the close frame of a WebSocket"};
  }
  if (opcode == Opcode::text && !is_text(body)) {
    return {Errc::invalid_argument, kNoText};
  }
  if (ws::is_control(opcode) && body.size() > ws::kControlBodyMax) {
    return {Errc::invalid_argument, "a WebSocket control frame of more than 125 bytes"};
  }
  if (opcode == Opcode::close && ws::parse_close_body(body).problem != nullptr) {
    return {Errc::invalid_argument, "a status or a reason that no WebSocket may send"};
  }
  return {};
}

// The body is checked here, since the packed one cannot be.
Result<Bytes> WebSocketCodec::pack(Opcode opcode, Bytes body) noexcept {
  if (const Error wrong = check_out(opcode, body); !(wrong == Errc::ok)) {
    return wrong;
  }
  if (compresses(opcode, body)) {
    compressing_ = true;
    const Bytes packed = deflate_->pack(body);
    packed_ = !packed.empty();
    body = packed_ ? packed : body;
  }
  if (masker_ == nullptr) {
    return body;
  }
  try {
    return masker_->put_on(body);
  } catch (...) {
    end_pack(false);
    return Error(Errc::resource_exhausted, "no memory or no random numbers to mask a WebSocket frame");
  }
}

Result<std::size_t> WebSocketCodec::encode_header(Opcode opcode, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept {
  const bool is_checked = packed_ || masker_ != nullptr;  // by pack()
  if (const Error wrong = is_checked ? Error() : check_out(opcode, body); !(wrong == Errc::ok)) {
    return wrong;
  }
  const auto mask = masker_ == nullptr ? std::nullopt : std::optional(masker_->mask());
  const std::size_t size = ws::write_header(out.data(), opcode, body.size(), mask);
  if (packed_) {
    out[0] |= ws::kCompressedBit;
  }
  return size;
}

std::size_t WebSocketCodec::farewell(EndCause why, std::span<std::uint8_t, kFarewellMax> out) noexcept {
  if (close_sent_) {
    return 0;
  }
  close_sent_ = true;
  if (!close_chosen_) {
    CloseStatus status = CloseStatus::normal;
    switch (why) {
      case EndCause::closed: break;
      case EndCause::refused: status = refusal_ == CloseStatus::none ? CloseStatus::size : refusal_; break;
      case EndCause::late: status = CloseStatus::policy; break;
      case EndCause::quiet:
      case EndCause::stopped: status = CloseStatus::going_away; break;
    }
    close_status_ = static_cast<std::uint16_t>(status);
  }
  std::uint8_t body[ws::kControlBodyMax];
  const std::size_t size = write_close_body(body, close_status_, {});
  std::optional<ws::MaskKey> mask;
  if (masker_ != nullptr) {
    try {
      mask = masker_->next();
    } catch (...) {
      return 0;  // no random numbers: the connection ends without a close frame
    }
  }
  const std::size_t front = ws::write_header(out.data(), Opcode::close, size, mask);
  ws::copy_masked(out.data() + front, Bytes(body, size), mask.value_or(ws::MaskKey{}), 0);
  return front + size;
}

std::size_t write_close_body(std::uint8_t* to, std::uint16_t status, std::string_view reason) noexcept {
  if (status == 0) {
    return 0;
  }
  store_big_endian(to, status);
  std::size_t size = std::min(reason.size(), kReasonMax);
  while (size != 0 && size < reason.size() && (static_cast<unsigned char>(reason[size]) & 0xC0) == 0x80) {
    --size;
  }
  if (!is_utf8(reason.substr(0, size))) {
    size = 0;
  }
  copy_bytes(to + 2, as_bytes(reason.substr(0, size)));
  return 2 + size;
}

}  // namespace weft::serve::web
