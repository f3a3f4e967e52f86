// SPDX-License-Identifier: MIT
#include "weft/serve/session/session.h"

#include <algorithm>
#include <utility>

#include "weft/serve/session/shard.h"
#include "weft/sys/call.h"
#include "weft/sys/socket.h"

namespace weft::serve {

namespace {

EndCause farewell_for(CloseReason reason, bool inside_frame) noexcept {
  switch (reason) {
    case CloseReason::refused_frame: return EndCause::refused;
    case CloseReason::frame_timeout: return EndCause::late;
    case CloseReason::handshake_timeout: return inside_frame ? EndCause::late : EndCause::quiet;
    case CloseReason::idle_timeout:
    case CloseReason::silence_timeout:
    case CloseReason::reply_timeout: return EndCause::quiet;
    case CloseReason::server_stopped: return EndCause::stopped;
    default: return EndCause::closed;
  }
}

}  // namespace

Session::QueueLimits Session::queue_limits(const SessionLimits& limits) noexcept {
  const std::size_t take = std::max<std::size_t>(limits.write_budget, 1);
  const bool may_end =
      limits.slow_consumer == SlowConsumer::disconnect || limits.slow_consumer == SlowConsumer::conflate_state;
  return {take, may_end ? take - take / 2 : kUnlimited};
}

Session::Session(Shard& shard, const ServiceSlot& slot) noexcept
    : rt::TurnJob([](rt::TurnJob& job) noexcept { static_cast<Session&>(job).handle_turn(); }),
      queue_limits_(queue_limits(slot.limits)),
      core_(&shard.core()),
      activity_(*shard.loop().activity()),
      rated_(slot.limits.message_rate.limits()),
      shard_(shard),
      slot_(slot),
      input_(this) {}

Result<void> Session::start(std::unique_ptr<net::ByteStream> stream, SessionId id, net::Admission::Lease lease,
                            Instant accepted) {
  lease_ = std::move(lease);
  stream_ = std::move(stream);
  id_ = id;
  clock_.start(shard_.loop().now());
  clock_.note_accepted(accepted);
  const bool established = stream_->state().established;
  if (!established) {
    if (!shard_.budget().take(kHandshakeBytes, MemoryOwner::handshakes)) {
      return Error(Errc::resource_exhausted, "the memory of the server is spent");
    }
    reading_.in_handshake = true;
  }
  const auto watched =
      shard_.loop().watch(stream_->fd(), sys::Interest::readable | sys::Interest::peer_closed, true, this);
  if (!watched) {
    end_handshake();
    return watched.error();
  }
  watch_ = *watched;
  shard_.counters().opened.add();
  if (established) {
    begin();
  } else {
    queue_limits_.take = 0;
  }
  arm_timer();
  return {};
}

void Session::end_handshake() noexcept {
  if (std::exchange(reading_.in_handshake, false)) {
    shard_.budget().give_back(kHandshakeBytes, MemoryOwner::handshakes);
  }
}

void Session::begin() noexcept {
  end_handshake();
  stream_->admit();
  clock_.note_begun();
  queue_limits_.take = is_open() ? std::max<std::size_t>(slot_.limits.write_budget, 1) : 0;
  try {
    slot_.ops->opened(*this);
  } catch (...) {
    end_after_throw();
  }
}

const void* Session::codec_tag() const noexcept { return slot_.ops->codec_tag; }

void Session::list() noexcept { shard_.core().at_turn_end(*this); }

void Session::read_in_line() noexcept {
  if (state_ != State::ended) {  // else it is listed
    handle_turn();
  }
}

// A session in the line of the shard reads when its place has come.
void Session::handle_turn() noexcept {
  if (is_open() && reading_.resume_due && !reading_.place.hooked()) {
    reading_.resume_due = false;
    writing_.flush_due = true;
    continue_reading();
  }
  if (writing_.writable_due) [[unlikely]] {
    tell_writable();
  }
  writing_.pass = false;
  writing_.flush_due = false;
  flush();
  settle();
  if (state_ == State::ended) {
    shard_.finish(*this);  // destroys it
  } else if (may_switch()) [[unlikely]] {
    shard_.replace(*this);  // the same
  } else if (may_move()) [[unlikely]] {
    shard_.depart(*this);  // the same
  }
}

void Session::settle() noexcept {
  if (reading_.peer_end == PeerEnd::broken && is_open() && !wants_frames()) {
    end(CloseReason::peer_failed, record_.why);
  }
  if (replies_ != 0 && is_open() && reading_.peer_end >= PeerEnd::announced && !reading_.keeps_reply &&
      slot_.limits.peer_left == PeerLeft::cancel) {
    handle_leaving();
  }
  if ((is_open() && !settle_open()) || state_ != State::closing) {
    return;
  }
  input_.drop(shard_.input_memory());
  if (writing_.end != WriteEnd::done) {
    if (!all_written()) {
      return;  // the next writable event, or the timer, continues here
    }
    finish_writing();
    if (state_ == State::ended) {
      return;
    }
    clock_.linger_by(shard_.loop().now() + kLinger);
    arm_timer();
  }
  // A socket that is closed with unread bytes resets the connection, and the peer then loses bytes that it
  // has not read yet. So the session reads and discards them first.
  discard_input();
  if (reading_.peer_end >= PeerEnd::read && !writing_.unsent) {
    end(record_.reason, record_.why);
  }
}

// The peer has ended its stream, and waits for replies no more.
void Session::handle_leaving() noexcept {
  if (slot_.ops->ended == nullptr) {
    return close_for(CloseReason::peer_closed, Error(Errc::connection_closed, "the peer closed"));
  }
  if (std::exchange(reading_.left, true)) {
    return;
  }
  cancel_tasks();
  if (reading_.peer_end == PeerEnd::handled) {
    return;
  }
  ++pauses_;  // for good
  try {
    slot_.ops->ended(*this);
  } catch (...) {
    end_after_throw();
  }
}

// Returns false if the session stays open.
bool Session::settle_open() noexcept {
  if (writing_.end == WriteEnd::due && all_written()) {
    finish_writing();
    if (!is_open()) {
      return true;  // it ended the session
    }
  }
  const bool last = state_ != State::open || (reading_.peer_end == PeerEnd::handled && slot_.ops->ended == nullptr);
  const bool unread =
      state_ != State::drained && !reading_.left && ((pauses_ != 0 && !input_.empty()) || reading_.resume_due);
  if (!last || replies_ != 0 || unread) {
    return false;
  }
  if (state_ == State::open) {
    close_for(CloseReason::peer_closed, Error(Errc::connection_closed, "the peer closed"));
    return true;
  }
  state_ = State::drained;
  leave_drain();
  if (!shard_.closes_drained()) {
    return false;
  }
  close_for(CloseReason::server_stopped, Error(Errc::terminated, "the server stops"));
  return true;
}

void Session::finish_writing() noexcept {
  if (writing_.last_body == LastBody::open) {
    return is_open() ? abort() : end(record_.reason, record_.why);
  }
  stream_->shutdown_write();
  writing_.end = WriteEnd::done;
  writing_.unsent = slot_.layered && stream_->state().unsent;
  if (writing_.unsent) {
    writing_.blocked = true;
    watch_writable(true);
  }
}

void Session::fail(const sys::IoResult& result) noexcept {
  const Error why = stream_->state().failure;
  if (why == Errc::protocol_error) {
    return end(CloseReason::refused_tls, why);
  }
  if (reading_.peer_end == PeerEnd::broken && is_open()) {
    return end(CloseReason::peer_failed, record_.why);
  }
  if (!(why == Errc::ok)) {
    return end(CloseReason::peer_failed, why);
  }
  end(CloseReason::peer_failed, sys::make_error(result.os_errno, "the connection failed"));
}

void Session::close_for(CloseReason reason, Error why) noexcept {
  if (!is_open()) {
    return;
  }
  const CloseCause cause = cause_of(reason, why);
  (void)say_farewell(cause.reason);
  note_owed(cause.reason);
  state_ = State::closing;
  drop_move();
  take_no_more();
  record_.set_cause(cause.reason, cause.why);
  leave_drain();
  cancel_tasks();
  clock_.close_by(deadline_after(shard_.loop().now(), slot_.limits.close_timeout));
  arm_timer();
  list();
}

// Queues the codec's farewell. Returns false if it has none, or there is no memory for it.
bool Session::say_farewell(CloseReason reason) noexcept {
  if (slot_.ops->farewell == nullptr || !clock_.begun() || queue_limits_.take == 0) {
    return false;
  }
  std::array<std::uint8_t, kFarewellMax> bytes;
  const std::size_t size = slot_.ops->farewell(*this, farewell_for(reason, !input_.empty()), bytes);
  if (size == 0) {
    return false;
  }
  std::uint8_t* place = writes_.room(size);
  if (place == nullptr) {
    place = writes_.reserve(size, shard_.budget());
  }
  if (place == nullptr) {
    return false;
  }
  copy_bytes(place, Bytes(bytes).first(size));
  commit(size);
  return true;
}

void Session::end(CloseReason reason, Error why) noexcept {
  if (state_ == State::ended) {
    return;
  }
  const CloseCause cause = cause_of(reason, why);
  // A session that was closed and has written all keeps the reason that close() gave.
  if (is_open() || !(writing_.end == WriteEnd::done || all_written())) {
    record_.set_cause(cause.reason, cause.why);
  }
  if (is_open()) {
    note_owed(cause.reason);
  }
  if (writing_.last_body == LastBody::whole && all_written()) {
    writing_.last_body = LastBody::none;
  }
  state_ = State::ended;
  drop_move();
  take_no_more();
  leave_drain();
  cancel_tasks();
  list();
}

void Session::note_exception(const std::exception_ptr& thrown) const noexcept { shard_.note_exception(*this, thrown); }

void Session::end_after_throw() noexcept {
  note_exception(std::current_exception());
  end(CloseReason::service_failed, Error(Errc::job_threw, "the service threw; the log and on_exception have what()"));
}

void Session::end_writing() noexcept {
  if (is_open()) {
    drop_move();
    take_no_more();
    if (writing_.end == WriteEnd::none) {
      writing_.end = WriteEnd::due;
    }
    list();
  }
}

void Session::resume_reading() noexcept {
  if (pauses_ != 0 && --pauses_ == 0 && is_open()) {
    read_again();
  }
}

// The session did not read for a while: it reads at the end of this turn, and a half-received frame has its time anew.
void Session::read_again() noexcept {
  if (!reading_.refused) {
    clock_.finish_by(kNever);
    read_later();
  }
}

// Takes the token of the next frame after a frame was handled. Without a token, that frame waits.
void Session::spend_token() noexcept {
  const auto resume = [](void* self) {
    auto& session = *static_cast<Session*>(self);
    session.rate_.note_fired();
    session.resume_reading();
  };
  rt::Loop& loop = shard_.loop();
  if (rate_.begins(slot_.limits.message_rate, loop.timers(), loop.now(), {resume, this})) {
    pause_reading();
    shard_.counters().rate_pauses.add();
  }
}

// Counts the replies that the end of the session leaves owed. A service that closes the session has made up its mind.
void Session::note_owed(CloseReason reason) noexcept {
  if (replies_ != 0 && reason != CloseReason::service) {
    shard_.counters().unanswered.add(replies_);
  }
}

Result<void> Session::join(GroupId group) {
  if (!is_here()) {
    return used_elsewhere();
  }
  if (!is_open()) {
    return Error(Errc::closed, "the session is closed");
  }
  if (groups_.size() >= slot_.limits.groups_max) {
    return Error(Errc::resource_exhausted, "the session is in groups_max groups already");
  }
  if (!shard_.groups().join(*this, group)) {
    return Error(Errc::resource_exhausted, "no memory for a group");
  }
  return {};
}

void Session::leave(GroupId group) noexcept { shard_.groups().leave(*this, group); }

void Session::clean_up() noexcept {
  unhook();  // on_close() may have listed the session
  shard_.reads().leave(reading_.place);
  end_handshake();
  if (writing_.last_body != LastBody::none && writing_.end != WriteEnd::done) {
    stream_->break_off();
  }
  shard_.groups().leave_all(*this);
  clock_.cancel(shard_.loop().timers());
  rate_.cancel(shard_.loop().timers());
  shard_.loop().unwatch(watch_);
  writing_.watches_writable = false;
  input_.drop(shard_.input_memory());
  drop_tasks();
}

// --- time ---

void Session::arm_timer() noexcept {
  if (state_ == State::ended) {
    return;
  }
  const Instant due = clock_.next_deadline(slot_.limits, state_, replies_ != 0);
  if (!clock_.arm(shard_.loop().timers(), due, {[](void* self) { static_cast<Session*>(self)->check_time(); }, this})) {
    end(CloseReason::out_of_memory, Error(Errc::resource_exhausted, "no memory for a timer"));
  }
}

// Asks the system, once in each idle_timeout at most, whether the peer's has acknowledged bytes since.
void Session::note_acknowledged() noexcept {
  if (!clock_.wrote_since_active()) {
    return;
  }
  const auto acknowledged = sys::acknowledged_bytes(stream_->fd());
  if (!acknowledged) {
    return clock_.note_acknowledged();  // no tcp: a write is all that there is to know
  }
  const auto low = static_cast<std::uint32_t>(*acknowledged);
  if (std::exchange(writing_.acknowledged, low) != low) {
    clock_.note_acknowledged();
  }
}

void Session::check_time() noexcept {
  clock_.note_fired();
  if (state_ == State::ended) {
    return;
  }
  if (is_open() && !wants_frames()) {
    if (!reading_.refused) {
      clock_.finish_by(kNever);  // read_again() gives the half-received frame its time
    }
    clock_.note_unread(shard_.loop().now());
  }
  // Once the descriptor is closed, the peer's next byte makes the kernel drop the bytes that it holds for the peer.
  if (clock_.lingers() && sys::unacknowledged_bytes(stream_->fd()) != 0) {
    clock_.linger_by(shard_.loop().now() + kLinger);
    return arm_timer();
  }
  note_acknowledged();
  if (const auto passed = clock_.passed(slot_.limits, state_, replies_ != 0, shard_.loop().now())) {
    const CloseCause cause = cause_of(passed->reason, passed->why);
    return is_open() && say_farewell(cause.reason) ? close_for(cause.reason, cause.why) : end(cause.reason, cause.why);
  }
  arm_timer();
}

}  // namespace weft::serve
