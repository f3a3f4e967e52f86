// SPDX-License-Identifier: MIT
// Replies that are owed, and the ends that wait for them: of a session with a refused frame, and of the server.
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

// A reply that is announced before the first frame answers none.
void Session::begin_reply() noexcept {
  ++replies_;
  const bool asked = uncounted_.in != 0 || record_.counts.frames_in != 0;
  if (asked && !reading_.reply_pause && !slot_.ops->numbers_requests &&
      slot_.limits.reply_order == ReplyOrder::of_frames) {
    reading_.reply_pause = true;
    pause_reading();
  }
}

void Session::end_reply() noexcept {
  if (replies_ == 0 || --replies_ != 0) {
    return;
  }
  if (std::exchange(reading_.reply_pause, false)) {
    resume_reading();
  }
  clock_.note_active(shard_.loop().now());
  arm_timer();  // the idle time is shorter than the reply's
  if (reading_.refused) [[unlikely]] {
    close_refused();
  }
  if (state_ == State::draining || state_ == State::drained || reading_.peer_end == PeerEnd::handled ||
      move_ != nullptr) {
    list();
  }
}

// A peer that breaks a rule does not take the answers to its earlier frames with it: they may be the last ones that it
// needs, and other programs may have sent those frames.
void Session::refuse(const Error& why) noexcept {
  if (is_open() && !reading_.refused) {
    reading_.refused = true;
    record_.why = why;
    ++pauses_;  // for good
    drop_move();
    close_refused();
  }
}

void Session::hold_refusal(bool on) noexcept {
  if (std::exchange(reading_.holds_refusal, on) && !on) {
    close_refused();
  }
}

// Closes a session with a refused frame if nothing that goes before it is under way.
void Session::close_refused() noexcept {
  if (!reading_.refused || !is_open() || replies_ != 0) {
    return;
  }
  if (!reading_.holds_refusal) {
    return close_for(CloseReason::refused_frame, record_.why);
  }
  clock_.finish_by(deadline_after(shard_.loop().now(), slot_.limits.frame_timeout));
  arm_timer();
}

// The refusal is the cause of an end that comes before its turn, unless the service chose that end.
CloseCause Session::cause_of(CloseReason reason, const Error& why) const noexcept {
  const bool refused = reading_.refused && is_open() && reason != CloseReason::service;
  return refused ? CloseCause{CloseReason::refused_frame, record_.why} : CloseCause{reason, why};
}

void Session::drain() noexcept {
  if (state_ != State::open) {
    return;
  }
  drop_move();
  if (slot_.ops->draining != nullptr && clock_.begun()) {
    try {
      slot_.ops->draining(*this);
    } catch (...) {
      end_after_throw();
    }
  }
  if (state_ == State::open) {
    state_ = State::draining;
    writing_.holds_drain = true;
    shard_.hold_drain();
    reading_.readable = true;  // drain() answers requests that have arrived already
    read_later();
  }
}

void Session::drain_again() noexcept {
  if (state_ == State::drained && replies_ != 0 && !writing_.holds_drain) {
    writing_.holds_drain = true;
    shard_.hold_drain();
  }
}

void Session::close_drained() noexcept {
  if (state_ == State::drained) {
    list();
  }
}

void Session::leave_drain() noexcept {
  if (std::exchange(writing_.holds_drain, false)) {
    shard_.release_drain();
  }
}

}  // namespace weft::serve
