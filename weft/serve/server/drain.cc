// SPDX-License-Identifier: MIT
#include "weft/serve/server/drain.h"

#include <algorithm>
#include <utility>

namespace weft::serve {

Drain::Step::Step() noexcept
    : CoreJob([](rt::CoreJob& job) noexcept {
        auto& self = static_cast<Step&>(job);
        const auto kept = std::move(self.keep);
        self.drain->run(self.core, kept);
      }) {}

Drain::Drain(rt::Runtime& runtime, std::function<bool(unsigned)> check, std::function<void()> over)
    : runtime_(runtime),
      check_(std::move(check)),
      over_(std::move(over)),
      steps_(runtime.size()),
      drained_(runtime.size(), false) {
  for (unsigned core = 0; core < runtime.size(); ++core) {
    steps_[core].drain = this;
    steps_[core].core = core;
  }
}

void Drain::note_drained(unsigned core, const std::shared_ptr<void>& keep) noexcept {
  Stage stage = Stage::waiting;
  {
    const sync::LockGuard lock(mutex_);
    drained_[core] = true;
    if (stage_ == Stage::waiting && all_drained()) {
      posted_ = posted();
      stage = begin(Stage::showing);
    }
  }
  give_steps(stage, keep);
}

void Drain::run(unsigned core, const std::shared_ptr<void>& keep) noexcept {
  Stage stage{};
  {
    const sync::LockGuard lock(mutex_);
    stage = stage_;
  }
  bool drained = true;
  if (stage == Stage::passing) {
    drained = check_(core);
  } else if (rt::Core* const here = rt::Core::current(); here == &runtime_.core(core)) {
    here->flush();
  }
  {
    const sync::LockGuard lock(mutex_);
    drained_[core] = drained_[core] && drained;
    stage = --pending_ == 0 ? next() : Stage::waiting;
  }
  give_steps(stage, keep);
}

// The stage of which the caller gives the steps, outside the lock: a core that has ended runs them inside give().
// `waiting`: of none.
Drain::Stage Drain::begin(Stage stage) noexcept {
  stage_ = stage;
  pending_ = steps_.size();
  return stage;
}

Drain::Stage Drain::next() noexcept {
  if (stage_ == Stage::showing) {
    return begin(Stage::passing);
  }
  if (!all_drained()) {
    return stage_ = Stage::waiting;
  }
  const std::uint64_t now = posted();
  if (now == posted_ || ++rounds_ == kRoundsMax) {
    return stage_ = Stage::over;
  }
  posted_ = now;
  return begin(Stage::showing);
}

void Drain::give_steps(Stage stage, const std::shared_ptr<void>& keep) noexcept {
  if (stage == Stage::over) {
    return over_();
  }
  if (stage == Stage::waiting) {
    return;
  }
  for (Step& step : steps_) {
    step.keep = keep;
    rt::Core& core = runtime_.core(step.core);
    stage == Stage::showing ? core.give(step) : core.give_behind_all(step);
  }
}

bool Drain::all_drained() const noexcept {
  return std::all_of(drained_.begin(), drained_.end(), [](bool drained) { return drained; });
}

std::uint64_t Drain::posted() const noexcept {
  std::uint64_t sum = 0;
  for (unsigned core = 0; core < steps_.size(); ++core) {
    const rt::CoreCounts counts = runtime_.core(core).counts();
    sum += counts.posted + counts.foreign_posted + runtime_.core(core).loop().mailed();
  }
  return sum;
}

}  // namespace weft::serve
