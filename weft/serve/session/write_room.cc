// SPDX-License-Identifier: MIT
// Tasks that wait for room in a session's write queue, and services that continue when there is some.
#include "weft/serve/session/write_room.h"

#include <new>
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

namespace {
constexpr Error kAwaitedTwice(Errc::invalid_state, "a wait for room is awaited once");
constexpr Error kNoRoomInTime(Errc::timed_out, "the peer did not read in time");
constexpr Error kTooManyWait(Errc::resource_exhausted, "waits_max tasks wait for room in this session already");
constexpr Error kNoTimerForRoom(Errc::resource_exhausted, "no memory for the deadline of a wait");
constexpr Error kCodecThrew(Errc::job_threw, "the codec threw");
constexpr Error kClosedToWaits(Errc::closed, "the session is closed");
}  // namespace

// --- one wait ---

RoomWait::~RoomWait() {
  cancel_timer();
  if (hooked()) {
    room_->remove(*this);
  } else if (granted_) {
    session_->end_grant(true);
  }
}

bool RoomWait::fail(const Error& why) noexcept {
  error_ = why;
  return false;
}

bool RoomWait::suspend(rt::CancelScope& scope, std::coroutine_handle<> coroutine) {
  if (std::exchange(awaited_, true)) {
    return fail(kAwaitedTwice);
  }
  Session& session = *session_;
  if (!session.is_here()) {
    return fail(session.used_elsewhere());
  }
  if (scope.cancelled()) {
    error_ = rt::kCancelled;
    return !wait_.begin(scope, coroutine) && wait_.deferred();
  }
  const Result<bool> room = session.room_now();
  if (!room) {
    return fail(room.error());
  }
  if (*room) {
    return fail(send_ == nullptr ? Error() : call_send(session));
  }
  rt::Loop& loop = session.shard_.loop();
  if (deadline_ <= loop.now()) {
    return fail(kNoRoomInTime);
  }
  if (deadline_ != kNever) {
    const auto pass = [](void* self) {
      auto& wait = *static_cast<RoomWait*>(self);
      wait.timer_ = {};
      wait.room_->remove(wait);
      wait.finish(kNoRoomInTime);
    };
    timer_ = loop.timers().schedule(deadline_, {pass, this});
    if (!timer_) {
      return fail(kNoTimerForRoom);
    }
  }
  (void)wait_.begin(scope, coroutine);  // it is not cancelled
  session.begin_wait(*this);
  return true;
}

void RoomWait::TaskWait::give_up(Wait& self) noexcept {
  RoomWait& wait = *static_cast<TaskWait&>(self).room_wait;
  wait.room_->remove(wait);
  wait.finish(rt::kCancelled);
}

// Requires that the wait is in no list.
void RoomWait::finish(const Error& outcome) noexcept {
  cancel_timer();
  error_ = outcome;
  wait_.finish();
}

void RoomWait::cancel_timer() noexcept {
  if (timer_) {
    (void)wait_.runner().timers().cancel(std::exchange(timer_, {}));
  }
}

Error RoomWait::call_send(Session& session) noexcept {
  try {
    return send_(*this, session).error();
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory for a frame");
  } catch (...) {
    return kCodecThrew;
  }
}

Result<void> RoomWait::await_resume() noexcept {
  const bool cancelled = wait_.cancelled();
  if (std::exchange(granted_, false)) {
    session_->end_grant(cancelled);
  }
  if (cancelled && (send_ == nullptr || error_ == Errc::closed)) {
    return rt::kCancelled;
  }
  return error_ == Errc::ok ? Result<void>() : Result<void>(error_);
}

Result<void> SharedSendWait::send(RoomWait& self, Session& session) {
  return session.send_shared(static_cast<SharedSendWait&>(self).frame_);
}

// --- the waits of a session ---

bool Session::takes_at_once() const noexcept { return has_room() && (tasks_ == nullptr || !tasks_->room().taken()); }

void WriteRoom::refuse_all(const Error& why) noexcept {
  if (granted_ != nullptr) {
    granted_->granted_ = false;
    granted_->error_ = why;
    granted_ = nullptr;
  }
  while (RoomWait* const wait = waits_.first()) {
    remove(*wait);
    wait->finish(why);
  }
}

// Whether a wait ends at once, because there is room and no other one waits. A task that sends without end to a peer
// that reads as fast waits for the next turn after kTurnMax bytes.
Result<bool> Session::room_now() noexcept {
  if (queue_limits_.take == 0) {
    return refuse_closed();
  }
  WEFT_TRY(make_tasks());
  WriteRoom& room = tasks_->room();
  if (const Instant now = shard_.loop().now(); room.turn_ != now) {
    room.turn_ = now;
    room.turn_begin_ = bytes_taken();
  }
  if (!room.taken() && writes_.size() < queue_limits_.take && bytes_taken() - room.turn_begin_ < WriteRoom::kTurnMax) {
    return true;
  }
  if (room.waiting() >= slot_.limits.waits_max) {
    shard_.counters().waits_refused.add();
    return kTooManyWait;
  }
  return false;
}

// The turn's end tries to write the queue, so that no wait depends on an event that has come already.
void Session::begin_wait(RoomWait& wait) noexcept {
  shard_.counters().room_waits.add();
  tasks_->room().push(wait);
  list();
}

// After the kernel has taken bytes: lets waits send their frames, until the queue is full again. A wait without a frame
// stops the line until its task has resumed, and perhaps sent.
void Session::serve_waits() noexcept {
  WriteRoom& room = tasks_->room();
  if (room.serving_ || room.waits_.empty() || room.granted_ != nullptr || writes_.size() > queue_limits_.take / 2) {
    return;
  }
  room.serving_ = true;
  const std::uint64_t begin = bytes_taken();
  while (writes_.size() < queue_limits_.take) {
    RoomWait* const wait = room.waits_.first();
    if (wait == nullptr) {
      break;
    }
    if (bytes_taken() - begin >= WriteRoom::kTurnMax) {
      list();
      break;
    }
    room.remove(*wait);
    if (wait->send_ == nullptr) {
      room.granted_ = wait;
      wait->granted_ = true;
      wait->finish(Error());
      break;
    }
    wait->finish(wait->call_send(*this));
  }
  room.serving_ = false;
}

// The room that this makes is for the frame of the caller, which would meet the policy otherwise. Waits have the next.
void Session::flush_for_send() noexcept {
  if (tasks_ == nullptr) [[likely]] {
    return flush();
  }
  WriteRoom& room = tasks_->room();
  const bool outer = std::exchange(room.serving_, true);
  flush();
  room.serving_ = outer;
  if (room.waiting() != 0) {
    list();
  }
}

// The task of the wait that has the grant resumes now. It may send one frame, also if others have filled the queue.
void Session::end_grant(bool unused) noexcept {
  tasks_->room().granted_ = nullptr;
  writing_.pass = !unused && writes_.size() >= queue_limits_.take;
  if (tasks_->room().waiting() != 0) {
    list();
  }
}

// send() takes no frame from now on.
void Session::take_no_more() noexcept {
  queue_limits_.take = 0;
  if (tasks_ != nullptr) [[unlikely]] {
    tasks_->room().refuse_all(kClosedToWaits);
  }
}

// --- services without coroutines ---

// The queue was full. If half of it is written, the service gets on_writable() in the next turn.
void Session::note_writable() noexcept {
  if (writes_.size() <= queue_limits_.take / 2) {
    writing_.full = false;
    if (slot_.ops->writable != nullptr && queue_limits_.take != 0) {
      writing_.writable_due = true;
      list();
    }
  }
}

void Session::tell_writable() noexcept {
  writing_.writable_due = false;
  if (queue_limits_.take == 0) {
    return;
  }
  writing_.flush_due = true;  // the caller flushes
  try {
    slot_.ops->writable(*this);
  } catch (...) {
    end_after_throw();
  }
}

}  // namespace weft::serve
