// SPDX-License-Identifier: MIT
// Link: events of the poller and time, while there is a connection.
#include "weft/msg/connection/connection.h"
#include "weft/msg/connection/io_service.h"
#include "weft/msg/connection/link.h"
#include "weft/sys/clock.h"

namespace weft::msg {

namespace {
constexpr int kTurnsAtUnbind = 24;  // 6 MB, which a kernel holds for a connection
}  // namespace

void Link::handle_traffic(const sys::PollEvent& event) {
  if (event.writable && send_.flush_into_room()) {
    push_layer();
    set_interest(traffic_interest());
  }
  if (event.readable && !event.failed && !event.peer_closed && leave_to_app()) {
    return;
  }
  // A layer that fails in a write has no event for its reader.
  const bool ended = common_.layered() && common_.stream->state().ended;
  if ((event.readable || event.failed || event.peer_closed || ended) && reads_now()) {
    receive_.read(common_.io.turn());
  }
}

// If others wait, the link's next place in the line counts, not its events.
bool Link::reads_now() noexcept {
  net::ReadTurns<Link>& reads = common_.io.reads();
  // Relaxed: a bit that is there leads to a visit after this.
  const bool waits = (common_.connection.requests.load(std::memory_order_relaxed) & IoService::read) != 0;
  return !(waits && reads.crowded()) && reads.admits(line_.place, common_.io.loop().now(), sys::ticks());
}

// The bytes that the kernel holds, before a close. The caller waits for them, so they have whole turns.
void Link::read_held() noexcept {
  for (int turns = 0; turns == 0 || (receive_.stalled() && turns < kTurnsAtUnbind); ++turns) {
    if (phase_ == Phase::traffic && !receive_.held_by_link()) {
      receive_.read(Turn());
    }
  }
}

// The end of many connections at once takes turns like their reads. A close does not come before it.
void Link::end_in_turn(bool at_once) noexcept {
  if (at_once || reads_now()) {
    run<&Link::take_down>();
  }
}

// While the socket's own thread waits for this very descriptor, reading here would only race it.
bool Link::leave_to_app() {
  if (common_.connection.poll_tag == 0 || !IoService::app_reads(common_.share)) {
    return false;
  }
  if (!hooked()) {
    common_.io.leave_to_app(*this, common_.share);
    set_interest(interest_);
  }
  return true;
}

// Writes bytes that a layer holds without a writer.
void Link::push_layer() noexcept {
  if (common_.layer_has_unsent()) {
    (void)common_.stream->write({});  // a failure: see state().ended
  }
}

sys::Interest Link::traffic_interest() const noexcept {
  const sys::Interest input = sys::Interest::readable | sys::Interest::peer_closed;
  return common_.layer_has_unsent() ? input | sys::Interest::writable : input;
}

// Bytes that the kernel holds and has not sent are as old as a message that waits in the channel.
void Link::bound_unsent() noexcept { sys::bound_unsent(common_.stream->fd(), send_.channel().bytes_beside()); }

void Link::await_room() {
  if (phase_ == Phase::traffic) {
    set_interest(interest_ | sys::Interest::writable);
  }
}

// `interest` is for the connection. While the application reads by itself, the I/O thread leaves out readability.
void Link::set_interest(sys::Interest interest) {
  interest_ = interest;
  sys::Interest asked = interest;
  if (hooked()) {
    asked = has(interest, sys::Interest::writable) ? sys::Interest::writable | sys::Interest::peer_closed
                                                   : sys::Interest::peer_closed;
  }
  if (watch_ != 0) {
    (void)common_.io.loop().rewatch(watch_, asked,
                                    true);  // fails only for a dead descriptor, which the next read finds
  }
}

// The application may have read more than it took: a PING, a fault or the next message after its last one.
void Link::await_input() {
  IoService::take_back(*this, common_.share);
  set_interest(interest_);
  if (phase_ == Phase::traffic && !receive_.held_by_link() && reads_now()) {
    receive_.read(common_.io.turn());
  }
}

// An application that reads on takes them itself. If it does not, the link is taken back: see await_input().
void Link::read_left_over() {
  receive_.answer_rest();
  if (phase_ != Phase::traffic || receive_.held_by_link() || !leave_to_app()) {
    resume_reading();
  }
}

// A handshake that is under way does not wait for those that read messages.
void Link::resume_reading() {
  const bool reads_messages = phase_ == Phase::traffic || phase_ == Phase::draining;
  if (reads_messages || (phase_ == Phase::handshake && refused_for_now_)) {
    common_.io.reads().wait(line_.place);
  } else {
    run<&Link::read_for_turn>();
  }
}

void Link::read_for_turn() {
  switch (phase_) {
    case Phase::traffic:
      if (line_.end_due || receive_.held_by_link()) {
        take_down();  // its reading goes on
      } else {
        receive_.read(common_.io.turn());
      }
      return;
    case Phase::handshake: handle_handshake(); return;
    case Phase::draining: drain(); return;
    case Phase::idle:
    case Phase::dialling:
    case Phase::finished: return;
  }
}

// --- time ---

void Link::schedule_peer_time() {
  schedule<&Link::handle_peer_time>(timers_.peer, common_.local_end.next_deadline(receive_.last_input()));
}

void Link::send_ping() {
  if (common_.layered() && common_.stream->ping()) {
    if (common_.layer_has_unsent()) {
      await_room();
    }
    return;
  }
  std::uint8_t ping[zmtp::kPingFrameMax];
  send_.queue_control(Bytes(ping, zmtp::write_ping(ping, common_.local_end.ping_ttl_deciseconds(), {})));
}

void Link::handle_peer_time() {
  if (phase_ != Phase::handshake && phase_ != Phase::traffic) {
    return;
  }
  const bool held = receive_.held_by_link();
  if (!held) {
    receive_.read(common_.io.turn());  // bytes in the kernel prove that the peer lives
    if (!receive_.try_take_for_link()) {
      schedule<&Link::handle_peer_time>(timers_.peer, sys::now() + kBatonRetry);
      return;
    }
  }
  const Instant now = sys::now();
  // While the channel is full and we do not read, the silence is our own.
  const Instant last = receive_.stalled() ? now : receive_.last_input();
  const zmtp::TimeAction action = common_.local_end.handle_time(now, last);
  if (action == zmtp::TimeAction::expired) {
    if (phase_ == Phase::handshake) {
      fail_handshake(Error(Errc::timed_out, "handshake took too long"));
      return;
    }
    receive_.end_with_fault();
  }
  const Instant next = common_.local_end.next_deadline(last);
  if (!held) {
    receive_.give_back();
  }
  if (action == zmtp::TimeAction::send_ping) {
    send_ping();
  }
  if (action != zmtp::TimeAction::expired) {
    schedule<&Link::handle_peer_time>(timers_.peer, next);
  }
}

}  // namespace weft::msg
