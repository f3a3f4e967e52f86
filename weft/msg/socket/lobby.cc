// SPDX-License-Identifier: MIT
#include "weft/msg/socket/lobby.h"

#include <new>
#include <utility>

namespace weft::msg {

void Lobby::enter(std::unique_ptr<net::ByteStream> stream, AcceptBounds::Place place) {
  auto entry = std::make_unique<Entry>(*this, Pending{{std::move(stream), loop_.now()}, std::move(place)});
  Accepted& peer = entry->pending.peer;
  if (!opening_.empty()) {
    const Bytes opening(opening_);
    const sys::IoResult written = peer.stream->write({&opening, 1});
    peer.greeting_written = written.status == sys::IoResult::Status::done ? written.bytes : 0;
  }
  // Edge-triggered: bytes that came before count as an edge.
  constexpr auto kInterest = sys::Interest::readable | sys::Interest::peer_closed;
  const auto watch = loop_.watch(peer.stream->fd(), kInterest, true, entry.get());
  entry->watch = watch ? *watch : 0;
  entries_.push_back(*entry);
  ++size_;
  if (!watch || !await_late()) {
    leave(*entry.release());  // its new owner reports failures
  } else {
    (void)entry.release();  // the list's
  }
}

void Lobby::close() noexcept {
  const bool inherited = birth_.elsewhere();
  while (Entry* const entry = entries_.pop_front()) {
    const std::unique_ptr<Entry> owned(entry);
    if (!inherited) {
      loop_.unwatch(entry->watch);
    }
  }
  size_ = 0;
  if (late_timer_ && !inherited) {
    (void)loop_.timers().cancel(std::exchange(late_timer_, {}));
  }
}

Lobby::Pending Lobby::take(Entry& entry) noexcept {
  const std::unique_ptr<Entry> owned(&entry);
  entry.unhook();
  loop_.unwatch(entry.watch);
  if (--size_ == 0 && late_timer_) {  // an empty lobby wakes no thread
    (void)loop_.timers().cancel(std::exchange(late_timer_, {}));
  }
  return std::move(entry.pending);
}

void Lobby::leave(Entry& entry) noexcept {
  try {
    handlers_.handle(take(entry));
  } catch (const std::bad_alloc&) {
    handlers_.lost();
  }
}

// A timer for the first peer, if there is none yet. Returns false if there is no memory.
bool Lobby::await_late() noexcept {
  if (patience_ == Duration::zero() || late_timer_) {
    return true;
  }
  late_timer_ = loop_.timers().schedule(deadline_after(entries_.front().pending.peer.since, patience_),
                                        {[](void* self) { static_cast<Lobby*>(self)->handle_late(); }, this});
  return static_cast<bool>(late_timer_);
}

void Lobby::handle_late() noexcept {
  late_timer_ = {};
  for (int i = 0;
       i < kLateAtOnce && !entries_.empty() && entries_.front().pending.peer.since + patience_ <= loop_.now(); ++i) {
    leave(entries_.front());
  }
  while (!entries_.empty() && !await_late()) {
    leave(entries_.front());
  }
}

}  // namespace weft::msg
