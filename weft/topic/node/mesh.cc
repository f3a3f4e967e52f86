// SPDX-License-Identifier: MIT
// Node: the other handles of the fleet.
#include <algorithm>
#include <new>
#include <utility>

#include "weft/msg/message/monitor.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/net/endpoint.h"
#include "weft/sync/condition.h"
#include "weft/sys/clock.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

namespace {
constexpr std::size_t kGoneMax = 1024;
constexpr const char* kInner = ".inside";
}  // namespace

// --- connections ---

// The monitor calls on the I/O thread; the loop does the work.
void Node::watch_links() {
  in_.core()->monitor().set_sink([weak = weak_from_this()](const MonitorEvent& event) {
    switch (event.kind) {
      case EventKind::handshake_succeeded:
      case EventKind::disconnected:
      case EventKind::connect_failed:
      case EventKind::handshake_failed:
      case EventKind::pipe_statistics: break;
      default: return true;
    }
    const auto node = weak.lock();
    if (node == nullptr || node->closed()) {
      return true;
    }
    if (event.endpoint.empty()) {  // the monitor had no memory for it
      node->links_unsure_.store(true);
      node->mend_soon();
      return false;
    }
    try {
      if (event.kind == EventKind::pipe_statistics) {
        if (node->report_ != nullptr) {
          node->report_->push_back(event.endpoint);  // on the loop's thread, which asked for it
        }
        return true;
      }
      node->loop_->post([weak, endpoint = event.endpoint, kind = event.kind] {
        if (const auto still = weak.lock(); still != nullptr && !still->closed()) {
          still->handle_link_or_mend(endpoint, kind);
        }
      });
    } catch (const std::bad_alloc&) {
      node->links_unsure_.store(true);
      node->mend_soon();
      return false;
    }
    return true;
  });
}

void Node::handle_link_or_mend(const std::string& endpoint, EventKind kind) noexcept {
  try {
    handle_link(endpoint, kind);
  } catch (const std::bad_alloc&) {
    mend_soon();
  }
}

void Node::handle_link(const std::string& endpoint, EventKind kind) {
  const bool up = kind == EventKind::handshake_succeeded;
  std::uint64_t instance = 0;
  bool given = false;
  bool drop = false;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = links_.find(endpoint);
    if (found == links_.end() || !found->second.connected) {
      return;
    }
    Link& link = found->second;
    const Instant now = sys::now();
    if (!up && std::exchange(link.up, up)) {
      link.down_since = now;
    }
    link.up = up;
    link.failed = !up;
    link.failures = up ? 0 : std::min(link.failures + 1, kLearnedFailures);
    instance = link.instance;
    given = link.given;
    if (up) {
      lost_.found(instance);
    } else if (instance != 0) {
      lost_.note(instance);
      note_parted(instance);
      forget_peer(instance);
      drop = !given && fleet_.kind == Fleet::Kind::tcp && now - link.down_since > kLearnedKept;
    }
  }
  if (up) {
    (void)tell_soon(instance, true);
  } else if (given) {
    scout_again(endpoint);
  } else if (fleet_.kind == Fleet::Kind::local && instance != 0) {
    drop = !directory_->is_listening(instance);
  }
  if (drop) {
    drop_link(endpoint);
  }
  mesh_changed();
}

// A fleet that is full of peers that only rosters name, and that do not answer, has room for one that connects.
std::string Node::yielding_link() const {
  const auto found = std::find_if(links_.begin(), links_.end(), [](const auto& each) {
    return !each.second.given && !each.second.up && each.second.failed;
  });
  return found == links_.end() ? std::string() : found->first;
}

Result<void> Node::connect_link(const std::string& endpoint, std::uint64_t instance, bool given) {
  const std::lock_guard link_lock(link_mutex_);
  const std::string yields = with_mesh([&] {
    in_mesh();
    return links_.size() >= kPeersMax && !links_.contains(endpoint) ? yielding_link() : std::string();
  });
  if (!yields.empty()) {
    drop_link(yields);
  }
  {
    const sync::LockGuard lock(mesh_mutex_);
    if (instance != 0 && gone_.contains(instance)) {
      return {};
    }
    if (const auto found = links_.find(endpoint); found != links_.end()) {
      Link& link = found->second;
      link.given |= given;
      if (instance != 0 && link.connected && link.instance != instance && !link.other_name) {
        forget_peer(link.instance);  // another handle listens there
        link.instance = instance;
      }
      return {};
    }
    for (const auto& [known, link] : links_) {
      if (instance != 0 && link.instance == instance && link.connected) {
        return {};
      }
    }
    if (links_.size() >= kPeersMax) {
      return {};
    }
    Link& link = links_[endpoint];
    link.instance = instance;
    link.given = given;
    link.connected = instance != 0;
    link.down_since = sys::now();
  }
  const Result<void> begun = msg::or_no_memory([&]() -> Result<void> {
    if (instance != 0) {
      return in_.connect(endpoint);
    }
    loop_->post([weak = weak_from_this(), endpoint] {
      if (const auto node = weak.lock(); node != nullptr && !node->closed()) {
        node->begin_scout(endpoint);
      }
    });
    return {};
  });
  if (!begun) {
    const sync::LockGuard lock(mesh_mutex_);
    links_.erase(endpoint);
  }
  return begun;
}

void Node::drop_link(const std::string& endpoint, bool replaced) noexcept {
  const std::lock_guard link_lock(link_mutex_);
  std::uint64_t instance = 0;
  {
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = links_.find(endpoint);
    if (found == links_.end()) {
      return;
    }
    instance = found->second.other_name || replaced ? 0 : found->second.instance;
    links_.erase(found);
    if (instance != 0) {
      forget_peer(instance);
    }
  }
  pump_all();
  (void)in_.disconnect(endpoint);
  try {
    loop_->post([weak = weak_from_this(), endpoint] {
      if (const auto node = weak.lock(); node != nullptr) {
        node->end_scout(endpoint);
      }
    });
  } catch (const std::bad_alloc&) {
    mesh_changed();  // the scout finds no link when it comes back
  }
  mesh_changed();
}

void Node::forget_peer(std::uint64_t instance) {
  if (const auto found = peers_.find(instance); found != peers_.end()) {
    roster_bytes_ -= found->second.bytes;
    peers_.erase(found);
  }
  end_requests_to(instance);
  for (auto& [id, claim] : claims_) {
    claim.waiting.erase(instance);
  }
  for (auto& [id, probe] : own_probes_) {
    probe.counts.erase(instance);
  }
  // Its probes stay until their deadlines: they came over the peer's own connection, which may stand.
}

Result<void> Node::met(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  if (!async()) {
    return meet(instance, inproc_endpoint, inner);
  }
  loop_->post([weak = weak_from_this(), instance, inproc_endpoint, inner] {
    const auto node = weak.lock();
    if (node != nullptr && !node->closed() &&
        !msg::or_no_memory([&] { return node->meet(instance, inproc_endpoint, inner); })) {
      node->mend_soon();  // meets every handle that has joined
    }
  });
  return {};
}

void Node::parted(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  if (!async()) {
    part(instance, inproc_endpoint);
    return;
  }
  try {
    loop_->post([weak = weak_from_this(), instance, inproc_endpoint] {
      if (const auto node = weak.lock(); node != nullptr && !node->closed()) {
        node->part(instance, inproc_endpoint);
      }
    });
  } catch (const std::bad_alloc&) {
    // The other end takes the connection down.
    const std::lock_guard link_lock(link_mutex_);
    {
      const sync::LockGuard lock(mesh_mutex_);
      lost_.note(instance);
      links_.erase(inproc_endpoint);
      forget_peer(instance);
    }
    mesh_changed();
  }
}

Result<void> Node::meet(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  WEFT_TRY(link_inproc(instance, inproc_endpoint, inner));
  return greet(instance);
}
Result<void> Node::greet(std::uint64_t to) { return tell_soon(to, true) ? Result<void>() : msg::kNoMemoryToSend; }

// Each connection that fails is made by the next call: a link that stands may lack the one to the inner socket.
Result<void> Node::link_inproc(std::uint64_t instance, const std::string& inproc_endpoint, bool inner) {
  const std::lock_guard link_lock(link_mutex_);
  bool stands = false;
  std::string instead;  // of this connection to the same handle
  {
    const sync::LockGuard lock(mesh_mutex_);
    for (const auto& [known, link] : links_) {
      if (link.instance == instance && link.connected && known != inproc_endpoint) {
        instead = known;
      } else if (link.instance == instance && link.connected) {
        stands = true;
        inner = inner && !link.inner;
      }
    }
  }
  if (!stands && !instead.empty()) {
    drop_link(instead, true);
  }
  if (!stands) {
    WEFT_TRY(connect_link(inproc_endpoint, instance, false));
    const sync::LockGuard lock(mesh_mutex_);
    const auto found = links_.find(inproc_endpoint);
    if (found == links_.end()) {
      return gone_.contains(instance) || links_.size() >= kPeersMax ? Result<void>() : msg::kNoMemoryToSend;
    }
    lost_.found(instance);
    found->second.up = true;  // an inproc connection stands at once
  }
  if (inner) {
    WEFT_TRY(in_.connect(inproc_endpoint + kInner));
    const sync::LockGuard lock(mesh_mutex_);
    links_.at(inproc_endpoint).inner = true;  // the link lock keeps it
  }
  return {};
}

void Node::part(std::uint64_t instance, const std::string& inproc_endpoint) noexcept {
  pump_all();
  (void)msg::or_no_memory([&]() -> Result<void> {
    const sync::LockGuard lock(mesh_mutex_);
    lost_.note(instance);
    if (gone_.size() >= kGoneMax) {
      gone_.clear();  // peers that left long ago are in no roster any longer
    }
    gone_.insert(instance);
    return {};
  });
  (void)msg::or_no_memory([&] { return in_.disconnect(inproc_endpoint + kInner); });
  drop_link(inproc_endpoint);
}

Result<void> Node::add_peer(std::string_view endpoint) {
  if (fleet_.kind != Fleet::Kind::tcp) {
    return Error(Errc::not_supported, "only a tcp fleet has listed peers");
  }
  return msg::or_no_memory([&]() -> Result<void> {
    const net::Endpoint parsed = WEFT_TRY(net::parse_endpoint(endpoint, false));
    if (fleet_.tls && parsed.transport != net::Transport::tls_tcp) {
      return Error(Errc::invalid_argument, "every endpoint of a tls+tcp fleet is tls+tcp://");
    }
    return connect_link(parsed.text(), 0, true);
  });
}

Result<void> Node::remove_peer(std::string_view endpoint) {
  return msg::or_no_memory([&]() -> Result<void> {
    const std::string text = WEFT_TRY(net::parse_endpoint(endpoint, false)).text();
    {
      const sync::LockGuard lock(mesh_mutex_);
      const auto found = links_.find(text);
      // One that only sent its endpoint is not listed. A removed peer may send it at once.
      if (found == links_.end() || !std::exchange(found->second.given, false)) {
        return Error(Errc::no_such_endpoint, "no peer is listed at this endpoint");
      }
    }
    drop_link(text);
    return {};
  });
}

// --- waiting for the mesh ---

void Node::mesh_changed() noexcept {
  {
    const sync::LockGuard lock(mesh_mutex_);
  }
  mesh_cv_.notify_all();
  if (async()) {
    mesh_event_.pulse();
  }
}

Result<void> Node::wait_mesh_for(Instant deadline, const std::function<bool()>& done) {
  sync::UniqueLock lock(mesh_mutex_);
  while (!done()) {
    if (closed()) {
      return Error(Errc::closed, "the handle of topics was closed");
    }
    if (!sync::sleep_until(mesh_cv_, lock, deadline)) {
      return Error(Errc::timed_out, "the fleet did not come so far in time");
    }
  }
  return {};
}

// A peer that only rosters name and that repeatedly cannot be reached has left without a word.
bool Node::settled(std::uint64_t ask) const {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& each) {
    in_mesh();
    const Link& link = each.second;
    const auto peer = peers_.find(link.instance);
    const bool left = !link.given && link.failures >= kLearnedFailures;
    return link.other_name || left ||
           (link.up && (link.plain || (peer != peers_.end() && peer->second.our_ask >= ask)));
  });
}
bool Node::told_all() const {
  return std::all_of(links_.begin(), links_.end(), [&](const auto& each) {
    in_mesh();
    const Link& link = each.second;
    const auto peer = peers_.find(link.instance);
    return link.other_name || link.failed || link.plain || (peer != peers_.end() && peer->second.answered);
  });
}

std::vector<NodeInfo> Node::members() {
  const sync::LockGuard lock(mesh_mutex_);
  std::vector<NodeInfo> all;
  for (const auto& [instance, peer] : peers_) {
    all.push_back({instance, peer.roster.node, peer.roster.endpoint, peer.lease});
  }
  return all;
}

}  // namespace weft::topic
