// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/net/ws/close_status.h"
#include "weft/net/ws/frame.h"
#include "weft/zmtp/wire_type.h"

namespace weft::net::ws {

// ZWS 2.0 (RFC 45): each WebSocket message is a byte of flags and the body of one ZMTP frame.
inline constexpr std::uint8_t kMoreFlag = 1;
inline constexpr std::uint8_t kCommandFlag = 2;

inline constexpr std::size_t kJoinedMax = 16 * 1024 * 1024;  // of a message in fragments, which is joined here

// WsInbound: a peer's WebSocket frames in, the bytes of a ZMTP 3.0 peer out. ZMTP 3.0 because libzmq takes
// subscriptions over a WebSocket only in its form. A pure function of bytes.
// Owner: the stream. Affinity: one thread at a time.
// Cost: one copy, which also takes off the mask; a message in fragments two. Memory: some hundred bytes, and the
// fragments of an incomplete message.
// Invariants:
// 1. The outcome depends on the bytes, never on how they were cut.
// 2. The first fault stays, and no byte is made or taken after it.
class WsInbound {
 public:
  struct Config {
    bool masked = false;           // the peer is a client
    bool bare = false;             // the sub-protocol is ZWS2.0 alone: no mechanism, the first message is an identity
    bool maybe_bare = false;       // jszmq's listener agrees to any sub-protocol, and then speaks ZWS2.0 alone
    std::string_view mechanism{};  // of the greeting
    zmtp::WireType ours = zmtp::WireType::pair;
    std::uint64_t message_max = UINT64_MAX;  // bounds the memory of a message in fragments, besides kJoinedMax
    std::size_t unadmitted_max = SIZE_MAX;   // the same, before admit()
  };
  struct Moved {
    std::size_t taken = 0;
    std::size_t made = 0;
  };
  enum class Control : std::uint8_t { none, ping, pong, close };
  struct Fault {
    Error error;
    CloseStatus status;
  };

  void start(const Config& config);
  void admit() noexcept { config_.unadmitted_max = SIZE_MAX; }

  // Translates until the input is taken, the output is full, waits(), or the next item is a control frame or a fault.
  [[nodiscard]] Moved translate(Bytes input, MutableBytes output);
  // The control frame at which translate() stopped. The view stays until the next call.
  [[nodiscard]] Control control() const noexcept { return control_; }
  [[nodiscard]] Bytes control_body() const noexcept { return Bytes(control_body_).first(control_size_); }
  [[nodiscard]] const std::optional<Fault>& fault() const noexcept { return fault_; }

  // Control frames and empty fragments since the last call: they cost work and bring nothing.
  [[nodiscard]] std::uint32_t take_idle_frames() noexcept { return std::exchange(idle_frames_, 0); }
  // A message in fragments takes no more bytes before admit().
  [[nodiscard]] bool waits() const noexcept {
    return state_ == State::joining && joined_.size() >= config_.unadmitted_max && offset_ < frame_.body_size;
  }
  // Output waits that needs no more input.
  [[nodiscard]] bool has_output() const noexcept { return !pending_.empty() || state_ == State::joined; }

  // The number of the next bytes of input that belong to a body: the caller may read them straight into their place,
  // and then calls pass() for those that arrived.
  [[nodiscard]] std::size_t body_rest() const noexcept;
  void pass(MutableBytes bytes) noexcept;

 private:
  enum class State : std::uint8_t { header, flags, body, control, joining, joined };

  [[nodiscard]] std::size_t take_header(Bytes input);
  void begin_frame();
  void begin_identity();
  void begin_message(std::uint8_t flags, std::uint64_t size);
  [[nodiscard]] std::size_t take_control(Bytes input) noexcept;
  void check_close() noexcept;
  [[nodiscard]] std::size_t join(Bytes input);
  void end_joined();
  void greet();
  void append_ready(Bytes identity);
  [[nodiscard]] std::size_t give_pending(MutableBytes output) noexcept;
  void fail(StaticText text, CloseStatus status = CloseStatus::protocol, Errc code = Errc::protocol_error) noexcept;

  Config config_;
  State state_ = State::header;
  Control control_ = Control::none;
  bool identified_ = false;  // bare: the identity has arrived
  bool begun_ = false;       // the first message has come
  bool inside_ = false;      // between the fragments of a message
  std::uint32_t idle_frames_ = 0;
  std::uint8_t held_size_ = 0;
  std::uint8_t control_size_ = 0;
  std::array<std::uint8_t, kHeaderMax> held_{};  // of a header that is incomplete
  WsFrameHeader frame_;
  std::uint64_t offset_ = 0;  // of the body of `frame_` that was taken
  std::array<std::uint8_t, kControlBodyMax> control_body_{};
  std::string pending_;  // to give before anything else
  std::size_t given_ = 0;
  std::vector<std::uint8_t> joined_;
  std::size_t joined_given_ = 0;
  std::optional<Fault> fault_;
};

}  // namespace weft::net::ws
