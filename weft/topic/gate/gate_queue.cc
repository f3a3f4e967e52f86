// SPDX-License-Identifier: MIT
#include "weft/topic/gate/gate_queue.h"

namespace weft::topic {

Result<bool> GateQueue::append(const Outbox::Operation& operation, std::size_t bytes_max) {
  const sync::LockGuard lock(mutex_);
  if (ended_) {
    return kGateClosed;
  }
  if (waiting_.bytes() >= bytes_max) {
    return kGateFull;
  }
  waiting_.append(operation);
  published_ += operation.kind == Outbox::Kind::want || operation.kind == Outbox::Kind::unwant ? 0 : 1;
  return !std::exchange(woken_, true);
}

void GateQueue::not_woken() noexcept {
  const sync::LockGuard lock(mutex_);
  woken_ = false;
}

bool GateQueue::expect_room() noexcept {
  const sync::LockGuard lock(mutex_);
  const bool full = waiting_.bytes() >= bytes_max_;
  room_expected_ = room_expected_ || full;
  return !full;
}

void GateQueue::count_full() noexcept {
  const sync::LockGuard lock(mutex_);
  ++published_;
  ++dropped_full_;
}

void GateQueue::add_waiter(sys::EventFd& event) {
  const sync::LockGuard lock(mutex_);
  waiters_.push_back(&event);
  room_expected_ = true;
}

void GateQueue::remove_waiter(sys::EventFd& event) noexcept {
  const sync::LockGuard lock(mutex_);
  std::erase(waiters_, &event);
}

GateQueue::Counts GateQueue::counts() const noexcept {
  const sync::LockGuard lock(mutex_);
  return {published_, dropped_full_, waiting_.count() + batch_count_.load(std::memory_order_relaxed)};
}

void GateQueue::end() noexcept {
  const sync::LockGuard lock(mutex_);
  ended_ = true;
}

void GateQueue::take_batch() noexcept {
  if (!batch_.empty()) {
    return;
  }
  const sync::LockGuard lock(mutex_);
  woken_ = false;
  batch_.swap(waiting_);
  batch_count_.store(batch_.count(), std::memory_order_relaxed);
}

void GateQueue::pop() noexcept {
  batch_.pop();
  batch_count_.store(batch_.count(), std::memory_order_relaxed);
}

bool GateQueue::wake_waiters() noexcept {
  const sync::LockGuard lock(mutex_);
  if (!std::exchange(room_expected_, false)) {
    return false;
  }
  for (sys::EventFd* const each : waiters_) {
    each->signal();
  }
  room_expected_ = !waiters_.empty();
  return true;
}

}  // namespace weft::topic
