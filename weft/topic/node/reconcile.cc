// SPDX-License-Identifier: MIT
// Node: the work of the loop that any thread requests, and the pass that repairs the steps that failed without memory
// and without a report: a connection whose end or beginning was not noted, a handle of this process without a link, a
// scout that did not start. Messages that a peer missed are sent again by the rule of Resend.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// Memory that ran out comes back with time: so the pass waits.
void Node::handle_work() noexcept {
  if (closed()) {
    return;
  }
  const unsigned work = loop_.take(NodeLoop::kRepair | NodeLoop::kResend);
  if ((work & NodeLoop::kReadIn) != 0) {
    lead_.read_turn();
  }
  if ((work & NodeLoop::kReadOut) != 0) {
    control_.read();
  }
  if ((work & NodeLoop::kScouts) != 0 && !or_no_memory([&] { return links_.reconcile_scouts(); })) {
    repair_soon();
  }
  if ((work & NodeLoop::kExchange) != 0) {
    exchange();
  }
  const unsigned waiting = closed() ? 0 : loop_.requested();
  if ((waiting & NodeLoop::kRepair) != 0 && !repair_timer_.start()) {
    loop_.turn_again();
  }
  const Duration resend_wait = with_mesh([](MeshState& mesh) { return mesh.resend().wait(); });
  if ((waiting & NodeLoop::kResend) != 0 && !resend_timer_.start(resend_wait)) {
    loop_.turn_again();
  }
}

void Node::repair(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.loop_.take_back(NodeLoop::kRepair);
  if (node.closed() || node.sockets_.in().core()->terminated()) {
    return;
  }
  const Result<void> done = or_no_memory([&] { return node.reconcile(); });
  const bool again = !done && done.error() == Errc::resource_exhausted;
  if (again || (node.loop_.requested() & NodeLoop::kRepair) != 0) {
    node.repair_timer_.lengthen();
  } else {
    node.repair_timer_.shorten();
  }
  if (again) {
    node.repair_soon();
  }
}

Result<void> Node::reconcile() {
  counters_.control_lost += control_.retry() ? 0 : 1;
  control_.read();
  pump_.read_all();
  if (!joined_.load(std::memory_order_acquire)) {
    return Error(Errc::resource_exhausted, "the handle is not open yet");
  }
  WEFT_TRY(links_.compare());
  WEFT_TRY(ProcessFleets::instance().link_all(*this));
  sweep_.restart(0);
  sweep(this);
  WEFT_TRY(read_directory(false));
  WEFT_TRY(links_.reconcile_scouts());
  links_.scout_failed();
  interest_changed();
  with_mesh([](MeshState& mesh) { mesh.request_exchange(0, true); });
  exchange();
  return {};
}

void Node::resend(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.loop_.take_back(NodeLoop::kResend);
  if (node.closed() || node.sockets_.in().core()->terminated()) {
    return;
  }
  const Result<Resend::End> end = or_no_memory([&] { return node.resend_now(); });
  if (node.with_mesh([&](MeshState& mesh) { return mesh.resend().end_turn(end ? *end : Resend::End::failed); })) {
    node.resend_soon();
  }
}

Result<Resend::End> Node::resend_now() {
  const auto window = static_cast<std::size_t>(options_.peer_messages_max);
  const std::vector<Control> turn = with_mesh([&](MeshState& mesh) { return mesh.resend_turn(window, sys::now()); });
  for (const Control& control : turn) {
    const Result<bool> sent = try_send_control(control);
    if (!sent && sent.error() == Errc::resource_exhausted) {
      return sent.error();
    }
    with_mesh([&](MeshState& mesh) { mesh.resend().note_sent(control, sent && !*sent); });
  }
  const std::size_t room = WEFT_TRY(probes_.answer_some(window - turn.size()));
  return room == 0 ? Resend::End::more : Resend::End::finished;
}

}  // namespace weft::topic
