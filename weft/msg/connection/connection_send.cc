// SPDX-License-Identifier: MIT
// Connection, sending side: everything here but try_send's entry runs with the write baton.
#include <algorithm>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"

namespace weft::msg {

namespace {
// A connection that wrote nothing for this long is idle: the next message is written at once.
constexpr std::uint64_t kIdleUs = 20;
constexpr std::uint64_t kFlushUs = 50;                // a sender that sends on writes a batch this old itself
constexpr std::uint32_t kSendsPerLook = 16;           // the clock is read once in so many batched sends
constexpr std::uint32_t kBlockedSendsPerTry = 64;     // a blocked writer is tried again once in so many sends
constexpr std::uint64_t kOverdueUs = 100;             // a batch this old is not left to its sender
constexpr std::uint32_t kQuietTurnsMax = 4;           // flush turns without work before the I/O thread looks away
constexpr std::size_t kAwaitedUnit = 256 * 1024;      // who waits for room waits once more for each of these of a part:
constexpr std::size_t kAwaitedMax = 4 * 1024 * 1024;  // about as long as it takes to copy it
constexpr std::size_t kControlBytesMax = 16 * 1024;   // PONGs beyond this are dropped: the peer floods us
}  // namespace

bool Connection::try_send(Outbound& part, bool wide) noexcept {
  if (!write_baton_.try_take()) {
    return queue_for_holder(part);
  }
  if (wide || part.more || !outgoing_.empty() || !writer_.append_in_flow(part.bytes)) [[unlikely]] {
    return send_out_of_flow(part, wide);
  }
  // Armed and noted as dirty when the batch began.
  const std::uint32_t batched = count_batched();
  if (batched % kSendsPerLook == 0 || writer_.full()) [[unlikely]] {
    flush_if_due(batched);
  }
  give_write_baton();
  return true;
}

// With the write baton, which it gives back.
bool Connection::send_out_of_flow(Outbound& part, bool wide) noexcept {
  bool sent = false;
  bool queued = false;
  bool blocked = false;
  if (writer_.is_open()) {
    if (writer_.blocked() && part.waits && part.bytes.size() >= Writer::kBigPart) {
      await_room(part.bytes.size());
    } else if (writer_.blocked() && ++blocked_sends_ % kBlockedSendsPerTry == 0) {
      run_writer();
    }
    if (!writer_.blocked() && !outgoing_.empty()) {
      encode_channel();
    }
    sent = !writer_.blocked() && outgoing_.empty() && send_directly(part, wide);
    blocked = !sent && writer_.blocked();
    if (writer_.blocked() && !room_wanted_) {
      arm();
    }
  }
  // While nothing can be written, the message is queued before the baton goes: who finds room then finds the message.
  if (blocked) {
    queued = queue_part(part);
  }
  give_write_baton();
  return sent || (blocked ? queued : queue_for_holder(part));
}

bool Connection::queue_for_holder(Outbound& part) noexcept {
  if (!queue_part(part)) {
    return false;
  }
  run_writer_if_free();
  return true;
}

bool Connection::queue_part(Outbound& part) noexcept { return outgoing_.has_credit() && outgoing_.push(part); }

void Connection::send_parts(std::span<Cell> parts, bool wide, bool waits) noexcept {
  std::size_t size = 0;
  for (const Cell& part : parts) {
    size += part.bytes().size();
  }
  const bool big = size >= Writer::kBigPart;
  const bool holds = write_baton_.try_take();
  // All or nothing: what does not fit into the batch goes through the channel.
  if (holds && !big && writer_.is_open() && !writer_.blocked() && outgoing_.empty() &&
      (append_control(), writer_.prepare(size + parts.size() * writer_.frame_overhead()))) {
    const bool idle = idle_now(wide);
    note_batch_begin();
    for (Cell& part : parts) {
      writer_.append(part.more ? zmtp::kMore : 0, part.bytes());
      part.release();
    }
    batch_or_write(wide, idle);
    give_write_baton();
    return;
  }
  const bool queued = outgoing_.push(parts);
  if (!queued) {
    for (Cell& part : parts) {
      part.release();
    }
    ++pipe_->dropped;
  }
  if (holds) {
    if (queued && writer_.is_open()) {
      write_out();
      if (big && waits) {
        await_room(size);
      }
      leave_rest(big);
    }
    give_write_baton();
  } else if (queued) {
    run_writer_if_free();
  }
}

void Connection::send_subscription(bool subscribe, Bytes topic) noexcept {
  Cell* cell = outgoing_.claim();
  Outbound part{topic, nullptr, false};
  if (cell == nullptr || !make_cell(*cell, part)) {
    ++pipe_->dropped;
    return;
  }
  cell->topic_is_large = cell->kind == Cell::Kind::large;
  cell->kind = subscribe ? Cell::Kind::subscribe : Cell::Kind::cancel;
  outgoing_.push_claimed(*cell);
  run_writer_if_free();
}

void Connection::send_control(Bytes frame) noexcept {
  {
    const std::lock_guard lock(control_mutex_);
    if (control_.size() + frame.size() > kControlBytesMax) {
      return;
    }
    control_.insert(control_.end(), frame.begin(), frame.end());
    has_control_.store(true, std::memory_order_relaxed);  // ordered by the baton's nudge
  }
  run_writer_if_free();
}

void Connection::append_control() noexcept {
  if (!has_control_.load(std::memory_order_relaxed)) [[likely]] {
    return;
  }
  const std::lock_guard lock(control_mutex_);
  if (writer_.prepare(writer_.raw_size(control_))) {
    writer_.append_raw(control_);
    control_.clear();
    has_control_.store(false, std::memory_order_relaxed);
  }
}

// False: no room, nothing changed. The reference to `buffer` is taken over; a big part has one.
bool Connection::encode_part(std::uint8_t flags, Bytes body, mem::Buffer* buffer) noexcept {
  if (body.size() < Writer::kBigPart) {
    if (!writer_.prepare(body.size())) {
      return false;
    }
    note_batch_begin();
    writer_.append(flags, body);
    if (buffer != nullptr) {
      buffer->release();
    }
    return true;
  }
  if (!writer_.prepare(0)) {
    return false;
  }
  if (writer_.seals()) [[unlikely]] {
    if (!writer_.seal_big(flags, body)) {
      return false;
    }
    buffer->release();
    return true;
  }
  writer_.append_big(flags, buffer, body);
  return true;
}

bool Connection::encode_cell(Cell& cell) noexcept {
  if (cell.is_message()) {
    return encode_part(cell.more ? zmtp::kMore : 0, cell.bytes(),
                       cell.kind == Cell::Kind::large ? cell.body.large.buffer : nullptr);
  }
  const bool subscribe = cell.kind == Cell::Kind::subscribe;
  const Bytes topic = cell.bytes();
  const bool group = share_.traits.groups;
  const std::size_t size = group ? zmtp::join_frame_size(subscribe, topic.size())
                                 : zmtp::subscribe_frame_size(subscribe, topic.size(), peer_minor_);
  if (!writer_.prepare(size)) {
    return false;
  }
  std::vector<std::uint8_t> frame(size);
  if (group) {
    (void)zmtp::write_join(frame.data(), subscribe, topic);
  } else {
    (void)zmtp::write_subscribe(frame.data(), subscribe, topic, peer_minor_);
  }
  writer_.append_raw(frame);
  cell.release();
  return true;
}

// Moves cells into the batch, flushing as it fills, until the channel is empty or the kernel takes no more.
void Connection::encode_channel() noexcept {
  bool credit = false;
  while (Cell* cell = outgoing_.front()) {
    const bool more = cell->more;
    const std::size_t bytes = Channel::footprint(*cell);
    if (!encode_cell(*cell)) {
      if (writer_.empty()) {
        arm();  // out of memory: the flush turn tries again
        break;
      }
      writer_.grow_limit();
      writer_.flush();
      if (writer_.blocked()) {
        break;
      }
      continue;
    }
    credit |= outgoing_.pop(!more, bytes);
    if (writer_.full()) {
      writer_.grow_limit();
      writer_.flush();
      if (writer_.blocked()) {
        break;
      }
    }
  }
  if (credit) {
    share_.output_parker.wake_with_fence();
  }
}

bool Connection::send_directly(Outbound& part, bool wide) noexcept {
  append_control();
  const std::uint8_t flags = part.more ? zmtp::kMore : 0;
  const std::size_t size = part.bytes.size();
  const bool idle = idle_now(wide);
  if (idle && size < Writer::kBigPart) {
    if (!writer_.prepare(size)) {
      return false;
    }
    writer_.write_through(flags, part.bytes);
    last_write_ = sys::ticks();
    if (!writer_.empty()) {
      arm();
    } else if (!armed_.load(std::memory_order_relaxed)) {
      writer_.rest();
    }
    return true;
  }
  if (size >= Writer::kBigPart) {
    return send_big(flags, part);
  }
  if (!encode_part(flags, part.bytes, nullptr)) {
    writer_.grow_limit();  // no room for one more: the batch is full
    writer_.flush();
    last_write_ = sys::ticks();
    if (writer_.blocked() || !encode_part(flags, part.bytes, nullptr)) {
      return false;
    }
  }
  batch_or_write(wide, idle);
  return true;
}

// A big part goes out at once and without a copy: from the message's buffer, which is taken over, or from where the
// caller has it, as far as the kernel takes it.
bool Connection::send_big(std::uint8_t flags, Outbound& part) noexcept {
  if (!writer_.prepare(0)) {
    writer_.flush();
    if (writer_.blocked() || !writer_.prepare(0)) {
      return false;
    }
  }
  mem::Buffer* buffer = part.message != nullptr ? part.message->release_buffer() : nullptr;
  const bool begun = buffer != nullptr ? encode_part(flags, part.bytes, buffer) : writer_.lend_big(flags, part.bytes);
  if (!begun) {
    if (buffer != nullptr) {
      part.message->assign(buffer, part.bytes);
    }
    return false;
  }
  writer_.flush();
  if (part.waits) {
    await_room(part.bytes.size());
  }
  writer_.keep_rest();
  last_write_ = sys::ticks();
  leave_rest(true);
  return true;
}

// A queue of big parts is memory that no cache holds: while the peer reads, waiting for the kernel takes less time than
// queueing one more, also when it copies a part of `size` bytes meanwhile. Goes on while much leaves. Sets blocked()
// right.
void Connection::await_room(std::size_t size) noexcept {
  if (!share_.sends_patiently.load(std::memory_order_relaxed)) {
    return;
  }
  const std::uint32_t times = 1 + static_cast<std::uint32_t>(std::min(size, kAwaitedMax) / kAwaitedUnit);
  const std::uint64_t end = await_end();
  for (bool found = true; found && writer_.blocked() && !writer_.failed() && sys::ticks() < end;) {
    const std::uint64_t before = writer_.written();
    found = sync::spin_until(times * learnt_budget(room_spin_), [&] { return sys::is_writable(stream_->fd()); });
    if (found) {
      write_out();
    }
    room_spin_.record(writer_.written() - before >= kAwaitedMin);
  }
}

// Whether a message may be written at once: nothing waits, and the last write was a while ago. Fan-out never is.
bool Connection::idle_now(bool wide) const noexcept {
  return !wide && writer_.empty() && sys::ticks() - last_write_ > kIdleUs * sys::ticks_per_us();
}

// Before something is appended.
void Connection::note_batch_begin() noexcept {
  if (writer_.empty()) {
    batch_began_.store(sys::ticks(), std::memory_order_relaxed);
  }
}

// Writes a batch that is full, or old: `batched` says whether it is time to look, 0 that it is not.
void Connection::flush_if_due(std::uint32_t batched) noexcept {
  const bool full = writer_.full();
  if (full || (batched % kSendsPerLook == 0 && batched != 0 && batch_age() > kFlushUs * sys::ticks_per_us())) {
    if (full) {
      writer_.grow_limit();
    }
    writer_.flush();
    last_write_ = sys::ticks();
  }
}

// After something was appended: writes it now, or a full or old batch, or leaves it to the flush turn.
void Connection::batch_or_write(bool wide, bool now) noexcept {
  const std::uint32_t batched = count_batched();
  if (now) {
    writer_.flush();
    last_write_ = sys::ticks();
    if (writer_.empty()) {
      if (!armed_.load(std::memory_order_relaxed)) {
        writer_.rest();
      }
      return;
    }
  } else {
    flush_if_due(wide ? 0 : batched);
  }
  // Also after a full batch: the I/O thread lets the writer rest when the stream has ended.
  arm(!writer_.empty() && !writer_.blocked());
  if (!writer_.empty()) {
    list_unflushed();
  }
}

void Connection::list_unflushed() noexcept {
  if (!unflushed) {
    unflushed = true;
    share_.unflushed.push_back(shared_from_this());
    share_.has_unflushed.store(true, std::memory_order_relaxed);
  }
}

void Connection::arm(bool begins_batch) noexcept {
  if (!armed_.load(std::memory_order_relaxed)) {  // changes only with the write baton
    armed_.store(true, std::memory_order_relaxed);
    quiet_turns_ = 0;
    begins_batch_ = begins_batch;
    io_.arm(*this);
  }
}

// Everything there is goes out, as far as the kernel takes it.
void Connection::run_writer() noexcept {
  if (writer_.is_open()) {
    write_out();
    leave_rest(false);
  }
}

void Connection::write_out() noexcept {
  writer_.flush();
  if (!writer_.blocked()) {
    append_control();
    encode_channel();
    if (!writer_.blocked()) {
      writer_.flush();
    }
  }
  last_write_ = sys::ticks();
}

// What the kernel did not take is the I/O thread's from here on: `soon` when it is much.
void Connection::leave_rest(bool soon) noexcept {
  if (!writer_.empty()) {
    if (!(writer_.blocked() && room_wanted_)) {
      arm(soon);
    }
  } else if (!armed_.load(std::memory_order_relaxed)) {
    writer_.rest();
  }
}

void Connection::run_writer_if_free() noexcept {
  if (write_baton_.try_take_or_nudge()) {
    run_writer();
    give_write_baton();
  }
}

void Connection::answer_nudges() noexcept {
  while (write_baton_.try_take_or_nudge()) {
    run_writer();
    if (!write_baton_.release()) {
      return;
    }
  }
}

void Connection::flush_now() noexcept { run_writer_if_free(); }

// In ticks. Anybody may ask; without the baton it is a hint.
std::uint64_t Connection::batch_age() const noexcept {
  return sys::ticks() - batch_began_.load(std::memory_order_relaxed);
}

Connection::FlushTurn Connection::flush_turn(Instant /*now*/) noexcept {
  if (holds_write_) {  // no connection: the next one flushes what there is
    armed_.store(false, std::memory_order_relaxed);
    return FlushTurn::drop;
  }
  // A sender in full flow flushes by itself. To take the baton from it would cost it the baton's bias.
  const std::uint32_t batched = batched_.load(std::memory_order_relaxed);
  if (std::exchange(batched_seen_, batched) != batched && batch_age() < kOverdueUs * sys::ticks_per_us()) {
    return FlushTurn::busy;
  }
  if (!write_baton_.try_take()) {
    return FlushTurn::busy;  // somebody is writing this moment
  }
  FlushTurn turn = FlushTurn::keep;
  if (!writer_.is_open()) {
    armed_.store(false, std::memory_order_relaxed);
    turn = FlushTurn::drop;
  } else if (writer_.blocked() || !writer_.empty() || !outgoing_.empty()) {
    run_writer();
    if (writer_.blocked()) {
      // From here on the poller says when there is room.
      armed_.store(false, std::memory_order_relaxed);
      room_wanted_ = true;
      turn = FlushTurn::drop;
    }
    quiet_turns_ = 0;
  } else if (++quiet_turns_ > kQuietTurnsMax) {
    armed_.store(false, std::memory_order_relaxed);
    writer_.rest();
    turn = FlushTurn::drop;
  }
  const bool wants_room = turn == FlushTurn::drop && room_wanted_;
  give_write_baton();
  if (wants_room && phase_ == Phase::traffic) {
    set_interest(interest_ | sys::Interest::writable);
  }
  return turn;
}

}  // namespace weft::msg
