// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/time.h"
#include "weft/net/ws/close_status.h"
#include "weft/net/ws/frame.h"
#include "weft/net/ws/masks.h"
#include "weft/net/ws/utf8_scanner.h"
#include "weft/serve/frame/frame_codec.h"
#include "weft/serve/web/websocket_deflate.h"

namespace weft::serve::web {

using net::ws::CloseStatus;
using net::ws::Opcode;

// Bounds of a connection that speaks WebSocket. Those of its time and its queue are its session's.
struct WebSocketLimits {
  std::uint32_t message_max = 1024 * 1024;              // bytes of a message, in any number of fragments
  Duration message_timeout = std::chrono::seconds(60);  // from its first fragment to its last; negative: none
};

// The header of a frame that the other end sent.
struct WebSocketHead {
  Opcode opcode = Opcode::binary;
  Opcode kind = Opcode::binary;  // of the message that the frame is of: text or binary; of a control frame its opcode
  bool last = true;              // of its message
  net::ws::MaskKey mask{};       // of a server's frame zero: it has no mask
  bool compressed = false;       // the message is, by permessage-deflate

  operator Opcode() const noexcept { return kind; }  // NOLINT(google-explicit-constructor): the answer's kind
};

struct WebSocketFrame {
  WebSocketHead header;
  Bytes body;  // as received: masked
};

// Why the content of a compressed message is refused.
enum class DeflateFault : std::uint8_t {
  none,
  malformed,  // it is not a deflate stream
  large,      // more than message_max bytes come out of it
};

// WebSocketMasker: the masks of a client's frames, from a strong source of entropy, and the room of a masked body.
// Owner: a client's connection. Affinity: its core. Cost: a copy of each body that is sent.
class WebSocketMasker {
 public:
  static constexpr std::size_t kRoomKept = 64 * 1024;  // bytes of room that stay for the next body

  // Takes the next mask; for a frame of less than 125 bytes. Throws as Masks::next() does.
  [[nodiscard]] net::ws::MaskKey next() { return masks_.next(); }
  // The body under the next mask, valid until the next call. Throws the same, and std::bad_alloc.
  [[nodiscard]] Bytes put_on(Bytes body);
  [[nodiscard]] const net::ws::MaskKey& mask() const noexcept { return mask_; }  // of the last body

 private:
  net::ws::Masks masks_;
  net::ws::MaskKey mask_{};
  std::vector<std::uint8_t> room_;
};

// WebSocketCodec: an end of RFC 6455: the server's, or a client's if it has a masker. A FrameCodec: a frame in is a
// fragment or a control frame of the other end, a frame out is a whole message or a control frame. WebSocketBase makes
// messages of fragments, and expands them.
// Cost: a text is scanned once, however it is cut; nothing else is touched.
// Invariants:
//   (1) The fragments of a message follow each other, are at most message_max bytes, and those of a text are UTF-8. For
//       a compressed message this holds after it was expanded; its fragments may be an eighth larger.
//   (2) decode() reports a fault of a text at its byte, before the frame is complete.
//   (3) Each end that this end makes has a close frame, once.
// Errors of decode: protocol_error; message_too_large. Errors of encode_header: invalid_argument (a fragment, a text or
// a reason that is not UTF-8, a control frame of more than 125 bytes, a close frame that is not of web::close(), a
// status that may not be sent); message_too_large.
class WebSocketCodec {
 public:
  using Header = Opcode;
  using Frame = WebSocketFrame;
  static constexpr std::size_t kHeaderMax = net::ws::kHeaderMax;
  static constexpr std::size_t kScanStep = 64 * 1024;  // a text is scanned in steps of this size if it is larger

  WebSocketCodec() noexcept : WebSocketCodec(WebSocketLimits()) {}
  // A message_max of more than 64 MiB counts as 64 MiB.
  explicit WebSocketCodec(const WebSocketLimits& limits) noexcept;

  [[nodiscard]] Decoded<Frame> decode(Bytes input) noexcept;
  [[nodiscard]] Result<std::size_t> encode_header(Opcode opcode, Bytes body,
                                                  std::span<std::uint8_t, kHeaderMax> out) const noexcept;
  [[nodiscard]] static Bytes trailer() noexcept { return {}; }
  [[nodiscard]] std::size_t body_max() const noexcept { return deflate_ == nullptr ? message_max_ : compressed_max(); }
  [[nodiscard]] std::size_t message_max() const noexcept { return message_max_; }
  [[nodiscard]] std::size_t farewell(EndCause why, std::span<std::uint8_t, kFarewellMax> out) noexcept;

  // The status of the close frame that ends the connection, instead of the one for its reason.
  void set_close_status(std::uint16_t status) noexcept {
    close_status_ = status;
    close_chosen_ = true;
  }
  // Whether a close frame is sent instead of the farewell's, and encode_header() takes it.
  void set_close_sent(bool sent) noexcept { close_sent_ = sent; }
  // The status of the peer's close frame; 0 if it has sent none, or one without a status.
  [[nodiscard]] std::uint16_t peer_status() const noexcept { return peer_status_; }
  // For a refusal of decode(): the status for the peer.
  [[nodiscard]] CloseStatus refusal() const noexcept { return refusal_; }

  // permessage-deflate, if both ends agreed on it; null otherwise. It outlives the open session.
  [[nodiscard]] PeerDeflate* deflate() const noexcept { return deflate_; }
  void set_deflate(PeerDeflate* deflate) noexcept { deflate_ = deflate; }
  [[nodiscard]] bool packs(Opcode opcode, Bytes body) const noexcept {
    return masker_ != nullptr || compresses(opcode, body);
  }
  [[nodiscard]] Result<Bytes> pack(Opcode opcode, Bytes body) noexcept;
  void end_pack(bool sent) noexcept {
    if (std::exchange(compressing_, false)) {
      deflate_->end_pack(sent);
    }
    packed_ = false;
  }

  // This is the client's end: send() puts a mask on each frame, and the other end's frames have none. The masker
  // outlives the open session.
  void set_masker(WebSocketMasker* masker) noexcept { masker_ = masker; }
  // The content of a message is refused, after its frames were taken.
  void refuse_content(CloseStatus status, DeflateFault fault) noexcept {
    refusal_ = status;
    deflate_fault_ = fault;
  }
  [[nodiscard]] DeflateFault deflate_fault() const noexcept { return deflate_fault_; }

  // The sub-protocol of the connection; empty if there is none. The text lives as long as the site.
  [[nodiscard]] std::string_view protocol() const noexcept { return protocol_; }
  void set_protocol(std::string_view protocol) noexcept { protocol_ = protocol; }

 private:
  [[nodiscard]] Decoded<Frame> refuse(StaticText why, CloseStatus status = CloseStatus::protocol) noexcept;
  [[nodiscard]] Error check_out(Opcode opcode, Bytes body) const noexcept;
  [[nodiscard]] bool compresses(Opcode opcode, Bytes body) const noexcept {
    return deflate_ != nullptr && (opcode == Opcode::text || opcode == Opcode::binary) && deflate_->packs(body.size());
  }
  [[nodiscard]] StaticText check(const net::ws::WsFrameHeader& header) const noexcept;
  // Bytes of a compressed message: an incompressible one gets a little larger.
  [[nodiscard]] std::uint32_t compressed_max() const noexcept { return message_max_ + message_max_ / 8 + 64; }
  [[nodiscard]] bool scan(Bytes body, const net::ws::MaskKey& mask) noexcept;
  [[nodiscard]] Decoded<Frame> end_close(const net::ws::WsFrameHeader& header, const WebSocketHead& head,
                                         Bytes body) noexcept;

  std::string_view protocol_;
  PeerDeflate* deflate_ = nullptr;
  WebSocketMasker* masker_ = nullptr;
  std::uint32_t message_max_;
  std::uint32_t message_size_ = 0;         // of the fragments so far of the message under way
  std::uint32_t scanned_ = 0;              // bytes of the body of the text's frame under way
  net::ws::Utf8Scanner scanner_;           // of the text under way
  Opcode message_ = Opcode::continuation;  // the kind of the message under way; continuation: there is none
  CloseStatus refusal_ = CloseStatus::none;
  std::uint16_t peer_status_ = 0;
  std::uint16_t close_status_ = 0;
  bool close_chosen_ = false;
  bool close_sent_ = false;
  bool ended_ = false;        // by a close frame or a fault
  bool compressed_ = false;   // the message under way is
  bool compressing_ = false;  // between pack() and end_pack()
  bool packed_ = false;       // the next body to be sent is compressed
  DeflateFault deflate_fault_ = DeflateFault::none;
};
static_assert(FrameCodec<WebSocketCodec> && HasFarewell<WebSocketCodec> && PacksBodies<WebSocketCodec>);

// Writes the body of a close frame. `to` has room for 125 bytes. A reason of more than 123 bytes is cut between two
// characters; one that is not UTF-8 is left out.
std::size_t write_close_body(std::uint8_t* to, std::uint16_t status, std::string_view reason) noexcept;

}  // namespace weft::serve::web
