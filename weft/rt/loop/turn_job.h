// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/list.h"

namespace weft::rt {

// TurnJob: an intrusive job that a core runs once, at the end of the turn in which it was listed: a batch to flush.
// Owner: the object with the work; destruction and unhook() take the job back.
// Affinity: the core's thread.
// Cost: a hook.
// The function does not throw. It may list its own job again, for the next turn, and may destroy it.
class TurnJob : public ListHook {
 public:
  using Run = void(TurnJob& job) noexcept;
  explicit TurnJob(Run* function) noexcept : function_(function) {}

  void run() noexcept { function_(*this); }

 private:
  Run* function_;
};

}  // namespace weft::rt
