// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/session/shard.h"

namespace weft::serve {

namespace {
constexpr std::size_t kKeptMin = 128;
constexpr std::size_t kKeptStep = 64 * 1024;  // up to this size the first bytes of a frame get a block for all of it
constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for what the peer sends");
}  // namespace

void Session::handle_event(const sys::PollEvent& event) {
  if (state_ == State::ended) {
    return;
  }
  flush_due_ = true;
  blocked_ = blocked_ && !event.writable && !event.failed;
  if (event.readable || event.peer_closed || event.failed) {
    readable_ = true;
    end_seen_ = end_seen_ || event.peer_closed || event.failed;
    if (wants_frames()) [[likely]] {
      read_some();
    }
  }
  flush_due_ = false;
  flush();
  settle();
}

// One read. The rest of a half-received frame is read behind its beginning; the bytes after it are decoded in
// place.
void Session::read_some() {
  MutableBytes into[2];
  std::size_t count = 0;
  const MutableBytes scratch = shard_.scratch();
  if (scratch.empty() || (kept_ != nullptr && !make_kept_room(kept().size(), least_))) [[unlikely]] {
    return end(CloseReason::out_of_memory, kNoMemory);
  }
  std::size_t rest = 0;
  if (kept_ != nullptr && kept().size() < least_) {
    rest = std::min({least_ - kept().size(), kept_->capacity() - kept_end_, kReadMax});
    into[count++] = MutableBytes(kept_->data() + kept_end_, rest);
  }
  into[count++] = scratch;
  const sys::IoResult result = stream_->read({into, count});
  if (slot_.layered && !look_at_stream()) {
    return;
  }
  switch (result.status) {
    case sys::IoResult::Status::done: break;
    case sys::IoResult::Status::would_block: readable_ = false; return;
    case sys::IoResult::Status::end_of_stream: peer_ended_ = true; return handle_end();
    case sys::IoResult::Status::failed: return fail(result);
  }
  last_active_ = shard_.loop().now();
  shard_.counters().reads.add();
  shard_.counters().bytes_in.add(result.bytes);
  counts_.bytes_in += result.bytes;
  // A read that did not fill its room has emptied the socket; an event reports the next bytes.
  readable_ = result.bytes == rest + scratch.size() || end_seen_;
  const std::size_t into_kept = std::min(rest, result.bytes);
  handle_bytes(into_kept, scratch.first(result.bytes - into_kept));
  if (readable_ && wants_frames()) {
    go_on_ = true;
    list();
  }
}

// Takes over the stream's state after a read: the handshake may be over, or the stream may hold bytes for the
// peer, which the flush behind every read writes. False: the service ended the session.
bool Session::look_at_stream() noexcept {
  const net::StreamState now = stream_->state();
  end_seen_ = end_seen_ || now.ended;
  unsent_ = now.unsent;
  if (now.established && !begun_) {
    begin();
  }
  return state_ == State::open;
}

void Session::handle_bytes(std::size_t into_kept, Bytes fresh) {
  kept_end_ += into_kept;
  decode(fresh);
  if (frames_in_ != 0) {
    heard_frame_ = true;
    shard_.counters().frames_in.add(frames_in_);
    counts_.frames_in += frames_in_;
    frames_in_ = 0;
  }
}

// At the end of a turn: handles the bytes that waited while the session was paused or other sessions had
// their turn.
void Session::go_on_reading() {
  if (kept_ != nullptr && wants_frames()) {
    handle_bytes(0, {});
  }
  if (!wants_frames()) {
    return;
  }
  if (peer_ended_) {
    handle_end();
  } else if (readable_) {
    read_some();
  }
}

void Session::decode(Bytes fresh) {
  for (;;) {
    if (kept_ != nullptr && !decode_kept(fresh)) {
      return;
    }
    // Nothing is kept now.
    DecodeResult result;
    if (fresh.empty() || !decode_frames(fresh, result)) {
      return;
    }
    fresh = fresh.subspan(result.consumed);
    least_ = result.least;
    if (!fresh.empty() && !keep(fresh)) {
      return;
    }
    if (!throttled_) {
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

// Decodes the kept bytes, with as many bytes of `fresh` as the frame needs. True: nothing is kept any more,
// and `fresh` holds the rest. False: the session can decode nothing more now.
bool Session::decode_kept(Bytes& fresh) {
  while (kept_ != nullptr) {
    const std::size_t have = kept().size();
    if (have < least_) {
      // At least doubles the kept bytes, so that a codec that wishes for one byte at a time is not called for
      // each byte.
      const std::size_t more = std::min(fresh.size(), std::max(least_ - have, have));
      if (!keep(fresh.first(more))) {
        return false;
      }
      fresh = fresh.subspan(more);
      if (have + more < least_) {
        return false;
      }
    }
    DecodeResult result;
    if (!wants_frames()) {
      (void)keep(fresh);
      return false;
    }
    if (!decode_frames(kept(), result)) {
      return false;
    }
    kept_begin_ += result.consumed;
    least_ = result.least;
    if (kept().empty()) {
      drop_kept();
    } else if (least_ == 0) {
      flush();  // queued bytes may have stopped the decoding
    }
  }
  return true;
}

// False: the session is no longer open.
bool Session::decode_frames(Bytes input, DecodeResult& result) {
  try {
    result = slot_.ops->frames(*this, input);
  } catch (...) {
    end(CloseReason::service_failed, Error(Errc::system, "the service threw"));
  }
  if (state_ == State::open && !(result.error == Errc::ok)) [[unlikely]] {
    close_for(CloseReason::refused_frame, result.error);
  }
  throttled_ = writes_.size() >= throttle_;
  return state_ == State::open;
}

// --- bytes received and not decoded ---

bool Session::keep(Bytes bytes) {
  if (bytes.empty()) {
    return true;
  }
  if (!make_kept_room(kept().size() + bytes.size(), least_)) {
    end(CloseReason::out_of_memory, kNoMemory);
    return false;
  }
  copy_bytes(kept_->data() + kept_end_, bytes);
  kept_end_ += bytes.size();
  return true;
}

// Makes room for `must` bytes in all, and for `wish` bytes as far as that is in proportion to the bytes
// received. A size that the peer only announces takes no memory.
bool Session::make_kept_room(std::size_t must, std::size_t wish) {
  const std::size_t have = kept().size();
  const std::size_t wanted = std::max({kKeptMin, must, std::min(wish, std::max(kKeptStep, 4 * have))});
  if (kept_ != nullptr && kept_->capacity() >= wanted) {
    if (kept_->capacity() - kept_begin_ < wanted) {
      std::memmove(kept_->data(), kept_->data() + kept_begin_, have);
      kept_begin_ = 0;
      kept_end_ = have;
    }
    return true;
  }
  mem::Buffer* const block = mem::Buffer::make(wanted);
  if (block == nullptr || !shard_.budget().take(block->capacity())) {
    if (block != nullptr) {
      block->release();
    }
    return false;
  }
  copy_bytes(block->data(), kept());
  drop_kept();
  kept_ = block;
  kept_end_ = have;
  return true;
}

void Session::drop_kept() noexcept {
  if (kept_ != nullptr) {
    shard_.budget().give_back(kept_->capacity());
    kept_->release();
    kept_ = nullptr;
  }
  kept_begin_ = kept_end_ = 0;
}

// --- the end of the peer's stream ---

void Session::handle_end() {
  readable_ = false;
  if (kept_ != nullptr && !end_handled_) {
    handle_bytes(0, {});
  }
  if (end_handled_ || !wants_frames()) {
    return;  // go_on_reading() comes back here
  }
  end_handled_ = true;
  if (kept_ != nullptr) {
    return close_for(CloseReason::peer_failed, Error(Errc::connection_closed, "the stream ended inside a frame"));
  }
  try {
    if (slot_.ops->ended != nullptr) {
      slot_.ops->ended(*this);
    }
  } catch (...) {
    end(CloseReason::service_failed, Error(Errc::system, "the service threw"));
  }
}

void Session::discard_input() noexcept {
  while (!peer_ended_ && state_ == State::closing) {
    MutableBytes scratch = shard_.scratch();
    if (scratch.empty()) {
      return end(CloseReason::out_of_memory, kNoMemory);
    }
    const sys::IoResult result = stream_->read({&scratch, 1});
    if (result.status == sys::IoResult::Status::would_block) {
      return;
    }
    discarded_ += result.bytes;
    peer_ended_ = result.status != sys::IoResult::Status::done || discarded_ > kDiscardMax;
  }
}

}  // namespace weft::serve
