// SPDX-License-Identifier: MIT
// Node: repairs the steps that failed without memory and without a report: a connection whose end or beginning was not
// noted, a handle of this process that was not linked, a scout that did not start. Messages that a peer missed are sent
// again by the rule of Resend.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// Any thread, with any lock except the mesh lock. It allocates nothing.
void Node::mend_soon() noexcept {
  if (mend_event_ && !mends_.exchange(true)) {
    mend_event_->signal();
  }
}

void Node::Mender::handle_event(const sys::PollEvent& /*event*/) {
  node.mend_event_->drain();
  if (node.mends_.load()) {
    node.mend_later();
  }
  if (node.resends_.load()) {
    node.resend_later();
  }
}

// Memory that ran out comes back with time.
void Node::mend_later() noexcept {
  if (closed() || mend_timer_) {
    return;
  }
  mend_timer_ = loop_->timers().schedule(loop_->now() + mend_wait_, {&Node::mend, this});
  if (!mend_timer_) {
    mend_event_->signal();  // the next turn tries again
  }
}

void Node::mend(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.mend_timer_ = {};
  node.mends_.store(false);
  if (node.closed() || node.in_.core()->terminated()) {
    return;
  }
  const Result<void> mended = or_no_memory([&] { return node.mend_now(); });
  const bool again = !mended && mended.error() == Errc::resource_exhausted;
  node.mend_wait_ = again || node.mends_.load() ? std::min(2 * node.mend_wait_, kMendLast) : kMendFirst;
  if (again) {
    node.mend_soon();
  }
}

Result<void> Node::mend_now() {
  take_held();
  handle_out();
  pump_all();
  if (!joined_.load(std::memory_order_acquire)) {
    return Error(Errc::resource_exhausted, "the handle is not open yet");
  }
  WEFT_TRY(compare_links());
  WEFT_TRY(ProcessFleets::instance().link_all(*this));
  sweep_wait_ = kSweepFirst;
  sweep(this);
  if (fleet_.kind == Fleet::Kind::local) {
    WEFT_TRY(read_directory(false));
  }
  if (scouts_unsure_.exchange(false)) {
    std::vector<std::string> anew;
    for (const auto& [endpoint, scout] : scouts_) {
      if (!scout->timer) {
        anew.push_back(endpoint);
      }
    }
    std::for_each(anew.begin(), anew.end(), [this](const std::string& endpoint) { end_scout(endpoint); });
  }
  for (const std::string& endpoint : with_mesh([](const MeshState& mesh) { return mesh.links().unconnected(); })) {
    begin_scout(endpoint);
  }
  for (const std::string& endpoint : with_mesh([](const MeshState& mesh) { return mesh.links().failed_given(); })) {
    scout_again(endpoint);
  }
  interest_changed();
  with_mesh([](MeshState& mesh) { return mesh.request_exchange(0, true); });
  exchange();
  return {};
}

// Any thread, with any lock except the mesh lock. It allocates nothing.
void Node::resend_soon() noexcept {
  if (mend_event_ && !resends_.exchange(true)) {
    mend_event_->signal();
  }
}

void Node::resend_later() noexcept {
  if (closed() || resend_timer_) {
    return;
  }
  const Duration wait = with_mesh([](MeshState& mesh) { return mesh.resend().wait(); });
  resend_timer_ = loop_->timers().schedule(loop_->now() + wait, {&Node::resend, this});
  if (!resend_timer_) {
    mend_event_->signal();  // the next turn tries again
  }
}

void Node::resend(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.resend_timer_ = {};
  node.resends_.store(false);
  if (node.closed() || node.in_.core()->terminated()) {
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
  const std::size_t room = WEFT_TRY(answer_probes(0, 0, window - turn.size()));
  return room == 0 ? Resend::End::more : Resend::End::finished;
}

// An event of a connection was lost: the socket returns its present connections.
Result<void> Node::compare_links() {
  if (!links_unsure_.exchange(false)) {
    return {};
  }
  std::vector<std::string> stand;
  report_ = &stand;
  const Result<void> reported = in_.core()->report_pipes();
  report_ = nullptr;
  if ((!reported && reported.error() != Errc::would_block) || links_unsure_.load()) {
    links_unsure_.store(true);
    return reported || reported.error() == Errc::would_block ? Result<void>(msg::kNoMemoryToSend) : reported;
  }
  const auto changes = with_mesh([&](const MeshState& mesh) { return mesh.links().differing(stand); });
  for (const auto& [endpoint, up] : changes) {
    handle_link_or_mend(endpoint, up ? EventKind::handshake_succeeded : EventKind::disconnected);
  }
  return {};
}

// A message of a peer, and the messages after it, wait for memory: the peer may never repeat it.
void Node::hold(Message&& message) noexcept {
  held_ = std::move(message);
  held_tries_ = 0;
  loop_->unwatch(std::exchange(out_watch_, 0));
  mend_soon();
}

void Node::take_held() noexcept {
  if (held_.empty()) {
    return;
  }
  if (!take_control(held_)) {
    if (++held_tries_ < kHeldTries) {
      mend_soon();
      return;
    }
    ++counters_.control_lost;
  }
  held_ = Message();
  watch_out();
}

void Node::watch_out() noexcept {
  const auto fd = out_.core()->descriptor();
  const auto watch =
      fd ? loop_->watch(*fd, sys::Interest::readable, false, &out_watcher_) : Result<rt::Loop::WatchId>(fd.error());
  out_watch_ = watch ? *watch : 0;
}

}  // namespace weft::topic
