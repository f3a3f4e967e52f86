// SPDX-License-Identifier: MIT
#include "weft/net/ws/inbound.h"

#include <algorithm>
#include <utility>

#include "weft/zmtp/command.h"
#include "weft/zmtp/frame.h"
#include "weft/zmtp/greeting.h"

namespace weft::net::ws {
namespace {

constexpr std::uint64_t kCommandMax = 64 * 1024;  // commands in fragments; the owner's own limits are exact

using zmtp::WireType;

// With the bare sub-protocol no peer sends its type. A type that may connect to ours stands for it.
WireType usual_partner(WireType type) noexcept {
  switch (type) {
    case WireType::pub:
    case WireType::xpub: return WireType::sub;
    case WireType::sub:
    case WireType::xsub: return WireType::pub;
    case WireType::req: return WireType::rep;
    case WireType::rep: return WireType::req;
    case WireType::dealer: return WireType::router;
    case WireType::router: return WireType::dealer;
    case WireType::pull: return WireType::push;
    case WireType::push: return WireType::pull;
    case WireType::server: return WireType::client;
    case WireType::client: return WireType::server;
    case WireType::radio: return WireType::dish;
    case WireType::dish: return WireType::radio;
    case WireType::gather: return WireType::scatter;
    case WireType::scatter: return WireType::gather;
    case WireType::pair:
    case WireType::stream:
    case WireType::dgram:
    case WireType::peer:
    case WireType::channel: return type;
  }
  return type;
}

void append_header(std::string& to, std::uint8_t flags, std::uint64_t size) {
  std::uint8_t header[zmtp::kFrameHeaderSizeMax];
  to.append(as_text(Bytes(header, zmtp::write_frame_header(header, flags, size))));
}

}  // namespace

void WsInbound::start(const Config& config) {
  config_ = config;
  identified_ = !config_.bare;
  greet();
}

void WsInbound::greet() {
  zmtp::Greeting greeting;
  greeting.minor = 0;
  greeting.set_mechanism(config_.mechanism);
  std::uint8_t bytes[zmtp::kGreetingSize];
  zmtp::write_greeting(bytes, greeting);
  pending_.append(as_text(Bytes(bytes)));
}

// In place of the READY that a peer without a mechanism does not send.
void WsInbound::append_ready(Bytes identity) {
  std::vector<std::uint8_t> body;
  zmtp::append_command_name(body, "READY");
  zmtp::append_property(body, "Socket-Type", as_bytes(zmtp::socket_type_name(usual_partner(config_.ours))));
  zmtp::append_property(body, "Identity", identity);
  append_header(pending_, zmtp::kCommand, body.size());
  pending_.append(as_text(body));
}

void WsInbound::fail(StaticText text, CloseStatus status, Errc code) noexcept {
  if (!fault_) {
    fault_ = Fault{Error(code, text), status};
  }
}

std::size_t WsInbound::give_pending(MutableBytes output) noexcept {
  const Bytes from = as_bytes(pending_).subspan(given_);
  const std::size_t size = std::min(from.size(), output.size());
  copy_bytes(output.data(), from.first(size));
  given_ += size;
  if (given_ == pending_.size()) {
    pending_.clear();
    given_ = 0;
  }
  return size;
}

WsInbound::Moved WsInbound::translate(Bytes input, MutableBytes output) {
  Moved moved;
  control_ = Control::none;
  while (!fault_ && control_ == Control::none) {
    const Bytes rest = input.subspan(moved.taken);
    const MutableBytes room = output.subspan(moved.made);
    if (!pending_.empty()) {
      if (room.empty()) {
        break;
      }
      moved.made += give_pending(room);
      continue;
    }
    if (state_ == State::joined) {
      const Bytes from = Bytes(joined_).subspan(joined_given_);
      const std::size_t size = std::min(from.size(), room.size());
      copy_bytes(room.data(), from.first(size));
      joined_given_ += size;
      moved.made += size;
      if (size < from.size()) {
        break;
      }
      joined_ = decltype(joined_)();
      state_ = State::header;
      continue;
    }
    if (rest.empty()) {
      break;
    }
    switch (state_) {
      case State::header: moved.taken += take_header(rest); break;
      case State::flags: {
        std::uint8_t flags = rest[0];
        if (frame_.mask) {
          flags ^= (*frame_.mask)[0];
        }
        ++moved.taken;
        offset_ = 1;
        if (!std::exchange(begun_, true) && config_.maybe_bare && flags == 0) {
          begin_identity();
        } else {
          begin_message(flags, frame_.body_size - 1);
        }
        break;
      }
      case State::body: {
        const auto size =
            static_cast<std::size_t>(std::min<std::uint64_t>({rest.size(), room.size(), frame_.body_size - offset_}));
        if (size == 0) {
          return moved;
        }
        frame_.mask ? copy_masked(room.data(), rest.first(size), *frame_.mask, offset_)
                    : copy_bytes(room.data(), rest.first(size));
        offset_ += size;
        moved.taken += size;
        moved.made += size;
        state_ = offset_ == frame_.body_size ? State::header : State::body;
        break;
      }
      case State::control: moved.taken += take_control(rest); break;
      case State::joining:
        if (waits()) {
          return moved;
        }
        moved.taken += join(rest);
        break;
      case State::joined: break;
    }
  }
  return moved;
}

std::size_t WsInbound::take_header(Bytes input) {
  std::size_t taken = 0;
  Parsed parsed;
  if (held_size_ == 0) {
    parsed = parse_header(input, config_.masked, frame_);
    taken = parsed.status == ParseStatus::complete ? frame_.header_size : 0;
  }
  while (parsed.status == ParseStatus::need_more && taken < input.size()) {
    held_[held_size_++] = input[taken++];
    parsed = parse_header(Bytes(held_).first(held_size_), config_.masked, frame_);
  }
  if (parsed.status == ParseStatus::malformed) {
    fail(parsed.problem);
  } else if (parsed.status == ParseStatus::complete) {
    held_size_ = 0;
    begin_frame();
  }
  return taken;
}

void WsInbound::begin_frame() {
  offset_ = 0;
  if (is_control(frame_.opcode) || (frame_.body_size == 0 && !frame_.last)) {
    ++idle_frames_;
  }
  if (is_control(frame_.opcode)) {
    control_size_ = 0;
    state_ = State::control;
    if (frame_.body_size == 0) {
      (void)take_control({});
    }
    return;
  }
  if (frame_.opcode == Opcode::text) {
    return fail("a WebSocket text message", CloseStatus::kind);
  }
  if ((frame_.opcode == Opcode::continuation) != inside_) {
    return fail(inside_ ? StaticText("a WebSocket message inside another")
                        : StaticText("a WebSocket continuation of no message"));
  }
  if (frame_.last && !inside_ && identified_) {
    state_ = State::flags;
    if (frame_.body_size == 0) {
      fail("a WebSocket message without its byte of flags");
    }
    return;
  }
  const std::uint64_t most = identified_ ? std::clamp<std::uint64_t>(config_.message_max, kCommandMax, kJoinedMax) + 1
                                         : zmtp::kIdentityMax + 1;
  if (frame_.body_size > most - joined_.size()) {
    return fail(identified_ ? StaticText("a WebSocket message in fragments exceeds its limit")
                            : StaticText("an identity of more than 255 bytes"),
                CloseStatus::size, identified_ ? Errc::message_too_large : Errc::protocol_error);
  }
  inside_ = !frame_.last;
  state_ = State::joining;
  if (frame_.body_size == 0) {
    (void)join({});
  }
}

// The peer speaks ZWS2.0 alone, and the flags of its identity are taken.
void WsInbound::begin_identity() {
  identified_ = false;
  joined_.assign(1, 0);
  state_ = State::joining;
  if (frame_.body_size > zmtp::kIdentityMax + 1) {
    fail("an identity of more than 255 bytes", CloseStatus::size);
  } else if (frame_.body_size == 1) {
    (void)join({});
  }
}

void WsInbound::begin_message(std::uint8_t flags, std::uint64_t size) {
  if ((flags & ~(kMoreFlag | kCommandFlag)) != 0) {
    return fail("a reserved flag of ZWS");
  }
  std::uint8_t zmtp_flags = 0;
  zmtp_flags |= (flags & kMoreFlag) != 0 ? zmtp::kMore : 0;
  zmtp_flags |= (flags & kCommandFlag) != 0 ? zmtp::kCommand : 0;
  if (zmtp_flags == (zmtp::kMore | zmtp::kCommand)) {
    return fail("a command with more parts");
  }
  append_header(pending_, zmtp_flags, size);
  state_ = size == 0 ? State::header : State::body;
}

std::size_t WsInbound::take_control(Bytes input) noexcept {
  const std::size_t size = std::min<std::size_t>(input.size(), frame_.body_size - offset_);
  if (frame_.mask) {
    copy_masked(&control_body_[control_size_], input.first(size), *frame_.mask, offset_);
  } else {
    copy_bytes(control_body_.data() + control_size_, input.first(size));
  }
  control_size_ = static_cast<std::uint8_t>(control_size_ + size);
  offset_ += size;
  if (offset_ == frame_.body_size) {
    state_ = State::header;
    switch (frame_.opcode) {
      case Opcode::ping: control_ = Control::ping; break;
      case Opcode::pong: control_ = Control::pong; break;
      default: check_close(); break;
    }
  }
  return size;
}

void WsInbound::check_close() noexcept {
  const CloseBody parsed = parse_close_body(control_body());
  if (parsed.problem != nullptr) {
    return fail(parsed.problem, parsed.answer);
  }
  control_ = Control::close;
}

// Fragments of a message, and the identity of the bare sub-protocol.
std::size_t WsInbound::join(Bytes input) {
  const std::size_t before = joined_.size();
  const std::size_t room = config_.unadmitted_max - std::min(config_.unadmitted_max, before);
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>({input.size(), room, frame_.body_size - offset_}));
  if (joined_.capacity() < before + size) {
    joined_.reserve(std::min(std::max(before + size, 2 * before), config_.unadmitted_max));
  }
  joined_.insert(joined_.end(), input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size));
  if (frame_.mask) {
    copy_masked(joined_.data() + before, Bytes(joined_).subspan(before), *frame_.mask, offset_);
  }
  offset_ += size;
  if (offset_ == frame_.body_size) {
    state_ = State::header;
    if (frame_.last) {
      end_joined();
    }
  }
  return size;
}

void WsInbound::end_joined() {
  if (joined_.empty()) {
    return fail("a WebSocket message without its byte of flags");
  }
  const std::uint8_t flags = joined_[0];
  const bool maybe_identity = !std::exchange(begun_, true) && config_.maybe_bare && flags == 0;
  if (std::exchange(identified_, true) && !maybe_identity) {
    begin_message(flags, joined_.size() - 1);
    joined_given_ = 1;
    state_ = State::joined;
    return;
  }
  if (flags != 0) {
    return fail("the first message of ZWS2.0 is no identity");
  }
  if (joined_.size() > zmtp::kIdentityMax + 1) {
    return fail("an identity of more than 255 bytes", CloseStatus::size);
  }
  append_ready(Bytes(joined_).subspan(1));
  joined_ = decltype(joined_)();
}

// --- reading a body to where it goes ---

std::size_t WsInbound::body_rest() const noexcept {
  return state_ == State::body && pending_.empty() && !fault_
             ? static_cast<std::size_t>(std::min<std::uint64_t>(frame_.body_size - offset_, SIZE_MAX))
             : 0;
}

void WsInbound::pass(MutableBytes bytes) noexcept {
  if (frame_.mask) {
    copy_masked(bytes.data(), bytes, *frame_.mask, offset_);
  }
  offset_ += bytes.size();
  if (offset_ == frame_.body_size) {
    state_ = State::header;
  }
}

}  // namespace weft::net::ws
