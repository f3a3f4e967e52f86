// SPDX-License-Identifier: MIT
#include "weft/msg/socket/lobby.h"

#include <new>
#include <utility>

#include "weft/base/assert.h"

namespace weft::msg {

Lobby::~Lobby() { WEFT_ASSERT(seats_.empty()); }

void Lobby::enter(std::unique_ptr<net::Stream> stream, AcceptBounds::Place place) {
  auto seat = std::make_unique<Seat>(*this, Guest{std::move(stream), std::move(place), loop_.now(), 0});
  Guest& guest = seat->guest;
  if (!opening_.empty()) {
    const Bytes opening(opening_);
    const sys::IoResult written = guest.stream->write({&opening, 1});
    guest.greeted = written.status == sys::IoResult::Status::done ? written.bytes : 0;
  }
  // Edge-triggered: bytes that came before count as an edge.
  constexpr auto kInterest = sys::Interest::readable | sys::Interest::peer_closed;
  const auto watch = loop_.watch(guest.stream->fd(), kInterest, true, seat.get());
  seat->watch = watch ? *watch : 0;
  seats_.push_back(*seat);
  ++size_;
  if (!watch || !await_late()) {
    leave(*seat.release());  // whoever takes it reports what fails
  } else {
    (void)seat.release();  // the list's
  }
}

void Lobby::close() noexcept {
  while (Seat* const seat = seats_.first()) {
    (void)take(*seat);
  }
  if (late_timer_) {
    (void)loop_.timers().cancel(std::exchange(late_timer_, {}));
  }
}

Lobby::Guest Lobby::take(Seat& seat) noexcept {
  const std::unique_ptr<Seat> owned(&seat);
  seat.unhook();
  --size_;
  loop_.unwatch(seat.watch);
  return std::move(seat.guest);
}

void Lobby::leave(Seat& seat) noexcept {
  try {
    handlers_.handle(take(seat));
  } catch (const std::bad_alloc&) {
    handlers_.lost();
  }
}

// A timer for the first peer, if there is none yet. False: no memory.
bool Lobby::await_late() noexcept {
  if (patience_ == Duration::zero() || late_timer_) {
    return true;
  }
  late_timer_ = loop_.timers().schedule(deadline_after(seats_.front().guest.since, patience_),
                                        {[](void* self) { static_cast<Lobby*>(self)->handle_late(); }, this});
  return static_cast<bool>(late_timer_);
}

void Lobby::handle_late() noexcept {
  late_timer_ = {};
  for (int i = 0; i < kLateAtOnce && !seats_.empty() && seats_.front().guest.since + patience_ <= loop_.now(); ++i) {
    leave(seats_.front());
  }
  while (!seats_.empty() && !await_late()) {
    leave(seats_.front());
  }
}

}  // namespace weft::msg
