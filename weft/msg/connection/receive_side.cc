// SPDX-License-Identifier: MIT
// ReceiveSide: reading from the kernel into the reader, in place to the consumer or into the channel.
#include "weft/msg/connection/receive_side.h"

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/call.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
constexpr std::uint32_t kGatherUs = 4;  // between two reads for more of a big frame
constexpr int kConflatedFills = 16;     // reads in one turn, of a connection that conflates
}  // namespace

ReceiveSide::ReceiveSide(ConnectionCommon& common) noexcept : common_(common), share_(common.share) {
  if (common.owner.conflates()) {
    channel_.conflate();
  }
  (void)baton_.try_take();  // the link's
}

ReceiveSide::Peek ReceiveSide::peek(FrameView& view, FrameRun& run) noexcept {
  if (!baton_.try_take()) {
    return Peek::nothing;  // the I/O thread reads, queues and signals
  }
  for (std::uint64_t end = 0;;) {
    // The I/O thread may have queued a part after the caller found the channel empty and before we took the baton.
    if (!channel_.empty()) {
      give_baton();
      return Peek::channel;
    }
    const std::size_t taken = plain_ && assembly_.parts.empty() ? reader_.take_run(run) : 0;
    if (taken != 0) [[likely]] {
      count_past_channel(taken);
      if (reader_.empty()) {
        reader_.settle();
      }
      give_baton();
      return Peek::run;
    }
    const Decoded decoded = end_.reached && reader_.empty() ? Decoded::stopped : decode(&view);
    if (decoded == Decoded::view) {
      return Peek::stream;  // with the baton, until pop() or unpeek()
    }
    if (decoded == Decoded::need_more && maybe_readable_.load(std::memory_order_relaxed) && !end_.reached) {
      share_.note_app_read();
      if (fill()) {
        continue;
      }
    }
    if (decoded == Decoded::need_more && reader_.inside_big() && share_.app_waits() && !end_.reached) [[unlikely]] {
      end = end == 0 ? ConnectionCommon::await_end() : end;
      if (sys::ticks() < end && await_rest()) {
        continue;
      }
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

// More of a big frame is on its way. Spinning for it takes less time than sleeping, and saves the sender the wake-up.
// Two reads are 4 us apart, so that each brings much.
bool ReceiveSide::await_rest() noexcept {
  const std::size_t before = reader_.big_filled();
  const bool found = sync::spin_until(common_.learnt_budget(rest_spin_), [&] {
    sync::spin_for(kGatherUs);
    return fill() || end_.reached;
  });
  rest_spin_.record(found && reader_.big_filled() - before >= ConnectionCommon::kAwaitedMin);
  return found;
}

void ReceiveSide::collect() noexcept {
  if (!maybe_readable_.load(std::memory_order_relaxed) || !baton_.try_take()) {
    return;
  }
  share_.note_app_read();
  (void)read_once();
  give_baton();
}

void ReceiveSide::pop() noexcept {
  count_past_channel(1);
  reader_.consume();
  if (reader_.empty()) {
    reader_.settle();
  }
  give_baton();
}

// Called by a thread of the application. After a nudge the I/O thread reads.
void ReceiveSide::give_baton() noexcept {
  if (baton_.release()) {
    set_readable();
    resume_later();
  }
}

void ReceiveSide::handle_credit() noexcept {
  // Relaxed: a stall that is missed here is found by the consumer when the channel runs empty.
  if (stalled_.load(std::memory_order_relaxed) && !resume_posted_.exchange(true, std::memory_order_relaxed)) {
    resume_later();
  }
}

void ReceiveSide::resume_later() noexcept { common_.io.resume_reading(common_.connection.shared_from_this()); }

bool ReceiveSide::fill() noexcept {
  bool drained = false;
  const sys::IoResult result = reader_.fill(*common_.stream, has_partial_ ? &partial_ : nullptr, drained);
  maybe_readable_.store(!drained, std::memory_order_relaxed);
  switch (result.status) {
    case sys::IoResult::Status::done:
      last_input_.store(sys::now().time_since_epoch().count(), std::memory_order_relaxed);
      return true;
    case sys::IoResult::Status::would_block: return false;
    case sys::IoResult::Status::end_of_stream: end_input(Errc::connection_closed); return false;
    case sys::IoResult::Status::failed: end_input(sys::make_error(result.os_errno, "read")); return false;
  }
  return false;
}

void ReceiveSide::end_with_fault() noexcept {
  end_input(Error(common_.local_end.fault()->code, common_.local_end.fault()->text));
}

void ReceiveSide::end_input(Error reason, zmtp::Breach breach) noexcept {
  end_.reached = true;
  end_.reason = reason;
  end_.breach = breach;
  if (reason.code() != Errc::connection_closed && reason.code() != Errc::connection_failed) {
    reader_.reset();  // bytes behind a fault mean nothing
  }
  maybe_readable_.store(false, std::memory_order_relaxed);
  common_.io.request_take_down(common_.connection.shared_from_this());
}

// Queued whatever the mark. A connection with a full channel is not read, so its end, and with that the next notice,
// waits for the application.
bool ReceiveSide::queue_notice() noexcept {
  Outbound empty;
  return common_.owner.options_copy().stream_notify && channel_.push(empty);
}

// The I/O thread reads: into the channel, up to its mark.
void ReceiveSide::read() noexcept {
  if (!baton_.try_take_or_nudge()) {
    return;
  }
  bool queued = false;
  do {
    queued |= read_once();
  } while (baton_.release() && baton_.try_take_or_nudge());
  if (queued) {
    share_.signal_input(*common_.pipe);
  }
}

bool ReceiveSide::read_once() noexcept {
  bool queued = false;
  int fills = 0;
  stalled_.store(false, std::memory_order_relaxed);
  resume_posted_.store(false, std::memory_order_relaxed);
  while (!end_.reached || !reader_.empty()) {
    if (!end_.reached && !channel_.has_credit()) {
      stalled_.store(true, std::memory_order_relaxed);
      return queued;
    }
    const Decoded decoded = decode(nullptr);
    if (decoded == Decoded::queued) {
      queued = true;
    } else if (channel_.conflates() && ++fills > kConflatedFills) {
      resume_later();  // no mark ends the loop
      break;
    } else if (decoded != Decoded::need_more || end_.reached || !fill()) {
      break;
    }
  }
  reader_.settle();
  return queued;
}

// --- the link ---

// For a moment no thread of the application got the baton. Reads now, so that their input does not wait for more input.
void ReceiveSide::give_back() noexcept {
  held_by_link_ = false;
  (void)baton_.release();
  read();
}

void ReceiveSide::begin_handshake() noexcept {
  WEFT_ASSERT(held_by_link_);
  reader_.reset();
  end_.reached = false;
  has_partial_ = false;
}

void ReceiveSide::connect(zmtp::Mechanism* cipher, zmtp::Framing framing) noexcept {
  WEFT_ASSERT(held_by_link_);
  last_input_.store(sys::now().time_since_epoch().count(), std::memory_order_relaxed);
  reader_.set_cipher(cipher, framing);
  plain_ = share_.traits.receives && !share_.traits.takes_subscriptions && !share_.traits.groups &&
           common_.local_end.admits(zmtp::kShortBodyMax);
}

void ReceiveSide::begin_traffic(bool notice) noexcept {
  WEFT_ASSERT(held_by_link_);
  const bool noticed = notice && queue_notice();
  // Bytes may have come behind the peer's READY, and the kernel may hold more.
  const bool queued = read_once() || noticed;
  held_by_link_ = false;
  if (baton_.release()) {
    read();
  }
  if (queued) {
    share_.signal_input(*common_.pipe);
  }
}

bool ReceiveSide::read_rest() noexcept {
  WEFT_ASSERT(held_by_link_);
  end_.reached = true;
  return read_once();
}

bool ReceiveSide::queue_farewell(const std::string& text) noexcept {
  WEFT_ASSERT(held_by_link_);
  Outbound part{as_bytes(text), nullptr, false};
  return !text.empty() && channel_.push(part);
}

void ReceiveSide::disconnect() noexcept {
  WEFT_ASSERT(held_by_link_);
  time_to_live_ = 0;
  reader_.reset();
  drop_assembly();
  assembly_.skipping = false;
}

}  // namespace weft::msg
