// SPDX-License-Identifier: MIT
// A connection that continues with another codec or on another core: one session leaves its state to the next.
#include <new>
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

namespace {
constexpr Error kNoMemoryToSwitch(Errc::resource_exhausted, "no memory for a session of another codec");
}  // namespace

Result<void> Session::switch_to(const ServiceSlot& next) {
  if (!is_here()) {
    return used_elsewhere();
  }
  if (!is_open()) {
    return Error(Errc::closed, "the session is closed");
  }
  if (has_tasks() || replies_ != 0 || record_.successor != nullptr || move_ != nullptr) {
    return Error(Errc::invalid_state, "a session switches once, without coroutines and replies that are owed");
  }
  record_.successor = &next;
  ++pauses_;  // for good: the next session reads the next bytes
  take_no_more();
  list();
  return {};
}

SessionRest Session::give_up() noexcept {
  SessionRest rest;
  try {
    const Bytes bytes = input_.bytes();
    rest.unread.assign(bytes.begin(), bytes.end());
  } catch (const std::bad_alloc&) {
    rest.whole = false;
  }
  clean_up();
  rest.stream = std::move(stream_);
  rest.id = id_;
  rest.lease = std::move(lease_);
  rest.record = std::move(record_);
  rest.record.successor = nullptr;
  rest.accepted = clock_.accepted();
  return rest;
}

Result<void> Session::move_to(unsigned core) {
  if (!is_here()) {
    return used_elsewhere();
  }
  if (state_ != State::open) {
    return Error(Errc::closed, "the session is closed, or the server drains");
  }
  if (core == core_->index()) {
    return {};
  }
  if (slot_.ops->keep_codec == nullptr || shard_.mover() == nullptr || slot_.port == SessionMover::kNoPort) {
    return Error(Errc::not_supported, "the sessions of this codec do not move");
  }
  if (move_ != nullptr || record_.successor != nullptr || writing_.end != WriteEnd::none) {
    return Error(Errc::invalid_state, "the session moves, switches or ends its stream already");
  }
  move_ = WEFT_TRY(shard_.mover()->begin_move(id_, slot_.port, core));
  ++pauses_;  // until drop_move(); the next session reads the next bytes
  return {};
}

// Returns false if the session moves no more, or not by this move.
bool Session::answer_move(SessionMove& move, bool granted) noexcept {
  if (move_ != &move) {
    return false;
  }
  if (!granted) {
    move_ = nullptr;
    shard_.counters().moves_refused.add();
    resume_reading();
    return false;
  }
  writing_.move_granted = true;
  list();
  return true;
}

void Session::drop_move() noexcept {
  if (SessionMove* const move = std::exchange(move_, nullptr)) {
    shard_.counters().moves_refused.add();
    if (std::exchange(writing_.move_granted, false)) {
      move->cancel();
    }
    resume_reading();
  }
}

void Session::take_over(SessionRest rest) noexcept {
  stream_ = std::move(rest.stream);
  if (rest.codec != nullptr) {
    slot_.ops->put_codec(*this, rest.codec.get());
  }
  if (rest.state != nullptr) {
    state_of_service_.take_owned(*rest.state);
  }
  id_ = rest.id;
  lease_ = std::move(rest.lease);
  record_ = std::move(rest.record);
  clock_.start(shard_.loop().now());
  clock_.note_accepted(rest.accepted);
  const Result<void> watched = rest.whole ? watch_again() : Result<void>(kNoMemoryToSwitch);
  if (!watched) {
    end(CloseReason::out_of_memory, watched.error());
    return begin();  // the service may keep something for the session: on_open() and on_close() give it back
  }
  begin();
  clock_.note_frame();  // the handshake was that of the first session
  if (is_open() && !rest.unread.empty() && !keep(rest.unread)) {
    return;
  }
  reading_.readable = true;
  read_later();
  arm_timer();
}

Result<void> Session::watch_again() noexcept {
  try {
    watch_ =
        WEFT_TRY(shard_.loop().watch(stream_->fd(), sys::Interest::readable | sys::Interest::peer_closed, true, this));
    return {};
  } catch (const std::bad_alloc&) {
    return kNoMemoryToSwitch;
  }
}

}  // namespace weft::serve
