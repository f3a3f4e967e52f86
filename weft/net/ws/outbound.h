// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/net/ws/frame.h"
#include "weft/net/ws/masks.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/greeting.h"

namespace weft::net::ws {

// WsOutbound: the bytes of our end of ZMTP 3 in, WebSocket frames out, one for each ZMTP frame. A pure function of
// bytes.
// The object drops the greeting, since the sub-protocol carries all of it.
// Owner: the stream. Affinity: one thread at a time. Cost: one copy, which also puts on the mask; none for a large body
// without a mask (may_lend()).
class WsOutbound {
 public:
  static constexpr std::size_t kLendMin = 16 * 1024;
  static constexpr std::size_t kRoomMin = kHeaderMax + 1 + zmtp::kIdentityMax;
  struct Moved {
    std::size_t taken = 0;
    std::size_t made = 0;
  };

  // `masks`: we are the client; null: the server. `bare`: the sub-protocol is ZWS2.0 alone: our identity takes the
  // place of READY.
  void start(std::unique_ptr<Masks> masks, bool bare) noexcept;

  // Translates until the input is taken, less than kRoomMin is left in the output, or may_lend() for the rest.
  [[nodiscard]] Moved translate(Bytes input, MutableBytes output);
  // Between two frames: a control frame may be sent.
  [[nodiscard]] bool between_frames() const noexcept { return state_ == State::header && held_size_ == 0; }
  // Whether the next min(`size`, body_rest()) bytes of input leave unchanged, and are too many for a copy: then the
  // caller sends some of them itself, and calls pass().
  [[nodiscard]] bool may_lend(std::size_t size) const noexcept {
    return state_ == State::body && !mask_ && rest_ >= kLendMin && size >= kLendMin;
  }
  [[nodiscard]] std::uint64_t body_rest() const noexcept { return rest_; }
  void pass(std::size_t size) noexcept;

  // Writes a whole control frame. `to` has room for kHeaderMax and the body.
  std::size_t write_control(std::uint8_t* to, Opcode opcode, Bytes body);

 private:
  enum class State : std::uint8_t { greeting, header, body, hidden };

  [[nodiscard]] bool take_header(Bytes& input);
  std::size_t begin_frame(std::uint8_t* to);
  [[nodiscard]] std::size_t take_hidden(Bytes& input, std::uint8_t* to);
  [[nodiscard]] std::optional<MaskKey> next_mask() {
    return masks_ != nullptr ? std::optional(masks_->next()) : std::nullopt;
  }

  State state_ = State::greeting;
  std::unique_ptr<Masks> masks_;
  bool bare_ = false;  // and the identity has not been sent yet
  std::uint8_t held_size_ = 0;
  std::array<std::uint8_t, zmtp::kFrameHeaderSizeMax> held_{};  // of a header that is incomplete
  zmtp::ZmtpFrameHeader frame_;
  std::uint64_t rest_ = 0;  // of the greeting or the body
  std::optional<MaskKey> mask_;
  std::vector<std::uint8_t> hidden_;  // the handshake's command that does not go out
};

}  // namespace weft::net::ws
