// SPDX-License-Identifier: MIT
#include "weft/serve/session/session_clock.h"

#include <algorithm>

namespace weft::serve {

Instant SessionClock::next_deadline(const SessionLimits& limits, SessionState state, bool owes_reply) const noexcept {
  if (state == SessionState::closing) {
    return deadline_;
  }
  const Duration quiet = owes_reply ? limits.reply_timeout : limits.idle_timeout;
  return std::min({deadline_, handshake_deadline(limits), deadline_after(last_active_, quiet),
                   deadline_after(last_heard_, limits.silence_timeout)});
}

Instant SessionClock::handshake_deadline(const SessionLimits& limits) const noexcept {
  if (stage_ == Stage::heard) {
    return kNever;
  }
  const Duration limit = limits.handshake_timeout;
  return deadline_after(accepted_, begun() || limit >= Duration::zero() ? limit : kTlsHandshake);
}

std::optional<CloseCause> SessionClock::passed(const SessionLimits& limits, SessionState state, bool owes_reply,
                                               Instant now) const noexcept {
  if (next_deadline(limits, state, owes_reply) > now) {
    return std::nullopt;
  }
  if (state == SessionState::closing) {
    return CloseCause{CloseReason::close_timeout,
                      Error(Errc::timed_out, "the peer did not take the queued bytes in time")};
  }
  if (handshake_deadline(limits) <= now) {
    return CloseCause{
        CloseReason::handshake_timeout,
        Error(Errc::timed_out, begun() ? StaticText("no whole frame came in time") : StaticText("TLS took too long"))};
  }
  if (deadline_ <= now) {
    return CloseCause{CloseReason::frame_timeout, Error(Errc::timed_out, "a frame that began was not whole in time")};
  }
  if (deadline_after(last_heard_, limits.silence_timeout) <= now) {
    return CloseCause{CloseReason::silence_timeout, Error(Errc::timed_out, "no byte came from the peer in time")};
  }
  if (owes_reply) {
    return CloseCause{CloseReason::reply_timeout, Error(Errc::timed_out, "a reply was owed for too long")};
  }
  return CloseCause{CloseReason::idle_timeout, Error(Errc::timed_out, "the connection was idle for too long")};
}

bool SessionClock::arm(rt::TimerWheel& timers, Instant due, rt::TimerCallback callback) noexcept {
  if (due == kNever || (timer_ && timer_due_ <= due)) {
    return true;
  }
  timer_due_ = due;
  if (timer_ && timers.reschedule(timer_, due)) {
    return true;
  }
  timer_ = timers.schedule(due, callback);
  return static_cast<bool>(timer_);
}

}  // namespace weft::serve
