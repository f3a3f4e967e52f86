// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <utility>

#include "weft/serve/session/session.h"
#include "weft/serve/session/shard.h"
#include "weft/sys/call.h"
#include "weft/sys/files/file_tree.h"

namespace weft::serve {

namespace {
constexpr std::size_t kSharedMin = 2 * 1024;             // bytes; below, a copy costs less than a reference
constexpr std::size_t kPartsMax = std::size_t{1} << 30;  // bytes of one frame, with any codec
constexpr int kWritesMax = 16;                           // system calls for each flush
constexpr Error kClosedToWrites(Errc::closed, "the session is closed");
constexpr Error kNoMemoryForFrame(Errc::resource_exhausted, "no memory for a queued frame");
constexpr Error kUnread(Errc::resource_exhausted, "the peer does not read what is sent to it");
constexpr Error kFrameTooLarge(Errc::message_too_large, "a frame of more than 1 GiB");
}  // namespace

Result<void> Session::send_parts(const Parts& parts, FrameKind kind) {
  const std::size_t size = parts[0].size() + parts[1].size() + parts[2].size();
  if (!is_here()) [[unlikely]] {
    return used_elsewhere();
  }
  if (size == 0) {
    return {};
  }
  if (size > kPartsMax) {
    return kFrameTooLarge;
  }
  if (writes_.size() >= queue_limits_.take) {
    WEFT_TRY(make_room(size, kind));
  }
  if (size >= kThroughMin && !writing_.blocked) {
    return write_through(parts, size, kind);
  }
  std::uint8_t* place = writes_.room(size);
  if (place == nullptr) {
    place = writes_.reserve(size, shard_.budget());
    if (place == nullptr) {
      return refuse_for_memory();
    }
  }
  for (const Bytes part : parts) {
    copy_bytes(place, part);
    place += part.size();
  }
  commit(size);
  writes_.mark_last(kind);
  return {};
}

Result<void> Session::send_keyed(const Parts& parts, FrameKey key, mem::Buffer* shared) {
  const std::size_t size = parts[0].size() + parts[1].size() + parts[2].size();
  if (!is_here()) [[unlikely]] {
    return used_elsewhere();
  }
  if (size == 0) {
    return {};
  }
  if (size > kPartsMax) {
    return kFrameTooLarge;
  }
  if (queue_limits_.take == 0) {
    return refuse_closed();
  }
  WriteQueue::Keyed* older = writes_.find(key);
  const std::size_t old_size = older == nullptr ? 0 : WriteQueue::size_of(*older);
  if (size > old_size && writes_.size() - old_size >= queue_limits_.take) {
    WEFT_TRY(make_room(size, FrameKind::state));
    older = writes_.find(key);  // it may have left, or was dropped
  }
  const WriteQueue::KeyedFrame frame{key, parts, shared};
  if (older != nullptr) {
    if (!writes_.replace(*older, frame, shard_.held_frames())) {
      return refuse_for_memory();
    }
    shard_.counters().conflated.add();
  } else {
    if (size >= kThroughMin && !writing_.blocked) {
      return write_through(parts, size, FrameKind::event, &key);
    }
    if (!writes_.append_keyed(frame, shard_.held_frames(), shard_.budget())) {
      return refuse_for_memory();
    }
  }
  ++uncounted_.out;
  if (!writing_.flush_due) {
    flush_soon();
  }
  return {};
}

Result<void> Session::send_shared(const SharedFrame& frame) {
  if (frame.tag() != slot_.ops->codec_tag) {
    return Error(Errc::invalid_argument, "the frame was encoded for another codec");
  }
  const Bytes bytes = frame.bytes();
  if (const auto key = frame.key()) [[unlikely]] {
    return send_keyed({bytes, Bytes(), Bytes()}, *key, bytes.size() < kSharedMin ? nullptr : frame.buffer());
  }
  if (bytes.size() < kSharedMin) {
    return send_parts({bytes, Bytes(), Bytes()}, frame.kind());
  }
  if (!is_here()) [[unlikely]] {
    return used_elsewhere();
  }
  if (writes_.size() >= queue_limits_.take) {
    WEFT_TRY(make_room(bytes.size(), frame.kind()));
  }
  if (!writes_.append_shared(shard_.held_frames(), frame.buffer(), bytes, shard_.budget())) {
    return refuse_for_memory();
  }
  writes_.mark_last(frame.kind());
  ++uncounted_.out;
  if (!writing_.flush_due) {
    flush_soon();
  }
  return {};
}

Result<std::size_t> Session::write_file(int file, std::uint64_t offset, std::size_t size) {
  if (!is_here()) [[unlikely]] {
    return used_elsewhere();
  }
  if (slot_.layered) {
    return Error(Errc::not_supported, "a stream with a layer encrypts what it sends");
  }
  if (queue_limits_.take == 0) {
    return refuse_closed();
  }
  flush();
  if (!is_open()) {
    return refuse_closed();
  }
  if (!all_written() || writing_.blocked) {
    return std::size_t{0};
  }
  const sys::IoResult result = sys::send_file(stream_->fd(), file, offset, size);
  if (result.status == sys::IoResult::Status::failed && (result.os_errno == EINVAL || result.os_errno == ENOSYS)) {
    return Error(Errc::not_supported, "the file cannot be written to a socket");
  }
  if (result.status == sys::IoResult::Status::failed) {
    // The error does not say of which of both it is. Only that of the socket ends the session.
    std::uint8_t byte = 0;
    WEFT_TRY(sys::read_file_at(file, offset, MutableBytes(&byte, 1)));
  }
  if (result.status == sys::IoResult::Status::done && result.bytes == 0 && size != 0) {
    return Error(Errc::invalid_state, "the file is shorter than it was");
  }
  if (!note_written(result, size)) {
    return refuse_closed();
  }
  return result.bytes;
}

Error Session::used_elsewhere() const noexcept { return rt::used_elsewhere("session", core_); }

// The write budget is spent: first offers the kernel the queued bytes, then applies the slow-consumer policy.
Result<void> Session::make_room(std::size_t size, FrameKind kind) {
  if (queue_limits_.take == 0) {
    return refuse_closed();
  }
  flush_for_send();
  if (!is_open()) {
    return refuse_closed();
  }
  if (writes_.size() < queue_limits_.take || std::exchange(writing_.pass, false)) {
    return {};
  }
  CoreCounters& counters = shard_.counters();
  SlowConsumer policy = slot_.limits.slow_consumer;
  if (policy == SlowConsumer::conflate_state) {
    counters.conflated.add(writes_.drop_state(shard_.budget()));
    if (writes_.size() < queue_limits_.take) {
      return {};
    }
    policy = kind == FrameKind::state ? SlowConsumer::drop_newest : SlowConsumer::disconnect;
  }
  switch (policy) {
    case SlowConsumer::disconnect:
    case SlowConsumer::conflate_state: end(CloseReason::slow_consumer, kUnread); return refuse_closed();
    case SlowConsumer::drop_newest: counters.dropped_newest.add(); return kUnread;
    case SlowConsumer::drop_oldest:
      counters.dropped_oldest.add(
          writes_.drop_oldest(std::max(size, writes_.size() - queue_limits_.take + 1), shard_.budget()).frames);
      break;
    case SlowConsumer::conflate: counters.conflated.add(writes_.drop_oldest(kUnlimited, shard_.budget()).frames); break;
  }
  return {};
}

// Writes a large frame from where it lies, after the queued bytes. Copies the part that the kernel does not take.
Result<void> Session::write_through(const Parts& parts, std::size_t size, FrameKind kind, const FrameKey* key) {
  while (!writes_.empty() && !writing_.blocked && is_open()) {
    Bytes queue[WriteQueue::kGatherMax];
    if (writes_.gather(queue) <= WriteQueue::kGatherMax - parts.size()) {
      break;
    }
    flush();
  }
  if (!is_open()) {
    return refuse_closed();
  }
  Bytes from[WriteQueue::kGatherMax];
  std::size_t count = writing_.blocked ? 0 : writes_.gather({from, WriteQueue::kGatherMax - parts.size()});
  for (const Bytes part : parts) {
    if (!part.empty()) {
      from[count++] = part;
    }
  }
  const std::size_t queued = writes_.size();
  std::size_t through = 0;
  if (!writing_.blocked) {
    const sys::IoResult result = stream_->write({from, count});
    if (!note_written(result, queued + size)) {
      return refuse_closed();
    }
    writes_.advance(std::min(result.bytes, queued), shard_.budget());
    through = result.bytes - std::min(result.bytes, queued);
  }
  if (through != size) {
    const bool replaceable = key != nullptr && through == 0;
    if (!(replaceable ? writes_.append_keyed({*key, parts}, shard_.held_frames(), shard_.budget())
                      : writes_.append_rest(parts, through, shard_.budget()))) {
      if (through != 0) {  // the peer has half a frame: the stream cannot be used any more
        end(CloseReason::out_of_memory, kNoMemoryForFrame);
      }
      return refuse_for_memory();
    }
    writes_.mark_last(kind);
  }
  ++uncounted_.out;
  return {};
}

Error Session::refuse_closed() noexcept {
  shard_.counters().refused_closed.add();
  return kClosedToWrites;
}

Error Session::refuse_for_memory() noexcept {
  shard_.counters().refused_memory.add();
  shard_.end_slowest();
  return kNoMemoryForFrame;
}

void Session::flush_soon() noexcept {
  writing_.flush_due = true;
  list();
}

void Session::watch_writable(bool on) noexcept {
  if (writing_.watches_writable == on) {
    return;
  }
  const sys::Interest interest = sys::Interest::readable | sys::Interest::peer_closed;
  if (auto watched = shard_.loop().rewatch(watch_, on ? interest | sys::Interest::writable : interest, true);
      !watched) {
    return end(CloseReason::out_of_memory, watched.error());
  }
  writing_.watches_writable = on;
}

// Accounts for a write of `asked` bytes. When the kernel took fewer, waits for a writable event. Returns false if the
// connection failed.
bool Session::note_written(const sys::IoResult& result, std::size_t asked) noexcept {
  switch (result.status) {
    case sys::IoResult::Status::done:
      clock_.note_written(shard_.loop().now());
      shard_.counters().writes.add();
      shard_.counters().bytes_out.add(result.bytes);
      record_.counts.bytes_out += result.bytes;
      break;
    case sys::IoResult::Status::would_block: break;
    case sys::IoResult::Status::end_of_stream:
    case sys::IoResult::Status::failed: fail_writing(result); return false;
  }
  writing_.unsent = slot_.layered && stream_->state().unsent;
  if (result.bytes < asked || writing_.unsent) {
    writing_.blocked = true;
    watch_writable(true);
  }
  return true;
}

// The connection takes no more bytes. Those that the peer sent before may still be there, such as an early answer: a
// session that owes no reply reads them, and then ends.
void Session::fail_writing(const sys::IoResult& result) noexcept {
  const bool unread = reading_.peer_end <= PeerEnd::broken && !reading_.in_handshake && pauses_ == 0;
  if (!is_open() || !unread || replies_ != 0 || !(stream_->state().failure == Errc::ok)) {
    return fail(result);
  }
  if (reading_.peer_end < PeerEnd::broken) {
    reading_.note_end(PeerEnd::broken);
    record_.why = sys::make_error(result.os_errno, "the connection failed");
  }
  drop_queue();
  queue_limits_.take = 0;
  reading_.throttled = false;
  reading_.readable = true;
  read_later();
}

bool Session::gather_and_write() noexcept {
  Bytes from[WriteQueue::kGatherMax];
  return write_out({from, writes_.gather(from)});
}

// Returns false if the connection failed.
bool Session::write_out(std::span<const Bytes> from) noexcept {
  std::size_t asked = 0;
  for (const Bytes part : from) {
    asked += part.size();
  }
  const sys::IoResult result = stream_->write(from);
  if (!note_written(result, asked)) {
    return false;
  }
  writes_.advance(result.bytes, shard_.budget());
  return true;
}

void Session::flush() noexcept {
  if (uncounted_.out != 0) {
    shard_.counters().frames_out.add(uncounted_.out);
    record_.counts.frames_out += uncounted_.out;
    uncounted_.out = 0;
  }
  if (!has_room()) [[unlikely]] {
    writing_.full = true;
  }
  for (int i = 0; i < kWritesMax && !all_written() && !writing_.blocked && state_ != State::ended; ++i) {
    const Bytes sole = writes_.sole();
    const bool ok = !sole.empty() ? write_out({&sole, 1}) : gather_and_write();
    if (!ok) {
      return;
    }
  }
  if (all_written()) {
    watch_writable(writing_.blocked);  // by write_file()
  } else if (!writing_.blocked && state_ != State::ended) {
    list();  // other sessions have their turn first
  }
  resume_throttled();
  if (tasks_ != nullptr) [[unlikely]] {
    tasks_->written().pulse();
    serve_waits();
  }
  if (writing_.full) [[unlikely]] {
    note_writable();
  }
}

void Session::resume_throttled() noexcept {
  if (reading_.throttled && writes_.size() <= queue_limits_.read / 2) {
    reading_.throttled = false;
    if (is_open()) {
      read_again();
    }
  }
}

void Session::drop_queue() noexcept {
  const std::size_t frames = writes_.clear(shard_.budget());
  record_.undelivered += static_cast<std::uint32_t>(frames);
  shard_.counters().undelivered.add(frames);
}

}  // namespace weft::serve
