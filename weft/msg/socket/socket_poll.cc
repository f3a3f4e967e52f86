// SPDX-License-Identifier: MIT
// SocketCore: polling.
#include <array>
#include <utility>

#include "weft/msg/socket/socket_core.h"

namespace weft::msg {

Readiness SocketCore::readiness(Readiness wanted, Instant deadline) {
  const bool asleep = deadline != Instant::min();
  Readiness ready;
  if (refuses()) {
    return wanted;  // the next call returns the error
  }
  if (wanted.input) {
    sync::UniqueLock lock(receive_mutex_);
    share_.turn.begin(deadline);
    announce_watch();
    collect_signals();
    ready.input = pattern_->can_receive();
    if (!ready.input && pattern_->expects_input() && poll_descriptors()) {
      ready.input = pattern_->can_receive();
    }
    if (!ended_.empty()) {
      bury_drained();
    }
    share_.turn.end_waiting();
    if (!ready.input && share_.turn.spent()) {
      share_.input_parker.wake_with_fence();  // there may be more: the thread that waits comes again
    }
    // The kernel wakes no other thread for messages that this thread has read.
    if (ready.input && others_wait(asleep)) {
      lock.unlock();
      share_.input_parker.wake_with_fence();
    }
  }
  if (wanted.output) {
    std::unique_lock<sync::Mutex> receive;
    if (traits_.one_lock) {
      receive = std::unique_lock(receive_mutex_);
    }
    const sync::LockGuard lock(send_mutex_);
    ready.output = pattern_->can_send();
  }
  return ready;
}

Result<int> SocketCore::announce(Readiness wanted, sync::WakeList::Sleeper& sleeper) {
  flush_batches();
  if (!sleeper.listed) {
    wake_list_.add(sleeper);
    share_.waiting.fetch_add(wanted.input ? 1 : 0, std::memory_order_relaxed);
  }
  const sync::LockGuard lock(receive_mutex_);
  if (wanted.output) {
    share_.output_parker.announce_poll(&wake_list_, false);  // the thread that makes room wakes with a fence
  }
  if (!wanted.input) {
    return -1;
  }
  share_.input_parker.announce_poll(&wake_list_, announces_heavily());
  return input_.is_open() && pattern_->expects_input() ? input_.fd() : -1;
}

void SocketCore::forget(Readiness wanted, sync::WakeList::Sleeper& sleeper) noexcept {
  if (sleeper.listed) {
    wake_list_.remove(sleeper);
    share_.waiting.fetch_sub(wanted.input ? 1 : 0, std::memory_order_relaxed);
  }
}

Result<int> SocketCore::descriptor() {
  const sync::LockGuard lock(receive_mutex_);
  if (closed()) {
    return refusal();
  }
  if (!watch_) {
    WEFT_TRY(input_.open());
    auto event = WEFT_TRY(sys::EventFd::make());
    auto set = WEFT_TRY(sys::EpollSet::make());
    WEFT_TRY(set.add(event.fd(), 0, sys::Interest::readable));
    // Edge-triggered: input that the application leaves unread wakes it only once.
    WEFT_TRY(set.add(input_.fd(), 1, sys::Interest::readable, true));
    watch_.emplace(Watch{std::move(event), std::move(set), {}});
    watch_->sleeper.event = &watch_->event;
    watch_->sleeper.rung = true;
    wake_list_.add(watch_->sleeper);
    // Readable from the start: a program that waits before it calls readiness() finds input that came earlier.
    watch_->event.signal();
  }
  return watch_->set.fd();
}

// Of an announcement at the input parker. Only inproc senders wake without a fence of their own. They fence, too, where
// a sleep comes with so few parts that their fences cost less than one heavy fence of 5 us or more. A fence costs 8 ns,
// and 35 ns or more where the stores before it miss the cache, as those of a pipeline's stage do.
bool SocketCore::announces_heavily() noexcept {
  constexpr std::uint64_t kFewParts = 16;
  if (inproc_count_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  const std::uint64_t parts = received_.parts - std::exchange(received_.before, received_.parts);
  return share_.input_parker.ask_for_fences(parts < kFewParts);
}

// Clears the descriptor and arms it again. The caller then checks the pattern.
void SocketCore::announce_watch() noexcept {
  if (!watch_) [[likely]] {
    return;
  }
  std::array<sys::PollEvent, 2> events;
  (void)watch_->set.wait(events, Duration::zero());  // takes the edge
  if (wake_list_.take_rung(watch_->sleeper)) {
    watch_->event.drain();
    share_.output_parker.announce_poll(&wake_list_, false);
    share_.input_parker.announce_poll(&wake_list_, announces_heavily());
  }
}

}  // namespace weft::msg
