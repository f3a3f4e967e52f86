// SPDX-License-Identifier: MIT
// Link: the end of a connection.
#include <algorithm>
#include <utility>

#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/link.h"
#include "weft/sys/clock.h"
#include "weft/sys/socket.h"

namespace weft::msg {

namespace {
constexpr Duration kDrainLongest = std::chrono::seconds(1);  // for a peer that has all to see our end and close too
constexpr Duration kDeliveryRetry = std::chrono::milliseconds(100);
constexpr Duration kMemoryRetry = std::chrono::milliseconds(10);
constexpr Duration kLingerRetry = std::chrono::milliseconds(1);
constexpr Duration kLingerNotice = std::chrono::seconds(1);
constexpr Duration kStalledLongest = std::chrono::seconds(30);  // for a peer that takes none of the bytes left
}  // namespace

bool Link::take_both_batons() noexcept {
  const bool reads = receive_.try_take_for_link();
  const bool writes = send_.try_take_for_link();
  return reads && writes;
}

void Link::take_down() {
  line_.end_due = false;
  if (phase_ != Phase::traffic) {
    return;
  }
  if (!take_both_batons()) {
    schedule<&Link::take_down>(timers_.take_down, sys::now() + kBatonRetry);
  } else if (receive_.ended()) {
    finish_take_down();
  } else {
    // The request was made for an earlier connection.
    send_.give_to_senders();
    receive_.give_back();
  }
}

void Link::drop_unread() {
  if (phase_ != Phase::traffic || !send_.subscriptions_overflow() || receive_.held_by_link()) {
    return;  // the request was made for an earlier connection, or this one ends already
  }
  if (!receive_.try_take_for_link()) {
    schedule<&Link::drop_unread>(timers_.take_down, sys::now() + kBatonRetry);
    return;
  }
  receive_.end_with(Error(Errc::connection_failed, "the peer does not read our subscriptions"));
  receive_.give_back();
}

void Link::finish_take_down() {
  const auto keep = keep_alive();
  const Error reason = receive_.end_reason();
  // All that arrived is queued, whatever the mark: before finish(), after which the socket may be gone.
  bool queued = false;
  if (!receive_.read_rest(queued)) {
    if (queued) {
      common_.share.signal_input(*common_.pipe);
    }
    return;  // resume_reading() comes here again
  }
  if (raw_ && !closing_.begun) {
    common_.owner.connection_lost(common_.connection);  // before the notice: its reader finds that the id is unknown
  }
  if (!closing_.begun && tells(kEnd)) {
    queued |= receive_.queue_notice();
  }
  queued |= !closing_.begun && queue_last_message();
  if (queued) {
    common_.share.signal_input(*common_.pipe);
  }
  const int fd = common_.stream->fd();
  const PeerId peer = peer_ == nullptr ? 0 : peer_->id();
  const bool again = keeps_stream(reason);
  const bool in_tls = reason == Errc::protocol_error && common_.failed_in_tls();
  drop_stream(again);
  // Before the event: its reader finds that nothing more is sent to this connection.
  const auto owner = keep_owner_;
  const auto detail = static_cast<std::uint32_t>(receive_.take_breach());
  if (!again && (ends_for_good(reason, in_tls) || (closing_.begun && send_.empty()))) {
    finish();
    emit(EventKind::disconnected, reason, fd, detail, peer);  // `keep` and `owner` still are
    return;
  }
  if (!closing_.begun) {
    common_.owner.connection_lost(common_.connection);
  }
  emit(EventKind::disconnected, reason, fd, detail, peer);
  if (again) {
    begin_later();
    return;
  }
  const bool settled = connector_ != nullptr && sys::now() - traffic_since_ >= kSettled;
  if (settled) {
    connector_->backoff.settle();
  }
  retry_later(Cause::lost, in_tls ? Pace::costly : settled ? Pace::usual : Pace::cut);
}

// Datagrams end when memory runs out, and for no other reason. No peer would come again, so the socket stays.
bool Link::keeps_stream(const Error& reason) const {
  return common_.stream != nullptr && common_.stream->state().datagrams && reason == Errc::resource_exhausted &&
         !closing_.begun;
}

void Link::begin_later() noexcept {
  phase_ = Phase::idle;
  schedule<&Link::begin>(timers_.retry, sys::now() + kMemoryRetry);
}

// Without memory the last message is left out.
bool Link::queue_last_message() noexcept {
  try {
    return receive_.queue_last_message(common_.owner.last_message(*common_.options, connecting()));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Link::drop_stream(bool keep) noexcept {
  WEFT_ASSERT(send_.held_by_link() && receive_.held_by_link());
  zap_.reset();
  authenticated_.clear();
  peer_.reset();
  line_.end_due = false;
  common_.io.reads().leave(line_.place);
  common_.owner.forget_descriptor(common_.connection);
  common_.io.loop().unwatch(std::exchange(watch_, 0));
  schedule<&Link::handle_peer_time>(timers_.peer, kNever);
  send_.disconnect(connecting() || keep);
  receive_.disconnect();
  IoService::take_back(*this, common_.share);
  if (!keep) {
    common_.stream.reset();
  }
}

void Link::close(Instant deadline) {
  closing_.patient = false;
  begin_close(deadline);
}

void Link::request_close(Instant deadline) noexcept {
  close_deadline_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  common_.io.request(common_.connection.shared_from_this(), IoService::close);
}

void Link::request_marks() noexcept { common_.io.request(common_.connection.shared_from_this(), IoService::marks); }

void Link::request_close_when_sent() noexcept {
  common_.io.request(common_.connection.shared_from_this(), IoService::close_when_sent);
}

void Link::close_when_sent() {
  closing_.patient = !closing_.begun;  // the socket's own closing has a deadline
  if (closing_.patient) {
    begin_close(sys::now() + kStalledLongest);
  }
}

void Link::begin_close(Instant deadline) {
  const auto keep = keep_alive();
  if (phase_ == Phase::finished) {
    return;
  }
  closing_.begun = true;
  closing_.deadline = deadline;
  if (deadline <= sys::now()) {
    if (phase_ == Phase::traffic && deadline != kNoLinger) {
      linger();  // this thread is late: the sent messages get the write that they would have had
    }
    handle_close_time();
    return;
  }
  schedule<&Link::handle_close_time>(timers_.close, std::min(deadline, sys::now() + kLingerNotice));
  const bool nothing_queued = send_.held_by_link() && send_.empty();
  switch (phase_) {
    case Phase::traffic: linger(); return;
    case Phase::draining: await_delivery(); return;
    case Phase::finished: return;
    case Phase::idle:
    case Phase::dialling:
    case Phase::handshake:
      if (nothing_queued || !connecting() || (common_.options->reconnect_stop & Cause::closing) != 0) {
        finish();
      }
      return;
  }
}

// Waits until everything is flushed, then ends our direction and waits for the peer to end its own.
void Link::linger() {
  if (phase_ != Phase::traffic) {
    return;
  }
  std::uint64_t flushed = closing_.flushed_seen;
  const bool all_flushed = send_.try_take_when_flushed(flushed);
  if (closing_.patient && flushed != std::exchange(closing_.flushed_seen, flushed)) {
    closing_.deadline = sys::now() + kStalledLongest;
    schedule<&Link::handle_close_time>(timers_.close, closing_.deadline);
  }
  if (!all_flushed || !receive_.try_take_for_link()) {
    schedule<&Link::linger>(timers_.linger, sys::now() + kLingerRetry);
    return;
  }
  phase_ = Phase::draining;
  common_.owner.forget_descriptor(common_.connection);
  IoService::take_back(*this, common_.share);
  common_.stream->shutdown_write();
  set_interest(traffic_interest());
  closing_.peer_ends_by = sys::now() + kDrainLongest;
  await_delivery();
  if (phase_ == Phase::draining) {
    drain();
  }
}

// The time for the peer's own end begins once its system has all bytes. If the descriptor were closed before, the next
// byte of the peer would reset the connection, and the kernel would drop the bytes that it still holds.
void Link::await_delivery() {
  const Instant now = sys::now();
  const std::uint64_t held =
      sys::unacknowledged_bytes(common_.stream->fd()) + (common_.layer_has_unsent() ? std::uint64_t{1} : 0);
  if (closing_.patient && held < std::exchange(closing_.held_seen, held)) {
    closing_.deadline = now + kStalledLongest;
  }
  if (held != 0) {
    closing_.peer_ends_by = now + kDrainLongest;
    common_.owner.connection_lingers(common_.endpoint, true, closing_.deadline);
  }
  const Instant end = std::min(closing_.deadline, closing_.peer_ends_by);
  if (now >= end) {
    finish();
    return;
  }
  schedule<&Link::handle_close_time>(timers_.close, held != 0 ? std::min(end, now + kDeliveryRetry) : end);
}

// Reads and drops. A close with unread bytes would reset the connection, and the peer would lose the last bytes sent.
void Link::drain() {
  const auto keep = keep_alive();
  push_layer();
  for (Turn turn = common_.io.turn(); turn.may_read();) {
    receive_.reader().reset();
    bool drained = false;
    const sys::IoResult result = receive_.ended()
                                     ? sys::IoResult{sys::IoResult::Status::end_of_stream, 0, 0}
                                     : receive_.reader().fill(*common_.stream, nullptr, drained, turn.read_max());
    if (result.status == sys::IoResult::Status::would_block) {
      receive_.reader().reset();
      return;
    }
    if (result.status != sys::IoResult::Status::done) {
      finish();
      return;
    }
    turn.count_read(result);
  }
  common_.io.request(common_.connection.shared_from_this(), IoService::read);
}

void Link::handle_close_time() {
  const auto keep = keep_alive();
  if (phase_ == Phase::finished) {
    return;
  }
  if (phase_ == Phase::draining) {
    await_delivery();
    return;
  }
  if (const Instant now = sys::now(); now < closing_.deadline) {
    common_.owner.connection_lingers(common_.endpoint, phase_ == Phase::traffic, closing_.deadline);
    schedule<&Link::handle_close_time>(timers_.close, std::min(closing_.deadline, now + kLingerNotice));
    return;
  }
  // An application's thread may hold a baton for a moment more. Without both the stream must not go.
  if (phase_ == Phase::traffic && !take_both_batons()) {
    schedule<&Link::handle_close_time>(timers_.close, sys::now() + kBatonRetry);
    return;
  }
  finish();
}

void Link::finish() noexcept {
  const auto keep = keep_alive();
  if (phase_ == Phase::finished) {
    return;
  }
  if (common_.stream != nullptr) {
    const bool announces = closing_.announced.load(std::memory_order_relaxed) && phase_ >= Phase::traffic;
    const int fd = common_.stream->fd();
    const PeerId peer = peer_ == nullptr ? 0 : peer_->id();
    drop_stream();
    if (announces) {
      emit(EventKind::disconnected, Error(Errc::closed, "this socket ended the connection"), fd, 0, peer);
    }
  }
  common_.io.loop().unwatch(std::exchange(watch_, 0));
  if (connector_ != nullptr) {
    connector_->dialer.cancel();
  }
  phase_ = Phase::finished;
  common_.io.reads().leave(line_.place);
  schedule<&Link::handle_close_time>(timers_.close, kNever);
  schedule<&Link::dial>(timers_.retry, kNever);
  schedule<&Link::handle_connect_time>(timers_.connect, kNever);
  schedule<&Link::take_down>(timers_.take_down, kNever);
  schedule<&Link::linger>(timers_.linger, kNever);
  schedule<&Link::handle_peer_time>(timers_.peer, kNever);
  timer_retry_.unhook();
  common_.io.disarm(common_.connection);
  if (std::exchange(listed_, false)) {
    common_.io.remove_link();
  }
  common_.owner.connection_finished(common_.connection);
  keep_owner_.reset();
}

}  // namespace weft::msg
