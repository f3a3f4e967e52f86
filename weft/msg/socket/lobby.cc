// SPDX-License-Identifier: MIT
#include "weft/msg/socket/lobby.h"

#include <new>
#include <utility>

namespace weft::msg {

void Lobby::enter(std::unique_ptr<net::Stream> stream, AcceptBounds::Place place) {
  auto seat = std::make_unique<Seat>(*this, Guest{{std::move(stream), loop_.now()}, std::move(place)});
  Accepted& peer = seat->guest.peer;
  if (!opening_.empty()) {
    const Bytes opening(opening_);
    const sys::IoResult written = peer.stream->write({&opening, 1});
    peer.greeted = written.status == sys::IoResult::Status::done ? written.bytes : 0;
  }
  // Edge-triggered: bytes that came before count as an edge.
  constexpr auto kInterest = sys::Interest::readable | sys::Interest::peer_closed;
  const auto watch = loop_.watch(peer.stream->fd(), kInterest, true, seat.get());
  seat->watch = watch ? *watch : 0;
  seats_.push_back(*seat);
  ++size_;
  if (!watch || !await_late()) {
    leave(*seat.release());  // its new owner reports failures
  } else {
    (void)seat.release();  // the list's
  }
}

void Lobby::close() noexcept {
  const bool inherited = birth_.elsewhere();
  while (Seat* const seat = seats_.pop_front()) {
    const std::unique_ptr<Seat> owned(seat);
    if (!inherited) {
      loop_.unwatch(seat->watch);
    }
  }
  size_ = 0;
  if (late_timer_ && !inherited) {
    (void)loop_.timers().cancel(std::exchange(late_timer_, {}));
  }
}

Lobby::Guest Lobby::take(Seat& seat) noexcept {
  const std::unique_ptr<Seat> owned(&seat);
  seat.unhook();
  loop_.unwatch(seat.watch);
  if (--size_ == 0 && late_timer_) {  // an empty lobby wakes no thread
    (void)loop_.timers().cancel(std::exchange(late_timer_, {}));
  }
  return std::move(seat.guest);
}

void Lobby::leave(Seat& seat) noexcept {
  try {
    handlers_.handle(take(seat));
  } catch (const std::bad_alloc&) {
    handlers_.lost();
  }
}

// A timer for the first peer, if there is none yet. Returns false if there is no memory.
bool Lobby::await_late() noexcept {
  if (patience_ == Duration::zero() || late_timer_) {
    return true;
  }
  late_timer_ = loop_.timers().schedule(deadline_after(seats_.front().guest.peer.since, patience_),
                                        {[](void* self) { static_cast<Lobby*>(self)->handle_late(); }, this});
  return static_cast<bool>(late_timer_);
}

void Lobby::handle_late() noexcept {
  late_timer_ = {};
  for (int i = 0; i < kLateAtOnce && !seats_.empty() && seats_.front().guest.peer.since + patience_ <= loop_.now();
       ++i) {
    leave(seats_.front());
  }
  while (!seats_.empty() && !await_late()) {
    leave(seats_.front());
  }
}

}  // namespace weft::msg
