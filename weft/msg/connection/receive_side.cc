// SPDX-License-Identifier: MIT
// ReceiveSide: reading from the kernel into the reader, in place to the consumer or into the channel.
#include "weft/msg/connection/receive_side.h"

#include <algorithm>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sync/lock.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
constexpr std::uint32_t kGatherUs = 4;  // between two reads for more of a big frame
}  // namespace

ReceiveSide::ReceiveSide(ConnectionCommon& common) : common_(common), share_(common.share) {
  if (common.owner.conflates(*common.options)) {
    channel_.conflate();
  }
  (void)baton_.try_take();  // the link's
}

ReceiveSide::Peek ReceiveSide::peek(FrameView& view, FrameRun& run) noexcept {
  if (!baton_.try_take()) {
    return Peek::nothing;  // the I/O thread reads, queues and signals
  }
  Turn& turn = share_.turn;
  for (std::uint64_t end = 0;;) {
    // The I/O thread may have queued a part after the caller found the channel empty and before we took the baton.
    if (!channel_.empty()) {
      give_baton();
      return Peek::channel;
    }
    const std::size_t taken = plain_ && assembly_.parts.empty() ? reader_.take_run(run, !share_.traits.single_part) : 0;
    if (taken != 0) [[likely]] {
      count_past_channel(taken);
      leave_rest();
      return Peek::run;
    }
    if (!turn.may_decode() && !may_stay(end)) [[unlikely]] {
      return stop_spent();
    }
    const Decoded decoded = end_.reached && reader_.empty() ? Decoded::stopped : decode(&view, turn);
    if (decoded == Decoded::view) {
      return Peek::stream;  // with the baton, until pop() or unpeek()
    }
    if (decoded == Decoded::queued) {  // the last part of a message: it is whole now
      leave_rest();
      return Peek::channel;
    }
    if (decoded == Decoded::need_more && next_.kernel() == NextReader::Kernel::readable && !end_.reached) {
      if (!turn.may_read() && !may_stay(end)) [[unlikely]] {
        return stop_spent();
      }
      share_.note_app_read();
      if (fill(turn)) {
        continue;
      }
    }
    if (decoded == Decoded::need_more && !end_.reached && may_stay(end) && await_rest()) [[unlikely]] {
      continue;
    }
    if (decoded == Decoded::need_more || decoded == Decoded::stopped) {
      reader_.settle();
      if (!baton_.release()) {
        return Peek::nothing;
      }
      // A nudge: the poller reported input while we held the baton.
      set_readable();
      if (!baton_.try_take_or_nudge()) {
        return Peek::nothing;
      }
    }
  }
}

// A thread that waits stays with a big frame beyond its turn: not beyond its deadline, and not while another thread
// needs the socket's lock. `end`: 0 before the first call.
bool ReceiveSide::may_stay(std::uint64_t& end) const noexcept {
  if (!reader_.inside_big() || !share_.turn.waits() || share_.receive_mutex->wanted()) [[likely]] {
    return false;
  }
  end = end == 0 ? share_.turn.stay_end() : end;
  return sys::ticks() < end;
}

// The pipe stays in the socket's rotation, so the next turn goes on. If there is none, the I/O thread reads.
ReceiveSide::Peek ReceiveSide::stop_spent() noexcept {
  give_baton();
  ask_for_rest();
  return Peek::spent;
}

// The socket may receive no more, and no event of the poller reports bytes that are in the reader. The I/O thread reads
// a link that it left to the application when it takes the link back: Link::await_input() takes the baton or nudges its
// holder, whatever is loaded here. For another link the application asks it, once: then it leaves the link to us.
void ReceiveSide::ask_for_rest() noexcept {
  if (next_.leave_rest()) [[unlikely]] {
    common_.io.request(common_.connection.shared_from_this(), IoService::read_left_over);
  }
}

void ReceiveSide::unpeek() noexcept {
  sync::assume_locked(baton_);  // since peek()
  give_baton();
  ask_for_rest();
}

void ReceiveSide::leave_rest() noexcept {
  if (reader_.empty()) [[likely]] {
    reader_.settle();
    give_baton();
  } else {
    give_baton();
    ask_for_rest();
  }
}

// More of a big frame is on its way. Spinning for it takes less time than sleeping, and saves the sender the wake-up.
// Two reads are 4 us apart, so that each brings much.
bool ReceiveSide::await_rest() noexcept {
  const std::size_t before = reader_.big_filled();
  const sync::Spun spun = sync::spin_until(common_.learnt_budget(rest_spin_), [&] {
    sync::spin_for(kGatherUs);
    return fill(share_.turn) || end_.reached;
  });
  rest_spin_.record(spun, reader_.big_filled() - before >= ConnectionCommon::kAwaitedMin);
  return came(spun);
}

void ReceiveSide::collect() noexcept {
  if (next_.kernel() == NextReader::Kernel::drained || !baton_.try_take()) {
    return;
  }
  share_.note_app_read();
  Turn turn;  // of its own: a spent one of the socket would give the application an old message for the newest
  (void)read_once(turn);
  give_baton();
}

void ReceiveSide::pop() noexcept {
  sync::assume_locked(baton_);  // since peek()
  count_past_channel(1);
  reader_.consume();
  leave_rest();
}

// Called by a thread of the application. After a nudge the I/O thread reads.
void ReceiveSide::give_baton() noexcept {
  if (baton_.release()) {
    set_readable();
    resume_later();
  }
}

void ReceiveSide::handle_credit() noexcept {
  if (next_.report_credit()) {
    resume_later();
  }
}

void ReceiveSide::resume_later() noexcept {
  common_.io.request(common_.connection.shared_from_this(), IoService::read);
}

bool ReceiveSide::fill(Turn& turn) noexcept {
  bool drained = false;
  const sys::IoResult result = reader_.fill(*common_.stream, has_partial_ ? &partial_ : nullptr, drained,
                                            std::min(channel_.bytes_beside(), turn.read_max()));
  if (common_.layered()) [[unlikely]] {
    const net::StreamState now = common_.stream->state();
    drained = drained && !now.ended;
    if (now.ended && result.status == sys::IoResult::Status::done) {
      resume_later();  // the end: no event announces it, and the application may not receive again
    }
    if (now.unsent) {
      common_.io.request(common_.connection.shared_from_this(), IoService::write_layer);
    }
  }
  drained ? next_.read_all() : next_.read_some();
  switch (result.status) {
    case sys::IoResult::Status::done:
      turn.count_read(result);
      last_input_.store(sys::now().time_since_epoch().count(), std::memory_order_relaxed);
      return true;
    case sys::IoResult::Status::would_block: return false;
    case sys::IoResult::Status::end_of_stream: end_input(Errc::connection_closed); return false;
    case sys::IoResult::Status::failed:
      end_input(common_.failure_or(sys::make_error(result.os_errno, "read")));
      return false;
  }
  return false;
}

void ReceiveSide::end_with_fault() noexcept {
  end_input(Error(common_.local_end.fault()->code, common_.local_end.fault()->text));
}

// An end that came before keeps its reason.
void ReceiveSide::end_with(Error reason) noexcept {
  if (end_.reached) {
    reason = end_.reason;
  }
  end_input(reason, end_.breach);
}

void ReceiveSide::end_input(Error reason, zmtp::Breach breach) noexcept {
  end_.reached = true;
  end_.reason = reason;
  end_.breach = breach;
  if (reason.code() != Errc::connection_closed && reason.code() != Errc::connection_failed) {
    reader_.reset();  // bytes after a fault mean nothing
  }
  next_.end();
  common_.io.request(common_.connection.shared_from_this(), IoService::take_down);
}

// An empty message, whatever the mark. A connection with a full channel is not read, so its end, and with that the next
// notice, waits for the application.
bool ReceiveSide::queue_notice() noexcept {
  Outbound empty;
  return channel_.push(empty);
}

// The I/O thread reads: into the channel, up to its mark or to the end of the turn.
void ReceiveSide::read(Turn turn) noexcept {
  if (!baton_.try_take_or_nudge()) {
    return;
  }
  bool queued = false;
  for (;;) {
    queued |= read_once(turn);
    if (!baton_.release()) {
      break;
    }
    if (turn.spent()) {
      resume_later();  // for the nudge
      break;
    }
    if (!baton_.try_take_or_nudge()) {
      break;
    }
  }
  if (queued) {
    share_.signal_input(*common_.pipe);
  }
}

bool ReceiveSide::read_once(Turn& turn) noexcept {
  bool queued = false;
  next_.begin_read();
  while (!end_.reached || !reader_.empty()) {
    if (!end_.reached && !channel_.has_credit()) {
      next_.stop();
      return queued;
    }
    const Decoded decoded = turn.may_decode() ? decode(nullptr, turn) : Decoded::spent;
    if (decoded == Decoded::queued) {
      queued = true;
      turn.count_frame();
    } else if (decoded == Decoded::spent || (decoded == Decoded::need_more && !end_.reached && !turn.may_read())) {
      next_.stop();
      resume_later();
      return queued;
    } else if (decoded != Decoded::need_more || end_.reached || !fill(turn)) {
      break;
    }
  }
  reader_.settle();
  return queued;
}

// --- the link ---

// For a moment no thread of the application got the baton. Reads now, so that their input does not wait for more input.
void ReceiveSide::give_back() noexcept {
  sync::assume_locked(baton_);
  next_.link_gives();
  (void)baton_.release();
  read(common_.io.turn());
}

void ReceiveSide::begin_handshake() noexcept {
  WEFT_ASSERT(held_by_link());
  reader_.reset();
  end_.reached = false;
  has_partial_ = false;
}

void ReceiveSide::connect(zmtp::Mechanism* cipher, zmtp::Framing framing) noexcept {
  WEFT_ASSERT(held_by_link());
  last_input_.store(sys::now().time_since_epoch().count(), std::memory_order_relaxed);
  reader_.set_cipher(cipher, framing);
  plain_ = share_.traits.receives && !share_.traits.takes_subscriptions && !share_.traits.groups &&
           common_.local_end.admits(zmtp::kShortBodyMax);
  two_parts_ = share_.traits.groups || share_.traits.wire == zmtp::WireType::dgram;
  asks_group_ = share_.traits.groups && common_.stream->state().datagrams;
}

void ReceiveSide::begin_traffic(bool notice) noexcept {
  WEFT_ASSERT(held_by_link());
  const bool noticed = notice && queue_notice();
  // Bytes may have come after the peer's READY, and the kernel may hold more.
  Turn turn = common_.io.turn();
  const bool queued = read_once(turn) || noticed;
  sync::assume_locked(baton_);
  next_.link_gives();
  if (baton_.release()) {
    read(common_.io.turn());
  }
  if (queued) {
    share_.signal_input(*common_.pipe);
  }
}

bool ReceiveSide::read_rest(bool& queued) noexcept {
  WEFT_ASSERT(held_by_link());
  end_.reached = true;
  Turn turn = common_.io.turn();
  queued = read_once(turn);
  return !stalled();
}

bool ReceiveSide::queue_last_message(const std::string& text) noexcept {
  WEFT_ASSERT(held_by_link());
  Outbound part{as_bytes(text), nullptr, false};
  return !text.empty() && channel_.push(part);
}

void ReceiveSide::disconnect() noexcept {
  WEFT_ASSERT(held_by_link());
  time_to_live_ = 0;
  reader_.reset();
  drop_assembly();
  assembly_.skipping = assembly_.excess_told = false;
}

}  // namespace weft::msg
