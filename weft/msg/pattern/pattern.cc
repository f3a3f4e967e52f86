// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/pattern.h"

#include <new>

namespace weft::msg {

bool Pattern::ready(Pipe& /*pipe*/, Bytes /*identity*/) { return true; }
void Pattern::lost(Pipe& /*pipe*/) {}
void Pattern::activate(Pipe& /*pipe*/) {}
void Pattern::deactivate(Pipe& /*pipe*/) {}

Result<void> Pattern::send(Outbound& /*part*/) { return Error(Errc::not_supported, "this socket type does not send"); }
Result<void> Pattern::receive(Inbound& /*part*/) {
  return Error(Errc::not_supported, "this socket type does not receive");
}
bool Pattern::can_send() { return false; }
bool Pattern::can_receive() { return false; }

Result<void> Pattern::subscribe(const FilterView& /*topic*/) {
  return Error(Errc::not_supported, "this socket type does not subscribe");
}
Result<void> Pattern::unsubscribe(const FilterView& /*topic*/) {
  return Error(Errc::not_supported, "this socket type does not subscribe");
}
Result<std::size_t> Pattern::topics() { return Error(Errc::not_supported, "this socket type has no topics"); }
Result<bool> Pattern::peer_writable(Bytes /*routing_id*/) {
  return Error(Errc::not_supported, "this socket type does not know its peers by name");
}
Result<Pipe*> Pattern::find_peer(std::uint32_t /*routing_id*/) {
  return Error(Errc::not_supported, "this socket type does not know its peers by number");
}
Result<void> Pattern::handle_subscription(Pipe& /*pipe*/, bool /*subscribe*/, const FilterView& /*topic*/) {
  return {};
}
bool Pattern::sweep() { return false; }

void Pattern::probe(Pipe& pipe) {
  if (options_.probe_router && !pipe.notes.probed) {
    Outbound empty;
    pipe.notes.probed = offer_first(pipe, empty);
  }
}

bool Pattern::offer_first(Pipe& pipe, Outbound& part) {
  const Offered offered = pipe.try_send(part, false);
  if (offered.lacks_memory()) {
    throw std::bad_alloc();
  }
  return static_cast<bool>(offered);
}

void Pattern::send_hello(Pipe& pipe) {
  const FrozenOptions frozen = pipe.options();
  if (!frozen->hello_message.empty() && !pipe.notes.hello_sent) {
    Outbound hello{as_bytes(frozen->hello_message), nullptr, false};
    pipe.notes.hello_sent = offer_first(pipe, hello);
  }
  probe(pipe);
}

Error Pattern::refuse_more() noexcept {
  return {Errc::invalid_argument, "messages of this socket type are of one part"};
}

namespace {

constexpr PatternRow kPatternTable[] = {
#define WEFT_ROW(name, number, wire_name, maker, ...) \
  {{.type = SocketType::name, .wire = zmtp::WireType::wire_name __VA_OPT__(, ) __VA_ARGS__}, maker},
    WEFT_SOCKET_TYPES(WEFT_ROW)
#undef WEFT_ROW
};

}  // namespace

const PatternRow* find_pattern(SocketType type) noexcept {
  for (const PatternRow& row : kPatternTable) {
    if (row.traits.type == type) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace weft::msg
