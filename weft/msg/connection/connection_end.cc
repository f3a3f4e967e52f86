// SPDX-License-Identifier: MIT
// Connection, the end of a connection: everything here runs on the I/O thread.
#include <algorithm>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
constexpr Duration kDrainLongest = std::chrono::seconds(1);  // for the peer to see our end and close too
constexpr Duration kLingerLook = std::chrono::milliseconds(1);
constexpr Duration kStalledLongest = std::chrono::seconds(30);  // a peer that takes nothing of what is left for it
}  // namespace

bool Connection::take_both_batons() noexcept {
  holds_read_ = holds_read_ || read_baton_.try_take();
  holds_write_ = holds_write_ || write_baton_.try_take();
  return holds_read_ && holds_write_;
}

void Connection::take_down() {
  if (phase_ != Phase::traffic) {
    return;
  }
  if (!take_both_batons()) {
    schedule<&Connection::take_down>(take_down_timer_, sys::now() + kBatonRetry);
  } else if (input_ended_) {
    finish_take_down();
  } else {
    // The request was about a connection that is already gone.
    holds_read_ = holds_write_ = false;
    give_write_baton();
    return_read_baton();
  }
}

// For a while the application's threads were turned away: what they left in the reader must not wait for more to come.
void Connection::return_read_baton() noexcept {
  (void)read_baton_.release();
  run_reader();
}

void Connection::finish_take_down() {
  const auto keep = shared_from_this();
  const Error reason = end_reason_;
  input_ended_ = true;
  // All that arrived is delivered, whatever the mark; before finish(), after which the socket may be gone.
  bool queued = run_reader_once();
  if (raw_ && !closing_) {
    owner_.connection_lost(*this);  // whoever reads the notice can count on it that the id is unknown afterwards
    queued |= push_notice();
  }
  queued |= queue_farewell();
  if (queued) {
    share_.signal_input(*pipe_);
  }
  const int fd = stream_->fd();
  drop_stream();
  // Whoever sees the event can count on it that nothing more is sent to this connection.
  const auto owner = keep_owner_;
  MonitorEvent event = describe(EventKind::disconnected, reason, fd);
  event.detail = static_cast<std::uint32_t>(std::exchange(end_breach_, zmtp::Breach::none));
  if (ends_for_good(reason) || (closing_ && outgoing_.empty() && writer_.empty())) {
    finish();
    owner->monitor().emit(event);
    return;
  }
  if (!closing_) {
    owner_.connection_lost(*this);
  }
  owner->monitor().emit(event);
  retry_later(Cause::lost);
}

bool Connection::queue_farewell() {
  const std::string text = closing_ ? std::string() : owner_.farewell(connecting());
  Outbound part{as_bytes(text), nullptr, false};
  return !text.empty() && incoming_.push(part);
}

void Connection::drop_stream() noexcept {
  zap_.reset();
  authenticated_.clear();
  peer_gone(std::exchange(peer_id_, 0));
  owner_.forget_descriptor(*this);
  io_.loop().unwatch(std::exchange(watch_, 0));
  schedule<&Connection::handle_peer_time>(peer_timer_, kNever);
  drop_begun_message();
  writer_.close(connecting());
  skipping_ = false;
  time_to_live_ = 0;
  reader_.reset();
  drop_assembly();
  {
    const std::lock_guard lock(control_mutex_);
    control_.clear();
    has_control_.store(false, std::memory_order_relaxed);
  }
  app_reads_ = false;
  stream_.reset();
}

// Parts of a message that the lost connection got, or would have got, the beginning of mean nothing to the next one.
void Connection::drop_begun_message() noexcept {
  bool credit = false;
  bool inside = writer_.inside_message();
  while (inside && !outgoing_.empty()) {
    Cell& cell = *outgoing_.front();
    inside = cell.more;
    const std::size_t bytes = Channel::footprint(cell);
    cell.release();
    credit |= outgoing_.pop(!inside, bytes);
  }
  if (credit) {
    share_.output_parker.wake_with_fence();
  }
}

void Connection::close(Instant deadline) {
  patient_ = false;
  begin_close(deadline);
}

void Connection::close_when_sent() {
  io_.loop().post([self = shared_from_this()] {
    self->patient_ = !self->closing_;  // the socket's own closing has a deadline
    if (self->patient_) {
      self->begin_close(sys::now() + kStalledLongest);
    }
  });
}

void Connection::begin_close(Instant deadline) {
  const auto keep = shared_from_this();
  if (phase_ == Phase::finished) {
    return;
  }
  closing_ = true;
  close_deadline_ = deadline;
  if (deadline <= sys::now()) {
    handle_close_time();
    return;
  }
  schedule<&Connection::handle_close_time>(close_timer_, deadline);
  const bool nothing_queued = holds_write_ && outgoing_.empty() && writer_.empty();
  switch (phase_) {
    case Phase::traffic: linger(); return;
    case Phase::finished:
    case Phase::draining: return;
    case Phase::idle:
    case Phase::dialling:
    case Phase::handshake:
      if (nothing_queued || !connecting() || gave_up_ || (owner_.options_copy().reconnect_stop & Cause::closing) != 0) {
        finish();
      }
      return;
  }
}

// Waits until everything is written, then ends our direction and waits for the peer to end its own.
void Connection::linger() {
  if (phase_ != Phase::traffic) {
    return;
  }
  if (!holds_write_ && write_baton_.try_take_or_nudge()) {
    run_writer();
    if (patient_ && writer_.written() != std::exchange(written_at_look_, writer_.written())) {
      close_deadline_ = sys::now() + kStalledLongest;
      schedule<&Connection::handle_close_time>(close_timer_, close_deadline_);
    }
    if (outgoing_.empty() && writer_.empty()) {
      holds_write_ = true;
    } else {
      give_write_baton();
    }
  }
  holds_read_ = holds_read_ || (holds_write_ && read_baton_.try_take());
  if (!holds_write_ || !holds_read_) {
    schedule<&Connection::linger>(take_down_timer_, sys::now() + kLingerLook);
    return;
  }
  phase_ = Phase::draining;
  owner_.forget_descriptor(*this);
  app_reads_ = false;
  stream_->shutdown_write();
  schedule<&Connection::handle_close_time>(close_timer_, std::min(close_deadline_, sys::now() + kDrainLongest));
  set_interest(sys::Interest::readable | sys::Interest::peer_closed);
  drain();
}

// Reads and forgets: closing with unread bytes would reset the connection under what we just sent.
void Connection::drain() {
  const auto keep = shared_from_this();
  for (;;) {
    reader_.reset();
    bool drained = false;
    const sys::IoResult result = input_ended_ ? sys::IoResult{sys::IoResult::Status::end_of_stream, 0, 0}
                                              : reader_.fill(*stream_, nullptr, drained);
    if (result.status == sys::IoResult::Status::would_block) {
      reader_.reset();
      return;
    }
    if (result.status != sys::IoResult::Status::done) {
      finish();
      return;
    }
  }
}

void Connection::handle_close_time() {
  const auto keep = shared_from_this();
  if (phase_ == Phase::finished) {
    return;
  }
  // The batons may be an application's for a moment more; without them the stream must not go.
  if (phase_ == Phase::traffic && !take_both_batons()) {
    schedule<&Connection::handle_close_time>(close_timer_, sys::now() + kBatonRetry);
    return;
  }
  finish();
}

void Connection::finish() {
  const auto keep = shared_from_this();
  if (phase_ == Phase::finished) {
    return;
  }
  if (stream_ != nullptr) {
    drop_stream();
  }
  io_.loop().unwatch(std::exchange(watch_, 0));
  if (connector_ != nullptr) {
    connector_->dialer.cancel();
  }
  phase_ = Phase::finished;
  schedule<&Connection::handle_close_time>(close_timer_, kNever);
  schedule<&Connection::dial>(retry_timer_, kNever);
  schedule<&Connection::handle_connect_time>(connect_timer_, kNever);
  schedule<&Connection::take_down>(take_down_timer_, kNever);
  schedule<&Connection::handle_peer_time>(peer_timer_, kNever);
  io_.forget(*this);
  owner_.connection_finished(*this);
  keep_owner_.reset();
}

}  // namespace weft::msg
