// SPDX-License-Identifier: MIT
#include "weft/rt/loop/task_runner.h"

#include "weft/rt/loop/loop.h"

namespace weft::rt {

void CancelScope::open(CancelScope& parent) noexcept {
  runner_ = parent.runner_;
  parent_ = &parent;
  cancelled_ = parent.cancelled_;
  doing_ = parent.doing_;
  parent.children_.push_back(*this);
}

void CancelScope::close() noexcept {
  unhook();
  parent_ = nullptr;
}

void CancelScope::cancel_own() noexcept {
  cancelled_ = true;
  while (Wait* wait = waits_.pop_front()) {
    wait->cancel_(*wait);
  }
}

void CancelScope::cancel() noexcept {
  if (runner_ == nullptr) {
    cancelled_ = true;  // not open: no coroutine is in it
    return;
  }
  TaskRunner& runner = *runner_;
  if (runner.cancelling_) {
    if (!std::exchange(cancelled_, true)) {
      next_cancelled_ = std::exchange(runner.first_cancelled_, this);
    }
    return;
  }
  runner.cancelling_ = true;
  cancel_tree();
  while (CancelScope* const scope = runner.first_cancelled_) {
    runner.first_cancelled_ = scope->next_cancelled_;
    scope->cancelled_ = false;  // for the walk, as when it began
    scope->cancel_tree();
  }
  runner.cancelling_ = false;
}

void CancelScope::cancel_tree() noexcept {
  // Walks the tree below, parents first, without recursion: a deep nesting must not overflow the stack. No coroutine
  // resumes here, so the tree does not change during the walk.
  for (CancelScope* scope = this; scope != nullptr;) {
    const bool was_cancelled = scope->cancelled_;
    scope->cancel_own();
    CancelScope* next = was_cancelled ? nullptr : scope->children_.first();
    while (next == nullptr && scope != this) {
      next = scope->parent_->children_.next(*scope);
      scope = scope->parent_;
    }
    scope = next;
  }
}

// The first cancelled await of a run of the coroutine is not deferred: most coroutines end after it. All awaits of one
// run have the same place in the row, those of the tasks that the coroutine starts as well, so that a group of many
// tasks is not taken for a long row.
void Wait::defer(CancelScope& scope, std::coroutine_handle<> coroutine) {
  TaskRunner& runner = scope.runner();
  if (runner.cancelled_row_ == 0) {
    runner.cancelled_row_ = 1;
    return;
  }
  runner.cancels_ignored_.add();
  if (runner.cancelled_row_ == kCancelledAwaitsMax) {
    runner.cancelled_row_ = 1;  // a task that catches it awaits the next turn again
    throw CancelIgnored();
  }
  coroutine_ = coroutine;
  row_ = runner.cancelled_row_ + 1;
  runner.add(*this);
}

void Wait::run_deferred() noexcept {
  scope_->runner().cancelled_row_ = std::exchange(row_, 0);
  scope_->runner().activity_->set(scope_->doing_);
  detail::resume(coroutine_);
}

void TaskRunner::turn() noexcept {
  if (has_posted()) {
    const sync::LockGuard lock(posted_mutex_);
    has_posted_.store(false, std::memory_order_relaxed);  // ordered by the mutex, as is the store in post()
    while (detail::Ready* const item = posted_.pop_front()) {
      ready_.push_back(*item);
    }
    taken_ = posted_count_;
  }
  List<detail::Ready> now;  // an item that becomes ready during this turn waits for the next one
  for (std::size_t i = 0; i < kTurnMax; ++i) {
    detail::Ready* const item = ready_.pop_front();
    if (item == nullptr) {
      break;
    }
    now.push_back(*item);
  }
  while (detail::Ready* const item = now.pop_front()) {
    cancelled_row_ = 0;
    item->run();
  }
  cancelled_row_ = 0;
  activity_->set({});
}

void TaskRunner::post(detail::Ready& item) noexcept {
  // Wakes the loop under the lock: once the loop has the item it may end and destroy this runner.
  const sync::LockGuard lock(posted_mutex_);
  posted_.push_back(item);
  ++posted_count_;
  has_posted_.store(true, std::memory_order_relaxed);
  loop_->wake_sleeper();
}

}  // namespace weft::rt
