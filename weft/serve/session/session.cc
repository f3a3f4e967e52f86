// SPDX-License-Identifier: MIT
#include "weft/serve/session/session.h"

#include <algorithm>
#include <utility>

#include "weft/serve/session/shard.h"
#include "weft/sys/call.h"

namespace weft::serve {

Session::Session(Shard& shard, const ServiceSlot& slot) noexcept
    : rt::TurnJob([](rt::TurnJob& job) noexcept { static_cast<Session&>(job).handle_turn(); }),
      take_limit_(std::max<std::size_t>(slot.limits.write_budget, 1)),
      throttle_(slot.limits.slow_consumer == SlowConsumer::disconnect ? take_limit_ - take_limit_ / 2 : kUnlimited),
      rated_(slot.limits.message_rate.limits()),
      shard_(shard),
      slot_(slot) {}

Result<void> Session::start(std::unique_ptr<net::Stream> stream, SessionId id, Admission::Lease lease) {
  lease_ = std::move(lease);
  stream_ = std::move(stream);
  id_ = id;
  accepted_ = last_active_ = shard_.loop().now();
  watch_ =
      WEFT_TRY(shard_.loop().watch(stream_->fd(), sys::Interest::readable | sys::Interest::peer_closed, true, this));
  shard_.counters().opened.add();
  if (stream_->state().established) {
    begin();
  } else {
    take_limit_ = 0;
  }
  arm_timer();
  return {};
}

void Session::begin() noexcept {
  begun_ = true;
  take_limit_ = std::max<std::size_t>(slot_.limits.write_budget, 1);
  try {
    slot_.ops->opened(*this);
  } catch (...) {
    end(CloseReason::service_failed, Error(Errc::system, "the service threw"));
  }
}

void Session::list() noexcept { shard_.core().at_turn_end(*this); }

void Session::handle_turn() noexcept {
  if (state_ == State::open && go_on_) {
    go_on_ = false;
    flush_due_ = true;
    go_on_reading();
  }
  flush_due_ = false;
  flush();
  settle();
  if (state_ == State::ended) {
    shard_.finish(*this);  // destroys it
  }
}

void Session::settle() noexcept {
  if (state_ == State::open) {
    if (write_ending_ && !write_ended_ && all_written()) {
      finish_writing();
    }
    const bool last = draining_ || (end_handled_ && slot_.ops->ended == nullptr);
    if (!last || replies_ != 0 || (pauses_ != 0 && kept_ != nullptr) || go_on_) {
      return;
    }
    if (draining_) {
      close_for(CloseReason::server_stopped, Error(Errc::terminated, "the server stops"));
    } else {
      close_for(CloseReason::peer_closed, Error(Errc::connection_closed, "the peer closed"));
    }
  }
  if (state_ != State::closing) {
    return;
  }
  drop_kept();
  if (!write_ended_) {
    if (!all_written()) {
      return;  // the next writable event, or the timer, continues here
    }
    finish_writing();
    close_deadline_ = std::min(close_deadline_, shard_.loop().now() + kLinger);
    arm_timer();
  }
  // A socket that is closed with unread bytes resets the connection, and the peer then loses bytes that it
  // has not read yet. So the session reads and discards them first.
  discard_input();
  if (peer_ended_ && !unsent_) {
    end(reason_, why_);
  }
}

void Session::finish_writing() noexcept {
  stream_->shutdown_write();
  write_ended_ = true;
  unsent_ = slot_.layered && stream_->state().unsent;
  if (unsent_) {
    blocked_ = true;
    watch_writable(true);
  }
}

void Session::fail(const sys::IoResult& result) noexcept {
  if (const Error why = stream_->state().failure; !(why == Errc::ok)) {
    return end(why == Errc::protocol_error ? CloseReason::refused_tls : CloseReason::peer_failed, why);
  }
  end(CloseReason::peer_failed, sys::make_error(result.os_errno, "the connection failed"));
}

void Session::close_for(CloseReason reason, Error why) noexcept {
  if (state_ != State::open) {
    return;
  }
  state_ = State::closing;
  take_limit_ = 0;
  reason_ = reason;
  why_ = why;
  cancel_tasks();
  close_deadline_ = deadline_after(shard_.loop().now(), slot_.limits.close_timeout);
  arm_timer();
  list();
}

void Session::end(CloseReason reason, Error why) noexcept {
  if (state_ == State::ended) {
    return;
  }
  // A session that was closed and has written all keeps the reason that close() gave.
  if (state_ == State::open || !(write_ended_ || all_written())) {
    reason_ = reason;
    why_ = why;
  }
  state_ = State::ended;
  take_limit_ = 0;
  cancel_tasks();
  list();
}

void Session::end_writing() noexcept {
  if (state_ == State::open) {
    take_limit_ = 0;
    write_ending_ = true;
    list();
  }
}

void Session::resume_reading() noexcept {
  if (pauses_ != 0 && --pauses_ == 0 && state_ == State::open) {
    go_on_ = true;
    list();
  }
}

// Takes the token of the next frame after a frame was handled. Without a token, that frame waits.
void Session::spend_token() noexcept {
  const Instant now = shard_.loop().now();
  const RateLimit& limit = slot_.limits.message_rate;
  if (token_timer_ || tokens_.try_take(limit, now)) {
    return;
  }
  token_timer_ = shard_.loop().timers().schedule(now + tokens_.wait(limit, now), {[](void* self) {
                                                                                    auto& session =
                                                                                        *static_cast<Session*>(self);
                                                                                    session.token_timer_ = {};
                                                                                    session.resume_reading();
                                                                                  },
                                                                                  this});
  if (token_timer_) {
    pause_reading();
    shard_.counters().rate_pauses.add();
  }
}

void Session::end_reply() noexcept {
  if (replies_ != 0 && --replies_ == 0 && (draining_ || end_handled_)) {
    list();
  }
}

void Session::drain() noexcept {
  draining_ = true;
  go_on_ = true;
  readable_ = true;  // drain() answers requests that have arrived already
  list();
}

Result<void> Session::join(GroupId group) {
  if (state_ != State::open) {
    return Error(Errc::closed, "the session is closed");
  }
  if (groups_.size() >= slot_.limits.groups_max) {
    return Error(Errc::resource_exhausted, "the session is in as many groups as it may be");
  }
  if (!shard_.groups().join(*this, group)) {
    return Error(Errc::resource_exhausted, "no memory for a group");
  }
  return {};
}

void Session::leave(GroupId group) noexcept { shard_.groups().leave(*this, group); }

void Session::clean_up() noexcept {
  unhook();  // on_close() may have listed the session
  shard_.groups().leave_all(*this);
  (void)shard_.loop().timers().cancel(timer_);
  (void)shard_.loop().timers().cancel(token_timer_);
  shard_.loop().unwatch(watch_);
  watches_writable_ = false;
  drop_kept();
  drop_tasks();
}

// --- time: one timer; when it fires before next_deadline(), check_time() arms it again ---

Instant Session::next_deadline() const noexcept {
  return state_ == State::closing
             ? close_deadline_
             : std::min(handshake_deadline(), deadline_after(last_active_, slot_.limits.idle_timeout));
}

Instant Session::handshake_deadline() const noexcept {
  if (heard_frame_) {
    return kNever;
  }
  const Duration limit = slot_.limits.handshake_timeout;
  return deadline_after(accepted_, begun_ || limit >= Duration::zero() ? limit : kTlsHandshake);
}

void Session::arm_timer() noexcept {
  const Instant due = next_deadline();
  if (due == kNever || state_ == State::ended || (timer_ && timer_due_ <= due)) {
    return;
  }
  timer_due_ = due;
  rt::TimerWheel& timers = shard_.loop().timers();
  if (timer_ && timers.reschedule(timer_, due)) {
    return;
  }
  timer_ = timers.schedule(due, {[](void* self) { static_cast<Session*>(self)->check_time(); }, this});
  if (!timer_) {
    end(CloseReason::out_of_memory, Error(Errc::resource_exhausted, "no memory for a timer"));
  }
}

void Session::check_time() noexcept {
  timer_ = {};
  const Instant now = shard_.loop().now();
  if (state_ == State::ended || next_deadline() > now) {
    return arm_timer();
  }
  if (state_ == State::closing) {
    return end(CloseReason::close_timeout, Error(Errc::timed_out, "the peer did not take what was queued in time"));
  }
  if (handshake_deadline() <= now) {
    return end(CloseReason::handshake_timeout,
               Error(Errc::timed_out, begun_ ? "no whole frame came in time" : "TLS took too long"));
  }
  end(CloseReason::idle_timeout, Error(Errc::timed_out, "the connection was idle for too long"));
}

}  // namespace weft::serve
