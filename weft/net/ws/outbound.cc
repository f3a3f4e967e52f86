// SPDX-License-Identifier: MIT
#include "weft/net/ws/outbound.h"

#include <algorithm>
#include <utility>

#include "weft/base/assert.h"
#include "weft/net/ws/inbound.h"
#include "weft/zmtp/command.h"

namespace weft::net::ws {

void WsOutbound::start(std::unique_ptr<Masks> masks, bool bare) noexcept {
  masks_ = std::move(masks);
  bare_ = bare;
  rest_ = zmtp::kGreetingSize;
}

WsOutbound::Moved WsOutbound::translate(Bytes input, MutableBytes output) {
  Bytes rest = input;
  std::size_t made = 0;
  while (!rest.empty()) {
    std::uint8_t* const to = output.data() + made;
    if (state_ == State::greeting) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), rest_));
      rest = rest.subspan(size);
      rest_ -= size;
      state_ = rest_ == 0 ? State::header : State::greeting;
      continue;
    }
    if (output.size() - made < kRoomMin || may_lend(rest.size())) {
      break;
    }
    switch (state_) {
      case State::greeting: break;
      case State::header:
        if (take_header(rest)) {
          made += begin_frame(to);
        }
        break;
      case State::hidden: made += take_hidden(rest, to); break;
      case State::body: {
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>({rest.size(), output.size() - made, rest_}));
        mask_ ? copy_masked(to, rest.first(size), *mask_, frame_.body_size - rest_ + 1)
              : copy_bytes(to, rest.first(size));
        rest = rest.subspan(size);
        made += size;
        pass(size);
        break;
      }
    }
  }
  return {input.size() - rest.size(), made};
}

// Returns false if the header is incomplete, and all input is taken.
bool WsOutbound::take_header(Bytes& input) {
  ParseStatus status = ParseStatus::need_more;
  if (held_size_ == 0) {
    status = zmtp::parse_frame_header(input, frame_);
    if (status == ParseStatus::complete) {
      input = input.subspan(frame_.header_size);
    }
  }
  while (status == ParseStatus::need_more && !input.empty()) {
    held_[held_size_++] = input[0];
    input = input.subspan(1);
    status = zmtp::parse_frame_header(Bytes(held_).first(held_size_), frame_);
  }
  WEFT_ASSERT(status != ParseStatus::malformed);  // our own end wrote it
  if (status != ParseStatus::complete) {
    return false;
  }
  held_size_ = 0;
  return true;
}

std::size_t WsOutbound::begin_frame(std::uint8_t* to) {
  rest_ = frame_.body_size;
  if (bare_) {
    state_ = State::hidden;
    return 0;
  }
  mask_ = next_mask();
  std::size_t size = write_header(to, Opcode::binary, frame_.body_size + 1, mask_);
  std::uint8_t flags = 0;
  flags |= (frame_.flags & zmtp::kMore) != 0 ? kMoreFlag : 0;
  flags |= (frame_.flags & zmtp::kCommand) != 0 ? kCommandFlag : 0;
  to[size++] = static_cast<std::uint8_t>(mask_ ? flags ^ (*mask_)[0] : flags);
  state_ = rest_ == 0 ? State::header : State::body;
  return size;
}

// The commands of our handshake. READY has our identity, which is the first message of the bare sub-protocol.
std::size_t WsOutbound::take_hidden(Bytes& input, std::uint8_t* to) {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), rest_));
  hidden_.insert(hidden_.end(), input.begin(), input.begin() + static_cast<std::ptrdiff_t>(size));
  input = input.subspan(size);
  rest_ -= size;
  if (rest_ != 0) {
    return 0;
  }
  state_ = State::header;
  const std::vector<std::uint8_t> body = std::exchange(hidden_, {});
  zmtp::Command command;
  if (zmtp::parse_command(body, command) != ParseStatus::complete || command.name != "READY") {
    return 0;
  }
  bare_ = false;
  Bytes identity;
  zmtp::Property property;
  for (Bytes left = command.data; !left.empty() && zmtp::take_property(left, property) == ParseStatus::complete;) {
    identity = zmtp::same_name(property.name, "Identity") ? property.value : identity;
  }
  WEFT_ASSERT(identity.size() <= zmtp::kIdentityMax);
  const auto mask = next_mask();
  std::size_t made = write_header(to, Opcode::binary, identity.size() + 1, mask);
  to[made++] = mask ? (*mask)[0] : std::uint8_t{0};
  mask ? copy_masked(to + made, identity, *mask, 1) : copy_bytes(to + made, identity);
  return made + identity.size();
}

void WsOutbound::pass(std::size_t size) noexcept {
  rest_ -= size;
  state_ = rest_ == 0 ? State::header : State::body;
}

std::size_t WsOutbound::write_control(std::uint8_t* to, Opcode opcode, Bytes body) {
  const auto mask = next_mask();
  const std::size_t size = write_header(to, opcode, body.size(), mask);
  mask ? copy_masked(to + size, body, *mask, 0) : copy_bytes(to + size, body);
  return size + body.size();
}

}  // namespace weft::net::ws
