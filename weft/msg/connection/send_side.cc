// SPDX-License-Identifier: MIT
// SendSide: the senders. A part is appended to the batch, or queued in the channel.
#include "weft/msg/connection/send_side.h"

#include <algorithm>
#include <new>
#include <utility>

#include "weft/base/injected_delay.h"
#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"

namespace weft::msg {

namespace {
constexpr std::uint64_t kIdleUs = 20;              // after so long without a flush the next message is flushed at once
constexpr std::uint64_t kFlushUs = 50;             // a sender that sends on flushes a batch of this age
constexpr std::uint32_t kSendsPerClock = 16;       // the clock is read once in so many appended parts
constexpr std::uint32_t kBlockedSendsPerTry = 64;  // while the kernel is full, a flush is tried once in so many sends
constexpr std::size_t kAwaitedUnit = 256 * 1024;   // a wait for room has one more budget for each of these of a part:
constexpr std::size_t kAwaitedMax = 4 * 1024 * 1024;  // that is about the time of copying 4 MB

bool subscribes(const SocketShare::Traits& traits) noexcept {
  return traits.wire == zmtp::WireType::sub || traits.wire == zmtp::WireType::xsub;
}
}  // namespace

SendSide::SendSide(ConnectionCommon& common)
    : common_(common), share_(common.share), writer_(subscribes(common.share.traits)) {
  if (common.owner.conflates(*common.options) &&
      share_.traits.wire != zmtp::WireType::sub) {  // all subscriptions must arrive
    channel_.conflate();
  }
  (void)baton_.try_take();  // the link's
}

Offered SendSide::try_send(Outbound& part, bool wide) noexcept {
  injected_delay();
  if (!baton_.try_take()) {
    return queue_for_holder(part);
  }
  if (wide || part.more || !channel_.empty() || !writer_.append_in_flow(part.bytes)) [[unlikely]] {
    return send_out_of_flow(part, wide);
  }
  // Armed and listed at the socket when the batch began.
  const std::uint64_t appended = writer_.appended();
  if (appended % kSendsPerClock == 0 || writer_.full()) [[unlikely]] {
    flush_if_due(appended);
  }
  give_baton();
  return Offered::taken;
}

Offered SendSide::send_out_of_flow(Outbound& part, bool wide) noexcept {
  expect_connection();
  if (writer_.blocked() && part.waits && part.bytes.size() >= MessageWriter::kBigPart) {
    await_room(part.bytes.size(), part);
  } else if (writer_.blocked() && ++blocked_sends_ % kBlockedSendsPerTry == 0) {
    flush_and_leave();
  }
  if (!writer_.blocked() && !channel_.empty()) {
    encode_channel();
  }
  const bool sent = !writer_.blocked() && channel_.empty() && send_directly(part, wide);
  if (!sent && writer_.blocked()) {
    arm(false);
    // Queued before the baton goes: the thread that finds room then finds the part.
    const Offered queued = queue(part);
    give_baton();
    return queued;
  }
  if (writer_.blocked()) {
    arm(false);
  }
  give_baton();
  return sent ? Offered(Offered::taken) : queue_for_holder(part);
}

Offered SendSide::queue(Outbound& part) noexcept {
  if (!channel_.has_credit()) {
    return Offered::full;
  }
  return channel_.push(part) ? Offered::taken : Offered::no_memory;
}

Offered SendSide::queue_for_holder(Outbound& part) noexcept {
  const Offered queued = queue(part);
  if (queued) {
    flush_if_free();
  }
  return queued;
}

bool SendSide::send_parts(std::span<Cell> parts, bool wide, Outbound* call) noexcept {
  std::size_t size = 0;
  for (const Cell& part : parts) {
    injected_delay();
    size += part.bytes().size();
  }
  const bool big = size >= MessageWriter::kBigPart;
  const bool holds = baton_.try_take();
  // All or nothing: a message that does not fit into the batch goes through the channel.
  if (holds && !big && !writer_.blocked() && channel_.empty() &&
      (encode_control(), writer_.prepare(size + parts.size() * writer_.frame_overhead()))) {
    expect_connection();
    const bool idle = is_idle(wide);
    note_batch_begin();
    for (Cell& part : parts) {
      writer_.append(part.more ? zmtp::kMore : 0, part.bytes());
      part.release();
    }
    flush_or_arm(wide, idle);
    give_baton();
    return true;
  }
  const bool queued = channel_.push(parts);
  if (holds) {
    if (queued) {
      expect_connection();
      flush_all();
      if (big && call != nullptr && call->waits) {
        await_room(size, *call);
      }
      leave(big);
    }
    give_baton();
  } else if (queued) {
    flush_if_free();
  }
  return queued;
}

bool SendSide::queue_subscription(bool subscribe, const FilterView& topic, bool begins) noexcept {
  const std::size_t size = sizeof(Cell) + topic.text.size();
  const bool overflows = channel_.unread_bytes() + size > begun_with_ + kSubscriptionBytesMax;
  if (!begins && (overflows || subscriptions_overflow())) {
    if (!overflow_.exchange(true, std::memory_order_relaxed)) {
      common_.io.request(common_.connection.shared_from_this(), IoService::drop_unread);
    }
    return true;
  }
  Cell* cell = channel_.claim();
  Outbound part{as_bytes(topic.text), nullptr, false};
  if (cell == nullptr || !make_cell(*cell, part)) {
    return false;
  }
  cell->topic_is_large = cell->kind == Cell::Kind::large;
  cell->kind = subscribe ? Cell::Kind::subscribe : Cell::Kind::cancel;
  cell->filter_kind = topic.kind;
  channel_.push_claimed_subscription(*cell);
  if (begins) {
    begun_with_ = channel_.unread_bytes();
  }
  flush_if_free();
  return true;
}

// Returns false if there is no room, nothing changed. The reference to `buffer` is taken over; a big part has one.
bool SendSide::append_part(std::uint8_t flags, Bytes body, mem::Buffer* buffer) noexcept {
  if (body.size() < MessageWriter::kBigPart) {
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

// Past the channel, which is empty. Returns false if there is no room, nothing changed.
bool SendSide::send_directly(Outbound& part, bool wide) noexcept {
  encode_control();
  const std::uint8_t flags = part.more ? zmtp::kMore : 0;
  const std::size_t size = part.bytes.size();
  const bool idle = is_idle(wide);
  if (idle && size < MessageWriter::kBigPart) {
    if (!writer_.prepare(size)) {
      return false;
    }
    writer_.write_through(flags, part.bytes);
    batch_.flushed_at = sys::ticks();
    leave(false);
    return true;
  }
  if (size >= MessageWriter::kBigPart) {
    return send_big(flags, part);
  }
  if (!append_part(flags, part.bytes, nullptr)) {
    writer_.grow_limit(channel_.bytes_beside());  // no room for one more: the batch is full
    flush_batch();
    if (writer_.blocked() || !append_part(flags, part.bytes, nullptr)) {
      return false;
    }
  }
  flush_or_arm(wide, idle);
  return true;
}

// A big part is flushed at once and without a copy: from the message's buffer, which is taken over, or from where the
// caller has it, as far as the kernel takes it.
bool SendSide::send_big(std::uint8_t flags, Outbound& part) noexcept {
  if (!writer_.prepare(0)) {
    flush_batch();
    if (writer_.blocked() || !writer_.prepare(0)) {
      return false;
    }
  }
  mem::Buffer* buffer = part.message != nullptr ? part.message->release_buffer() : nullptr;
  const bool begun = buffer != nullptr ? append_part(flags, part.bytes, buffer) : writer_.lend_big(flags, part.bytes);
  if (!begun) {
    if (buffer != nullptr) {
      part.message->assign(buffer, part.bytes);
    }
    return false;
  }
  flush_batch();
  if (part.waits) {
    await_room(part.bytes.size(), part);
  }
  writer_.keep_rest();
  batch_.flushed_at = sys::ticks();
  leave(true);
  return true;
}

// When a wait for room that begins now ends, in ticks: with the call's deadline at the latest.
std::uint64_t SendSide::await_end(Outbound& call) const noexcept {
  if (call.deadline == Instant::min()) {
    const Duration timeout(share_.send_timeout.load(std::memory_order_relaxed));
    call.deadline = timeout < Duration::zero() ? kNever : deadline_after(sys::now(), timeout);
  }
  return msg::await_end(call.deadline);
}

// A queue of big parts is memory that no cache holds. While the peer reads, spinning for room in the kernel takes less
// time than queueing one more part, also when the peer copies a part of `size` bytes meanwhile. The sender spins again
// after each flush that wrote much. Updates blocked().
void SendSide::await_room(std::size_t size, Outbound& call) noexcept {
  const std::uint32_t times = 1 + static_cast<std::uint32_t>(std::min(size, kAwaitedMax) / kAwaitedUnit);
  const std::uint64_t end = await_end(call);
  for (bool found = true;
       found && writer_.blocked() && !writer_.failed() && !share_.send_mutex->wanted() && sys::ticks() < end;) {
    const std::uint64_t before = writer_.written();
    const sync::Spun spun = sync::spin_until(times * common_.learnt_budget(room_spin_), [&] {
      return sys::is_writable(common_.stream->fd()) || share_.send_mutex->wanted();
    });
    found = came(spun);
    if (found) {
      flush_all();
    }
    room_spin_.record(spun, writer_.written() - before >= ConnectionCommon::kAwaitedMin);
  }
}

// Whether a message may be flushed at once: the batch is empty, and the last flush was a while ago. Fan-out never is.
bool SendSide::is_idle(bool wide) const noexcept {
  return !wide && writer_.empty() && sys::ticks() - batch_.flushed_at > kIdleUs * sys::ticks_per_us();
}

// Before something is appended.
void SendSide::note_batch_begin() noexcept {
  if (writer_.empty()) {
    batch_.began.store(sys::ticks(), std::memory_order_relaxed);
  }
}

std::uint64_t SendSide::batch_age() const noexcept {
  return sys::ticks() - batch_.began.load(std::memory_order_relaxed);
}

// Flushes a batch that is full, or old. Reads the clock if `appended` is a multiple of 16, and not for 0.
void SendSide::flush_if_due(std::uint64_t appended) noexcept {
  const bool full = writer_.full();
  if (full || (appended % kSendsPerClock == 0 && appended != 0 && batch_age() > kFlushUs * sys::ticks_per_us())) {
    if (full) {
      writer_.grow_limit(channel_.bytes_beside());
    }
    flush_batch();
  }
}

// After something was appended: flushes it now, or a full or old batch, or leaves it to the I/O thread.
void SendSide::flush_or_arm(bool wide, bool now) noexcept {
  const std::uint64_t appended = writer_.appended();
  if (now) {
    flush_batch();
    if (writer_.empty()) {
      leave(false);
      return;
    }
  } else {
    flush_if_due(wide ? 0 : appended);
  }
  // Also after a full batch: the I/O thread gives the writer's block back when the stream of batches has ended.
  arm(!writer_.empty() && !writer_.blocked());
  if (!writer_.empty()) {
    list_at_socket();
  }
}

// Without memory for the list, the I/O thread alone flushes the batch, which is armed.
void SendSide::list_at_socket() noexcept {
  if (const std::uint64_t thread = this_thread_number(); share_.flushing_thread != thread) [[unlikely]] {
    share_.flushing_thread = thread;
    common_.owner.batch_begun();
  }
  if (listed_place_ != kNotListed) {
    return;
  }
  try {
    share_.unflushed.push_back(common_.connection.shared_from_this());
  } catch (const std::bad_alloc&) {
    return;
  }
  listed_place_ = share_.unflushed.size() - 1;
  share_.has_unflushed.store(true, std::memory_order_relaxed);
}

void SendSide::leave_list() noexcept {
  if (listed_place_ != kNotListed) {
    share_.unflushed[listed_place_] = std::move(share_.unflushed.back());
    share_.unflushed[listed_place_]->send_side().listed_place_ = listed_place_;
    share_.unflushed.pop_back();
    listed_place_ = kNotListed;
  }
}

}  // namespace weft::msg
