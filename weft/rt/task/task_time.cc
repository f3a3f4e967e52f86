// SPDX-License-Identifier: MIT
#include "weft/rt/task/task_time.h"

namespace weft::rt {

bool Sleeping::suspend(CancelScope& scope, std::coroutine_handle<> coroutine) {
  if (!wait_.begin(scope, coroutine)) {
    result_ = kCancelled;
    return wait_.deferred();
  }
  TaskRunner& runner = scope.runner();
  if (relative_) {
    deadline_ = deadline_after(runner.now(), duration_);
  }
  timer_ =
      runner.timers().schedule(deadline_, {[](void* self) { static_cast<Sleeping*>(self)->wait_.finish(); }, this});
  if (!timer_) [[unlikely]] {
    result_ = detail::kNoTimer;
    wait_.finish();
  }
  return true;
}

void Sleeping::SleepWait::give_up(Wait& self) noexcept {
  Sleeping& sleeping = *static_cast<SleepWait&>(self).sleeping;
  sleeping.result_ = kCancelled;
  sleeping.wait_.runner().timers().cancel(sleeping.timer_);
  sleeping.wait_.finish();
}

}  // namespace weft::rt
