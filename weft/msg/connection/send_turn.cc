// SPDX-License-Identifier: MIT
// SendSide: encoding, flushing, the I/O thread's turns, and the link. Every private function here except
// flush_if_free() and flush_for_nudges() runs with the write baton.
#include <new>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/send_side.h"

namespace weft::msg {

namespace {
constexpr std::uint64_t kOverdueUs = 100;            // a batch of this age is not left to its sender
constexpr std::uint32_t kQuietTurnsMax = 4;          // turns without work before the connection is no longer visited
constexpr std::size_t kControlBytesMax = 16 * 1024;  // PONGs beyond this are dropped: the peer floods us

bool joins(const SocketShare::Traits& traits) noexcept {
  return traits.wire == zmtp::WireType::sub || traits.wire == zmtp::WireType::xsub ||
         traits.wire == zmtp::WireType::dish;
}
}  // namespace

// --- which thread flushes ---

void SendSide::change(FlushEvent event) noexcept {
  const Flusher before = flusher();
  const Flusher after = next_flusher(before, event);
  if (after == before) {
    return;
  }
  flusher_.store(after, std::memory_order_relaxed);
  if (is_armed(after)) {
    turns_.quiet = 0;
    common_.io.arm(common_.connection);
  } else if (is_armed(before) && after == Flusher::link) {
    common_.io.disarm(common_.connection);
  }
}

// `soon`: the sender may have sent all that it has.
void SendSide::arm(bool soon) noexcept {
  const Flusher now = flusher();
  if (!is_armed(now) && !(now == Flusher::poller && writer_.blocked())) {
    change(soon ? FlushEvent::begin : FlushEvent::leave);
  }
}

// After a flush: the I/O thread flushes the bytes that the kernel did not take. `soon`: they are many.
void SendSide::leave(bool soon) noexcept {
  if (!writer_.empty()) {
    arm(soon);
    return;
  }
  change(FlushEvent::done);
  if (!is_armed(flusher())) {
    writer_.rest();
  }
}

// --- encoding and flushing ---

void SendSide::queue_control(Bytes frame) noexcept {
  {
    const sync::LockGuard lock(control_.mutex);
    if (control_.frames.size() + frame.size() > kControlBytesMax) {
      return;
    }
    try {
      control_.frames.insert(control_.frames.end(), frame.begin(), frame.end());
    } catch (const std::bad_alloc&) {
      return;  // as beyond the bound
    }
    control_.waits.store(true, std::memory_order_relaxed);  // ordered by the baton's nudge
  }
  flush_if_free();
}

void SendSide::encode_control() noexcept {
  if (!control_.waits.load(std::memory_order_relaxed)) [[likely]] {
    return;
  }
  const sync::LockGuard lock(control_.mutex);
  if (writer_.prepare(writer_.raw_size(control_.frames))) {
    writer_.append_raw(control_.frames);
    control_.frames.clear();
    control_.waits.store(false, std::memory_order_relaxed);
  }
}

bool SendSide::encode_cell(Cell& cell) noexcept {
  if (cell.is_message()) {
    return append_part(cell.more ? zmtp::kMore : 0, cell.bytes(),
                       cell.kind == Cell::Kind::large ? cell.body.large.buffer : nullptr);
  }
  const bool subscribe = cell.kind == Cell::Kind::subscribe;
  const Bytes topic = cell.bytes();
  const bool group = share_.traits.groups;
  const bool filter = cell.filter_kind != FilterKind::prefix;
  if (filter && !peer_has_filters_) {  // meant for the connection before: the pattern subscribes anew over this one
    cell.release();
    return true;
  }
  const std::size_t size = group    ? zmtp::join_frame_size(subscribe, topic.size())
                           : filter ? zmtp::filter_frame_size(subscribe, topic.size())
                                    : zmtp::subscribe_frame_size(subscribe, topic.size(), peer_minor_);
  if (!writer_.prepare(size)) {
    return false;
  }
  mem::Buffer* const frame = mem::Buffer::make(size);
  if (frame == nullptr) {
    return false;
  }
  if (group) {
    (void)zmtp::write_join(frame->data(), subscribe, topic);
  } else if (filter) {
    (void)zmtp::write_filter(frame->data(), subscribe, {cell.filter_kind, as_text(topic)});
  } else {
    (void)zmtp::write_subscribe(frame->data(), subscribe, topic, peer_minor_);
  }
  writer_.append_raw(Bytes(frame->data(), size));
  frame->release();
  cell.release();
  return true;
}

// Encodes until the channel is empty, the kernel takes no more, or it took kFlushMax. Flushes whenever the batch is
// full.
void SendSide::encode_channel() noexcept {
  bool credit = false;
  const std::uint64_t most = writer_.written() + kFlushMax;
  while (Cell* cell = channel_.front()) {
    const bool ends_message = !cell->more && cell->is_message();
    const std::size_t bytes = Channel::footprint(*cell);
    const bool encoded = encode_cell(*cell);
    if (!encoded && writer_.empty()) {
      arm(false);  // out of memory: the I/O thread's turn tries again
      break;
    }
    if (encoded) {
      credit |= channel_.pop(ends_message, bytes);
    }
    if (!encoded || writer_.full()) {
      writer_.grow_limit(channel_.bytes_beside());
      flush_batch();
      if (writer_.blocked()) {
        break;
      }
      if (writer_.written() >= most) {
        arm(true);  // the I/O thread's next turns
        break;
      }
    }
  }
  if (credit) {
    share_.output_parker.wake_with_fence();
  }
}

// The peer may read nothing for ever, and a program counts on the room of both marks.
void SendSide::report_room() noexcept {
  if (channel_.report()) {
    share_.output_parker.wake_with_fence();
  }
}

// The batch, then the control frames and the channel, as far as the kernel takes them.
void SendSide::flush_all() noexcept {
  flush_batch();
  if (!writer_.blocked()) {
    encode_control();
    encode_channel();
    if (!writer_.blocked()) {
      flush_batch();
    }
  }
}

void SendSide::flush_and_leave() noexcept {
  expect_connection();
  flush_all();
  leave(false);
}

void SendSide::flush_if_free() noexcept {
  if (baton_.try_take_or_nudge()) {
    flush_and_leave();
    give_baton();
  }
}

void SendSide::flush_for_nudges() noexcept {
  while (baton_.try_take_or_nudge()) {
    flush_and_leave();
    if (!baton_.release()) {
      return;
    }
  }
}

// --- the I/O thread ---

SendSide::FlushTurn SendSide::flush_turn() noexcept {
  WEFT_ASSERT(is_armed(flusher()));
  // A sender in full flow flushes by itself. To take the baton from it would cost it the baton's bias.
  const std::uint64_t appended = writer_.appended();
  if (std::exchange(turns_.appended_seen, appended) != appended && batch_age() < kOverdueUs * sys::ticks_per_us()) {
    return FlushTurn::busy;
  }
  if (!baton_.try_take()) {
    return FlushTurn::busy;  // another thread flushes at this moment
  }
  FlushTurn turn = FlushTurn::keep;
  if (!empty() || writer_.blocked()) {
    flush_and_leave();
    turns_.appended_seen = writer_.appended();  // also those that this thread appended from the channel
    if (writer_.blocked()) {
      change(FlushEvent::kernel_full);
      turn = FlushTurn::await_room;
    } else if (has_rest()) {
      turn = FlushTurn::more;
    }
    turns_.quiet = 0;
  } else if (++turns_.quiet > kQuietTurnsMax) {
    change(FlushEvent::quiet);
    writer_.rest();
    turn = FlushTurn::drop;
  }
  give_baton();
  return turn;
}

bool SendSide::flush_into_room() noexcept {
  if (!baton_.try_take_or_nudge()) {
    return false;  // the holder flushes
  }
  flush_and_leave();
  const bool full = writer_.blocked() && !writer_.failed();
  if (!full && flusher() == Flusher::poller) {
    change(FlushEvent::done);
  }
  give_baton();
  return !full;
}

bool SendSide::try_take_for_link() noexcept {
  if (!held_by_link() && baton_.try_take()) {
    change(FlushEvent::disconnect);
  }
  return held_by_link();
}

bool SendSide::try_take_when_flushed(std::uint64_t& flushed) noexcept {
  if (!held_by_link() && baton_.try_take_or_nudge()) {
    flush_and_leave();
    flushed = writer_.written();
    if (empty()) {
      change(FlushEvent::disconnect);
    } else {
      give_baton();
    }
  }
  return held_by_link();
}

// --- the link ---

void SendSide::connect(zmtp::Mechanism* cipher, zmtp::Framing framing, int peer_minor, bool peer_has_filters) noexcept {
  WEFT_ASSERT(held_by_link());
  peer_minor_ = peer_minor;
  overflow_.store(false, std::memory_order_relaxed);
  peer_has_filters_ = peer_has_filters;
  share_.drops.dropped_no_memory += writer_.open(common_.stream.get(), cipher, framing);
}

void SendSide::give_to_senders() noexcept {
  sync::assume_locked(baton_);  // since try_take_for_link()
  change(FlushEvent::connect);
  flush_and_leave();
  give_baton();
}

void SendSide::disconnect(bool comes_again) noexcept {
  WEFT_ASSERT(held_by_link());
  if (writer_.inside_message()) {
    drop_front_message();  // the lost connection took its first parts; the next one must not get the rest
  }
  share_.drops.dropped_lost += writer_.close(comes_again);
  drop_subscriptions();
  const sync::LockGuard lock(control_.mutex);
  control_.frames.clear();
  control_.waits.store(false, std::memory_order_relaxed);
}

void SendSide::abandon() noexcept {
  WEFT_ASSERT(held_by_link());
  share_.drops.dropped_lost += writer_.close(false) + channel_.queued();
  while (!channel_.empty()) {
    drop_front_message();
  }
}

// The next connection begins with all subscriptions. Those of an XSUB may stand behind messages, which stay for it
// unless all together are too much: a peer that never reads and comes again must not make them grow.
void SendSide::drop_subscriptions() noexcept {
  const bool all = joins(share_.traits) && channel_.unread_bytes() > kSubscriptionBytesMax;
  while (!channel_.empty() && (all || !channel_.front()->is_message())) {
    share_.drops.dropped_lost += channel_.front()->is_message() ? 1 : 0;
    drop_front_message();
  }
}

// Drops the parts of a message that are in front of the channel, or a subscription.
void SendSide::drop_front_message() noexcept {
  bool credit = false;
  for (bool inside = true; inside && !channel_.empty();) {
    Cell& cell = *channel_.front();
    inside = cell.more;
    const bool ends_message = !inside && cell.is_message();
    const std::size_t bytes = Channel::footprint(cell);
    cell.release();
    credit |= channel_.pop(ends_message, bytes);
  }
  if (credit) {
    share_.output_parker.wake_with_fence();
  }
}

}  // namespace weft::msg
