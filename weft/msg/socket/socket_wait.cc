// SPDX-License-Identifier: MIT
// SocketCore: sending, receiving and waiting.
#include <algorithm>
#include <array>

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
  received_ += result ? 1 : 0;
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
  if (!share_.has_unflushed.load(std::memory_order_relaxed) || context_.inherited()) {
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
      core_.has_leader_ = false;
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
    if (!leads_ && core_.stream_count_ > 0 && !core_.has_leader_) {
      leads_ = core_.has_leader_ = true;
      sleeper_.event = &*core_.event_;
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
      return Errc::timed_out;
    }
    if (!leads_) {
      return core_.share_.input_parker.sleep_cancellably(ticket_, timeout) == sys::FutexResult::interrupted
                 ? Result<void>(Errc::interrupted)
                 : Result<void>();
    }
    std::array<sys::PollEvent, 64> events;
    const std::size_t count = WEFT_TRY(core_.epoll_->wait_cancellably(events, timeout));
    const sync::LockGuard lock(core_.receive_mutex_);
    drain_if_rung();
    core_.take_events(count, events.data());
    return {};
  }

 private:
  void drain_if_rung() noexcept {
    if (core_.wake_list_.take_rung(sleeper_)) {
      core_.event_->drain();
    }
  }

  SocketCore& core_;
  bool leads_ = false;
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
      return Errc::timed_out;
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

Result<void> SocketCore::ensure_descriptors() noexcept {
  if (epoll_) {
    return {};
  }
  auto event = WEFT_TRY(sys::EventFd::make());
  auto epoll = WEFT_TRY(sys::EpollSet::make());
  WEFT_TRY(epoll.add(event.fd(), 0, sys::Interest::readable));
  event_.emplace(std::move(event));
  epoll_.emplace(std::move(epoll));
  return {};
}

// Every slot has a place in free_descriptor_slots_, so that forget_descriptor() needs no memory.
bool SocketCore::add_descriptor_slot() noexcept {
  try {
    if (free_descriptor_slots_.capacity() == descriptor_slots_.size()) {
      free_descriptor_slots_.reserve(std::max<std::size_t>(4, 2 * descriptor_slots_.size()));
    }
    descriptor_slots_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  free_descriptor_slots_.push_back(static_cast<std::uint32_t>(descriptor_slots_.size() - 1));
  return true;
}

Result<void> SocketCore::add_descriptor(Connection& connection) noexcept {
  WEFT_TRY(ensure_descriptors());
  if (free_descriptor_slots_.empty() && !add_descriptor_slot()) {
    return Error(Errc::resource_exhausted, "no memory for a descriptor");
  }
  const std::uint32_t index = free_descriptor_slots_.back();
  free_descriptor_slots_.pop_back();
  DescriptorSlot& slot = descriptor_slots_[index];
  const std::uint64_t token = (static_cast<std::uint64_t>(slot.generation) << 32) | index;
  if (auto added = epoll_->add(connection.fd(), token, sys::Interest::readable); !added) {
    free_descriptor_slots_.push_back(index);
    return added.error();
  }
  slot.connection = &connection;
  connection.poll_tag = token;
  streams_.push_back(connection);
  // Wake the threads that sleep on the futex: one of them must wait for the descriptors instead.
  if (++stream_count_ == 1) {
    share_.input_parker.wake_with_fence();
  }
  return {};
}

void SocketCore::forget_descriptor(Connection& connection) noexcept {
  const sync::LockGuard lock(receive_mutex_);
  if (connection.poll_tag == 0) {
    return;
  }
  (void)epoll_->remove(connection.fd());
  const auto index = static_cast<std::uint32_t>(connection.poll_tag);
  descriptor_slots_[index].connection = nullptr;
  ++descriptor_slots_[index].generation;
  free_descriptor_slots_.push_back(index);
  connection.poll_tag = 0;
  --stream_count_;
  connection.unhook();
}

void SocketCore::take_events(std::size_t count, const sys::PollEvent* events) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::uint32_t>(events[i].tag);
    if (events[i].tag == 0 || descriptor_slots_[index].generation != events[i].tag >> 32) {
      continue;
    }
    Connection* connection = descriptor_slots_[index].connection;
    connection->receive_side().set_readable();
    if (Pipe& pipe = pipe_of(*connection); pipe.notes.attached) {
      pattern_->activate(pipe);
    }
  }
}

// Asks the kernel which connections have input. A single connection is read without a query: that saves a system call.
bool SocketCore::poll_descriptors() noexcept {
  if (stream_count_ == 0) {
    return false;
  }
  if (stream_count_ == 1) {
    Connection& only = streams_.front();
    only.receive_side().set_readable();
    if (Pipe& pipe = pipe_of(only); pipe.notes.attached) {
      pattern_->activate(pipe);
    }
    return true;
  }
  std::array<sys::PollEvent, 64> events;
  const auto count = epoll_->wait(events, Duration::zero());
  if (!count || *count == 0) {
    return false;
  }
  take_events(*count, events.data());
  return true;
}

}  // namespace weft::msg
