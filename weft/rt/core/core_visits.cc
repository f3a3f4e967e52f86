// SPDX-License-Identifier: MIT
#include "weft/rt/core/core_visits.h"

#include <utility>

#include "weft/rt/core/runtime.h"
#include "weft/sync/condition.h"

namespace weft::rt {

CoreVisits::Visit::Visit() noexcept
    : CoreJob([](CoreJob& job) noexcept {
        auto& self = static_cast<Visit&>(job);
        const auto visits = std::move(self.keep);
        visits->visit(self.core);
      }) {}

CoreVisits::CoreVisits(Runtime& runtime, Function function)
    : runtime_(runtime),
      function_(std::move(function)),
      cores_(runtime.size()),
      visits_(std::make_unique<Visit[]>(cores_)),
      left_(cores_) {}

std::shared_ptr<CoreVisits> CoreVisits::make(Runtime& runtime, Function function) {
  return std::shared_ptr<CoreVisits>(new CoreVisits(runtime, std::move(function)));
}

Result<void> CoreVisits::run(Runtime& runtime, Function function) {
  const auto visits = make(runtime, std::move(function));
  visits->begin();
  return visits->wait(kNever);
}

void CoreVisits::begin(bool behind_all) noexcept {
  {
    const sync::LockGuard lock(mutex_);
    if (std::exchange(begun_, true)) {
      return;
    }
  }
  const auto self = shared_from_this();  // the last call may drop the owner's
  for (unsigned core = 0; core < cores_; ++core) {
    visits_[core].keep = self;
    visits_[core].core = core;
    if (behind_all) {
      runtime_.core(core).give_behind_all(visits_[core]);
    } else {
      runtime_.core(core).give(visits_[core]);
    }
  }
}

Result<void> CoreVisits::call(unsigned core) noexcept {
  try {
    return function_(core);
  } catch (...) {
    return Error(Errc::job_threw, "a function threw on a core");
  }
}

void CoreVisits::visit(unsigned core) noexcept {
  const Result<void> result = call(core);
  const sync::LockGuard lock(mutex_);
  if (result_) {
    result_ = result;
  }
  --left_;
  changed_.notify_all();
}

Result<void> CoreVisits::wait(Instant deadline) {
  sync::UniqueLock lock(mutex_);
  while (left_ != 0) {
    if (!sync::sleep_until(changed_, lock, deadline)) {
      return Error(Errc::timed_out, "a core did not come to it by the deadline");
    }
  }
  return result_;
}

}  // namespace weft::rt
