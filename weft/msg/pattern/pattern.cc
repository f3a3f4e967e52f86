// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/pattern.h"

#include "weft/msg/pattern/table.h"

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

Result<void> Pattern::subscribe(Bytes /*topic*/) {
  return Error(Errc::not_supported, "this socket type does not subscribe");
}
Result<void> Pattern::unsubscribe(Bytes /*topic*/) {
  return Error(Errc::not_supported, "this socket type does not subscribe");
}
Result<bool> Pattern::peer_writable(Bytes /*routing_id*/) {
  return Error(Errc::not_supported, "this socket type does not know its peers by name");
}
bool Pattern::handle_subscription(Pipe& /*pipe*/, bool /*subscribe*/, Bytes /*topic*/) { return true; }

void Pattern::probe(Pipe& pipe) {
  if (options_.probe_router && !pipe.notes.probed) {
    Outbound empty;
    pipe.notes.probed = pipe.try_send(empty, false);
  }
}

void Pattern::greet(Pipe& pipe) {
  if (!options_.hello_message.empty() && !pipe.notes.greeted) {
    Outbound hello{as_bytes(options_.hello_message), nullptr, false};
    pipe.notes.greeted = pipe.try_send(hello, false);
  }
  probe(pipe);
}

Error Pattern::refuse_more() noexcept {
  return {Errc::invalid_argument, "messages of this socket type are of one part"};
}

namespace {

constexpr PatternRow kTable[] = {
    {{SocketType::pair}, make_pair},
    {{.type = SocketType::pub, .receives = false, .takes_subscriptions = true}, make_publisher},
    {{.type = SocketType::sub, .sends = false}, make_subscriber},
    {{.type = SocketType::req, .one_lock = true}, make_req},
    {{.type = SocketType::rep, .one_lock = true}, make_rep},
    {{SocketType::dealer}, make_dealer},
    {{SocketType::router}, make_router},
    {{.type = SocketType::pull, .sends = false}, make_pull},
    {{.type = SocketType::push, .receives = false}, make_push},
    {{.type = SocketType::xpub, .takes_subscriptions = true}, make_publisher},
    {{SocketType::xsub}, make_subscriber},
    {{SocketType::stream}, make_stream},  // also of a raw ROUTER, with the traits of a ROUTER
    {{.type = SocketType::gather, .sends = false, .single_part = true}, make_pull},
    {{.type = SocketType::client, .single_part = true}, make_dealer},
    {{.type = SocketType::server, .single_part = true}, make_server},
    {{.type = SocketType::peer, .single_part = true}, make_server},
    {{.type = SocketType::radio, .receives = false, .single_part = true, .groups = true}, make_radio},
    {{.type = SocketType::dish, .sends = false, .single_part = true, .groups = true}, make_dish},
    {{.type = SocketType::channel, .single_part = true}, make_pair},
    {{.type = SocketType::scatter, .receives = false, .single_part = true}, make_push},
};

}  // namespace

const PatternRow* find_pattern(SocketType type) noexcept {
  for (const PatternRow& row : kTable) {
    if (row.traits.type == type) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace weft::msg
