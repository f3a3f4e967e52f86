// SPDX-License-Identifier: MIT
// Node: repairs the steps that failed without memory and without a report: a connection whose end or beginning was not
// noted, a handle of this process that was not met, a scout that did not start, words that peers did not get. Peers
// that missed words because they did not read get them again by another rule, and seldom.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
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
  if (node.retells_.load()) {
    node.retell_later();
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
  const Result<void> mended = msg::or_no_memory([&] { return node.mend_now(); });
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
  WEFT_TRY(ProcessFleets::instance().meet_all(*this));
  sweep_wait_ = kSweepFirst;
  sweep_voices(this);
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
  std::vector<std::string> unscouted;
  std::vector<std::string> ended;
  {
    const sync::LockGuard lock(mesh_mutex_);
    for (const auto& [endpoint, link] : links_) {
      if (!link.connected && !link.other_name && !scouts_.contains(endpoint)) {
        unscouted.push_back(endpoint);
      } else if (link.connected && link.failed && link.given) {
        ended.push_back(endpoint);
      }
    }
  }
  for (const std::string& endpoint : unscouted) {
    begin_scout(endpoint);
  }
  for (const std::string& endpoint : ended) {
    scout_again(endpoint);
  }
  interest_changed();
  {
    const sync::LockGuard lock(mesh_mutex_);
    greets_ = true;
    tells_to_ = 0;
  }
  tell_now();
  say_unsaid();
  return {};
}

// Any thread, with any lock except the mesh lock. It allocates nothing.
void Node::retell_soon() noexcept {
  if (mend_event_ && !retells_.exchange(true)) {
    mend_event_->signal();
  }
}

void Node::retell_later() noexcept {
  if (closed() || retell_timer_) {
    return;
  }
  retell_timer_ = loop_->timers().schedule(loop_->now() + retell_wait_, {&Node::retell, this});
  if (!retell_timer_) {
    mend_event_->signal();  // the next turn tries again
  }
}

// While a peer does not read, the waits grow up to kRetellLast: no longer than the peer did not read.
void Node::retell(void* self) {
  Node& node = *static_cast<Node*>(self);
  node.retell_timer_ = {};
  node.retells_.store(false);
  if (node.closed() || node.in_.core()->terminated()) {
    return;
  }
  if (!msg::or_no_memory([&] { return node.retell_now(); })) {
    node.mend_soon();
  }
  node.retell_wait_ = node.retells_.load() ? std::min(2 * node.retell_wait_, kRetellLast) : kMendFirst;
}

Result<void> Node::retell_now() {
  tell_roster(0);
  std::vector<std::uint64_t> silent;
  {
    const sync::LockGuard lock(mesh_mutex_);
    for (const auto& [endpoint, link] : links_) {
      const auto peer = peers_.find(link.instance);
      if (link.up && link.instance != 0 && (peer == peers_.end() || peer->second.our_ask < ask_)) {
        silent.push_back(link.instance);
      }
    }
    for (PeerProbe& probe : peer_probes_) {
      probe.told = ~std::uint64_t{0};
    }
  }
  for (const std::uint64_t to : silent) {
    WEFT_TRY(want_rosters(to));
  }
  WEFT_TRY(resend_probes(true));
  WEFT_TRY(resend_claims());
  WEFT_TRY(answer_probes());
  say_unsaid();
  return {};
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
  std::vector<std::pair<std::string, EventKind>> changes;
  {
    const sync::LockGuard lock(mesh_mutex_);
    for (const auto& [endpoint, link] : links_) {
      const bool up = std::find(stand.begin(), stand.end(), endpoint) != stand.end();
      if (link.connected && !endpoint.starts_with("inproc:") && up != link.up) {
        changes.emplace_back(endpoint, up ? EventKind::handshake_succeeded : EventKind::disconnected);
      }
    }
  }
  for (const auto& [endpoint, kind] : changes) {
    handle_link_or_mend(endpoint, kind);
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
