// SPDX-License-Identifier: MIT
// SocketCore: sending, receiving and waiting.
#include <algorithm>
#include <array>
#include <span>

#include "weft/msg/socket/context_core.h"
#include "weft/msg/socket/socket_core.h"
#include "weft/sys/clock.h"
#include "weft/sys/poll.h"

namespace weft::msg {

namespace {

bool would_block(const Result<void>& result) noexcept { return !result && result.error() == Errc::would_block; }

}  // namespace

Result<void> SocketCore::try_send(Outbound& part) {
  std::unique_lock<sync::Mutex> receive;
  if (traits_.one_lock) {
    receive = std::unique_lock(receive_mutex_);
  }
  const sync::LockGuard lock(send_mutex_);
  if (refuses()) [[unlikely]] {
    return refusal();
  }
  if (!send_bounds_.permit(part)) [[unlikely]] {
    return send_bounds_.refusal(part);
  }
  if (traits_.one_lock) {
    share_.turn.begin(Instant::min());  // a new request drops the parts for the last one
  }
  return send_bounded(part);
}

Result<void> SocketCore::try_receive(Inbound& part, bool look, Instant deadline) {
  const bool asleep = deadline != Instant::min();
  sync::UniqueLock lock(receive_mutex_);
  if (refuses()) [[unlikely]] {
    return refusal();
  }
  share_.turn.begin(deadline);
  collect_signals();
  Result<void> result = pattern_->receive(part);
  if (would_block(result) && look && pattern_->expects_input() && poll_descriptors()) {
    result = pattern_->receive(part);
  }
  if (watch_ && would_block(result) && !asleep) [[unlikely]] {
    // A program that waits for descriptor() receives until nothing is left, and sleeps. So this thread clears the
    // descriptor, and then reads the connections once more for input that came meanwhile.
    announce_watch();
    collect_signals();
    (void)(pattern_->expects_input() && poll_descriptors());
    result = pattern_->receive(part);
  }
  share_.turn.end_waiting();
  received_.parts += result ? 1 : 0;
  if (!ended_.empty()) [[unlikely]] {
    bury_drained();
  }
  if (would_block(result) && share_.turn.spent()) [[unlikely]] {
    share_.input_parker.wake_with_fence();  // there may be more: this thread, another, or descriptor() goes on
  }
  // The kernel wakes no other thread for messages that this thread has read and not taken.
  if (others_wait(asleep) && result && (share_.turn.spent() || pattern_->can_receive())) [[unlikely]] {
    lock.unlock();
    share_.input_parker.wake_with_fence();
  }
  return result;
}

Instant Timeout::deadline(Duration option) const noexcept {
  if (deadline_ != Instant::min()) {
    return deadline_;
  }
  return option < Duration::zero() ? kNever : deadline_after(sys::now(), option);
}

Result<void> SocketCore::send_or_wait(Outbound& part, Timeout timeout) {
  Result<void> result = try_send(part);
  if (!would_block(result) || !timeout.may_wait()) {
    return result;
  }
  if (part.deadline == Instant::min()) {  // else the first attempt has waited for room in the kernel
    part.deadline = timeout.deadline(send_timeout());
  }
  WEFT_TRY(wait_for_output(part.deadline, [&] {
    result = try_send(part);
    return !would_block(result);
  }));
  return result;
}

Result<void> SocketCore::recv_or_wait(Inbound& part, Timeout timeout) {
  // In eco mode the thread does not spin: its sleep is its first query, and returns at once if the kernel has bytes.
  const bool look = !timeout.may_wait() || share_.wait_mode != sync::WaitMode::eco;
  Result<void> result = try_receive(part, look, Instant::min());
  if (!would_block(result)) {
    return result;
  }
  flush_this_threads_batches();
  if (!timeout.may_wait()) {
    return result;
  }
  const Instant deadline = timeout.deadline(receive_timeout());
  WEFT_TRY(wait_for_input(deadline, [&](bool poll_again) {
    result = try_receive(part, poll_again, deadline);
    return !would_block(result);
  }));
  return result;
}

void SocketCore::flush_batches() noexcept {
  if (!share_.has_unflushed.load(std::memory_order_relaxed) || context_->inherited()) {
    return;  // a forked child has a copy of the parent's batch
  }
  const sync::LockGuard lock(send_mutex_);
  for (const auto& connection : share_.unflushed) {
    connection->send_side().flush_listed();
  }
  share_.unflushed.clear();
  share_.has_unflushed.store(false, std::memory_order_relaxed);
  share_.flushing_thread = 0;
}

// InputWait: one thread's wait for input. One of the waiting threads is the leader: it waits for the connections'
// descriptors, and the others park. A leader that leaves wakes the others, so that one of them becomes the leader.
// Owner: wait_for_input(). Affinity: the waiting thread.
class SocketCore::InputWait {
 public:
  explicit InputWait(SocketCore& core) noexcept : core_(core) {
    core_.share_.waiting.fetch_add(1, std::memory_order_relaxed);
  }
  InputWait(const InputWait&) = delete;
  InputWait& operator=(const InputWait&) = delete;
  ~InputWait() {
    bool others = false;
    if (leads_) {
      const sync::LockGuard lock(core_.receive_mutex_);
      core_.input_.end_lead();
      core_.wake_list_.remove(sleeper_);
      drain_if_rung();
      // Under the lock: the count includes each thread that counted itself and then found a leader.
      others = core_.share_.waiting.load(std::memory_order_relaxed) > 1;
    }
    core_.share_.waiting.fetch_sub(1, std::memory_order_relaxed);
    if (others) {
      core_.share_.input_parker.wake_with_fence();
    }
  }

  [[nodiscard]] bool leads() const noexcept { return leads_; }

  void announce() noexcept {
    const sync::LockGuard lock(core_.receive_mutex_);
    const bool heavy = core_.announces_heavily();
    if (!leads_ && core_.input_.try_lead()) {
      leads_ = true;
      set_ = &core_.input_.leader_set();
      sleeper_.event = &core_.input_.leader_event();
      core_.wake_list_.add(sleeper_);
    }
    if (leads_) {
      core_.share_.input_parker.announce_poll(&core_.wake_list_, heavy);
    } else {
      ticket_ = core_.share_.input_parker.announce_futex(heavy);
    }
  }

  // A cancellation point: the application's thread may be cancelled while it sleeps.
  [[nodiscard]] Result<void> sleep(Instant deadline) {
    const Duration timeout = time_left(deadline, sys::now());
    if (timeout == Duration::zero()) {
      return core_.monitor_.timed_out();
    }
    if (!leads_) {
      return core_.share_.input_parker.sleep_cancellably(ticket_, timeout) == sys::FutexResult::interrupted
                 ? Result<void>(Errc::interrupted)
                 : Result<void>();
    }
    std::array<sys::PollEvent, 64> events;
    const std::size_t count = WEFT_TRY(set_->wait_cancellably(events, timeout));
    const sync::LockGuard lock(core_.receive_mutex_);
    drain_if_rung();
    core_.input_.take_events(std::span(events).first(count),
                             [this](InputSource& source) { core_.handle_readable(source); });
    return {};
  }

 private:
  void drain_if_rung() noexcept {
    if (core_.wake_list_.take_rung(sleeper_)) {
      sleeper_.event->drain();
    }
  }

  SocketCore& core_;
  bool leads_ = false;
  sys::EpollSet* set_ = nullptr;  // the leader's
  sync::WakeList::Sleeper sleeper_;
  sync::Parker::Ticket ticket_ = 0;
};

template <typename Attempt>
Result<void> SocketCore::wait_for_input(Instant deadline, Attempt attempt) {
  flush_batches();  // also those of other threads
  InputWait wait(*this);
  if (sync::spin_until(input_spin_, share_.wait_mode, [&] { return attempt(true); })) {
    return {};
  }
  for (;;) {
    wait.announce();
    if (attempt(false)) {
      return {};
    }
    WEFT_TRY(wait.sleep(deadline));
    if (attempt(!wait.leads())) {
      return {};
    }
  }
}

template <typename Attempt>
Result<void> SocketCore::wait_for_output(Instant deadline, Attempt attempt) {
  flush_this_threads_batches();
  flush_batches();
  if (sync::spin_until(output_spin_, share_.wait_mode, attempt)) {
    return {};
  }
  for (;;) {
    const auto ticket = share_.output_parker.announce_futex(false);  // the thread that makes room wakes with a fence
    if (attempt()) {
      return {};
    }
    const Duration timeout = time_left(deadline, sys::now());
    if (timeout == Duration::zero()) {
      return monitor_.timed_out();
    }
    if (share_.output_parker.sleep_cancellably(ticket, timeout) == sys::FutexResult::interrupted) {
      return Errc::interrupted;
    }
    if (attempt()) {
      return {};
    }
  }
}

// --- descriptors ---

void SocketCore::forget_descriptor(Connection& connection) noexcept {
  const sync::LockGuard lock(receive_mutex_);
  if (connection.poll_tag != 0) {  // else there may be no stream
    input_.remove(connection, connection.fd());
  }
}

// The sources of input_ are connections.
void SocketCore::handle_readable(InputSource& source) noexcept {
  auto& connection = static_cast<Connection&>(source);
  connection.receive_side().set_readable();
  if (Pipe& pipe = pipe_of(connection); pipe.notes.attached) {
    pattern_->activate(pipe);
  }
}

bool SocketCore::poll_descriptors() noexcept {
  return input_.poll([this](InputSource& source) { handle_readable(source); });
}

}  // namespace weft::msg
