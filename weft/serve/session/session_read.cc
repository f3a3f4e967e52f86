// SPDX-License-Identifier: MIT
#include <algorithm>
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/session/shard.h"
#include "weft/sys/clock.h"
#include "weft/sys/socket.h"

namespace weft::serve {

namespace {
constexpr Error kNoMemoryForBytes(Errc::resource_exhausted, "no memory for received bytes");
}  // namespace

void Session::handle_event(const sys::PollEvent& event) {
  if (state_ == State::ended) {
    return;
  }
  writing_.flush_due = true;
  writing_.blocked = writing_.blocked && !event.writable && !event.failed;
  if (event.readable || event.peer_closed || event.failed) {
    reading_.readable = true;
    if (event.peer_closed || event.failed) {
      note_peer_end(event.failed);
    }
    if (wants_frames() && reads_now()) [[likely]] {
      read_some();
    }
  }
  writing_.flush_due = false;
  flush();
  settle();
  if (may_switch() || may_move()) [[unlikely]] {
    list();
  }
}

// A failure without an error is a hang-up: both directions were closed in order, and unread frames may remain.
void Session::note_peer_end(bool failed) noexcept {
  const Error why = failed && is_open() ? sys::take_error(stream_->fd()) : Error();
  if (why == Errc::ok) {
    return reading_.note_end(PeerEnd::announced);
  }
  if (reading_.peer_end >= PeerEnd::read) {
    return end(CloseReason::peer_failed, why);
  }
  reading_.note_end(PeerEnd::broken);
  if (!reading_.refused) {
    record_.why = why;
  }
}

// A handshake does not wait for the sessions that read frames.
bool Session::reads_now() noexcept {
  if (reading_.in_handshake || shard_.reads().admits(reading_.place, shard_.loop().now(), sys::ticks())) [[likely]] {
    return true;
  }
  read_later();
  return false;
}

// Reads in the line of the shard, after the sessions that wait already.
void Session::read_later() noexcept {
  reading_.resume_due = true;
  shard_.read_in_line(reading_.place);
}

// One read. The rest of a half-received frame is read after its beginning; the bytes after it are decoded in place.
void Session::read_some() {
  if (reading_.in_handshake && shard_.defers_handshake()) [[unlikely]] {
    reading_.resume_due = true;
    list();
    return;
  }
  MutableBytes into[2];
  std::size_t count = 0;
  const std::size_t most = shard_.reads().share_of(kReadMax);
  MutableBytes scratch = shard_.scratch();
  if (scratch.empty() || (!input_.empty() && !input_.make_room(0, shard_.input_memory()))) [[unlikely]] {
    return end(CloseReason::out_of_memory, kNoMemoryForBytes);
  }
  scratch = scratch.first(most);
  const MutableBytes missing = input_.missing(most);
  if (!missing.empty()) {
    into[count++] = missing;
  }
  into[count++] = scratch;
  const sys::IoResult result = stream_->read({into, count});
  if (slot_.layered && !read_stream_state()) {
    return;
  }
  if (result.status != sys::IoResult::Status::done && reading_.peer_end == PeerEnd::broken) {
    return fail(result);
  }
  switch (result.status) {
    case sys::IoResult::Status::done: break;
    case sys::IoResult::Status::would_block: reading_.readable = false; return;
    case sys::IoResult::Status::end_of_stream: reading_.note_end(PeerEnd::read); return handle_end();
    case sys::IoResult::Status::failed: return fail(result);
  }
  clock_.note_heard(shard_.loop().now());
  shard_.counters().reads.add();
  shard_.counters().bytes_in.add(result.bytes);
  record_.counts.bytes_in += result.bytes;
  // A read that did not fill its room has emptied the socket; an event reports the next bytes.
  const bool full = result.bytes == missing.size() + scratch.size();
  reading_.readable = full || result.cut || reading_.peer_end != PeerEnd::none;
  const std::size_t into_kept = std::min(missing.size(), result.bytes);
  handle_bytes(into_kept, scratch.first(result.bytes - into_kept));
  if (reading_.readable && wants_frames()) {
    read_later();
  }
}

// Takes over the stream's state after a read: the handshake may be over, or the stream may hold bytes for the peer,
// which the flush after every read writes. Returns false if the service ended the session.
bool Session::read_stream_state() noexcept {
  const net::StreamState now = stream_->state();
  if (now.ended) {
    reading_.note_end(PeerEnd::announced);
  }
  writing_.unsent = now.unsent;
  if (now.established && !clock_.begun()) {
    begin();
  }
  return is_open();
}

void Session::handle_bytes(std::size_t into_kept, Bytes fresh) {
  input_.extend(into_kept, shard_.input_memory());
  decode(fresh);
  if (uncounted_.in != 0) {
    clock_.note_frame();
    shard_.counters().frames_in.add(uncounted_.in);
    record_.counts.frames_in += uncounted_.in;
  }
  time_frame();
  uncounted_.in = 0;
  if (reading_.refused) [[unlikely]] {
    input_.drop(shard_.input_memory());
  }
}

// After bytes were decoded: the next frame's time begins with its first bytes, and that of its body with its head.
void Session::time_frame() noexcept {
  if (!is_open() || reading_.refused) [[unlikely]] {
    return;
  }
  const SessionLimits& limits = slot_.limits;
  if (input_.empty() || !wants_frames()) [[likely]] {
    reading_.in_body = false;
    return clock_.finish_by(kNever);
  }
  const bool in_body =
      slot_.ops->in_body != nullptr && limits.body_timeout >= Duration::zero() && slot_.ops->in_body(*this);
  const bool has_head = in_body && !std::exchange(reading_.in_body, in_body);
  reading_.in_body = in_body;
  if (has_head) {
    clock_.note_frame();
  }
  if (uncounted_.in != 0 || has_head || clock_.deadline() == kNever) {
    clock_.finish_by(deadline_after(shard_.loop().now(), in_body ? limits.body_timeout : limits.frame_timeout));
    arm_timer();
  }
}

// Called when another session needs memory for its input, and no session is being read.
void Session::evict(void* self) noexcept {
  auto& session = *static_cast<Session*>(self);
  if (session.is_open()) {
    session.end(CloseReason::out_of_memory,
                Error(Errc::resource_exhausted, "the largest half-received frame makes room for others"));
  }
  session.input_.drop(session.shard_.input_memory());
}

// At the end of a turn: handles the bytes that waited while the session was paused or other sessions had
// their turn.
void Session::continue_reading() {
  if (!input_.empty() && wants_frames()) {
    handle_bytes(0, {});
  }
  if (!wants_frames()) {
    return;
  }
  if (reading_.peer_end >= PeerEnd::read) {
    handle_end();
  } else if (reading_.readable) {
    read_some();
  }
}

void Session::decode(Bytes fresh) {
  for (;;) {
    if (!input_.empty() && !decode_kept(fresh)) {
      return;
    }
    // Nothing is kept now.
    DecodeResult result;
    if (fresh.empty() || (wants_frames() && !decode_frames(fresh, result))) {
      return;  // a kept frame may have paused the session: then all of `fresh` is kept
    }
    fresh = fresh.subspan(result.consumed);
    input_.set_needed(result.least);
    if (!fresh.empty() && !keep(fresh)) {
      return;
    }
    if (!reading_.throttled) {
      return;
    }
    // Queued bytes stopped the decoding. The kernel may take some of them now.
    flush();
    if (!wants_frames()) {
      return;
    }
    fresh = {};
  }
}

// Decodes the kept bytes, with as many bytes of `fresh` as the frame needs. Returns true if nothing is kept any more,
// and `fresh` holds the rest. Returns false if the session can decode nothing more now.
bool Session::decode_kept(Bytes& fresh) {
  while (!input_.empty()) {
    const std::size_t have = input_.size();
    const std::size_t needed = input_.needed();
    if (have < needed) {
      // At least doubles the kept bytes, so that a codec that wishes for one byte at a time is not called for
      // each byte.
      const std::size_t more = std::min(fresh.size(), std::max(needed - have, have));
      if (!keep(fresh.first(more))) {
        return false;
      }
      fresh = fresh.subspan(more);
      if (have + more < needed) {
        return false;
      }
    }
    DecodeResult result;
    if (!wants_frames()) {
      (void)keep(fresh);
      return false;
    }
    if (!decode_frames(input_.bytes(), result)) {
      return false;
    }
    input_.consume(result.consumed);
    input_.set_needed(result.least);
    if (input_.size() == 0) {
      input_.drop(shard_.input_memory());
    } else if (result.least == 0) {
      flush();  // queued bytes may have stopped the decoding
    }
  }
  return true;
}

// Returns false if the session is no longer open, or refused a frame.
bool Session::decode_frames(Bytes input, DecodeResult& result) {
  try {
    result = slot_.ops->frames(*this, input);
  } catch (...) {
    end_after_throw();
  }
  if (result.least > slot_.limits.input_max) [[unlikely]] {
    result.error = Error(Errc::message_too_large, "a frame of more than input_max bytes");
  }
  if (!(result.error == Errc::ok)) [[unlikely]] {
    refuse(result.error);
    return false;
  }
  reading_.throttled = writes_.size() >= queue_limits_.read;
  return is_open();
}

// Keeps received bytes until the session decodes them. Returns false if there is no memory, and the session has ended.
bool Session::keep(Bytes bytes) {
  if (!input_.append(bytes, shard_.input_memory())) {
    end(CloseReason::out_of_memory, kNoMemoryForBytes);
    return false;
  }
  return true;
}

// --- the end of the peer's stream ---

void Session::handle_end() {
  reading_.readable = false;
  if (reading_.peer_end == PeerEnd::handled) {
    return;
  }
  if (!input_.empty()) {
    handle_bytes(0, {});
  }
  if (!wants_frames()) {
    return;  // continue_reading() calls again
  }
  reading_.note_end(PeerEnd::handled);
  if (!input_.empty() || (slot_.ops->in_message != nullptr && slot_.ops->in_message(*this))) {
    return close_for(CloseReason::peer_failed, Error(Errc::connection_closed, "the stream ended inside a frame"));
  }
  try {
    if (slot_.ops->ended != nullptr) {
      slot_.ops->ended(*this);
    }
  } catch (...) {
    end_after_throw();
  }
}

void Session::discard_input() noexcept {
  while (reading_.peer_end < PeerEnd::read && state_ == State::closing) {
    MutableBytes scratch = shard_.scratch();
    if (scratch.empty()) {
      return end(CloseReason::out_of_memory, kNoMemoryForBytes);
    }
    const sys::IoResult result = stream_->read({&scratch, 1});
    if (result.status == sys::IoResult::Status::would_block) {
      return;
    }
    // A read that stopped early had much to do, however few bytes it gave.
    reading_.discarded += static_cast<std::uint32_t>(result.cut ? scratch.size() : result.bytes);
    if (result.status != sys::IoResult::Status::done || reading_.discarded > kDiscardMax) {
      reading_.note_end(PeerEnd::read);
    }
  }
}

}  // namespace weft::serve
