// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/list.h"

namespace weft::rt {

// TurnJob: something that a core does at the end of a turn in which it was asked to, once: a batch to flush.
// Owner: whoever has the work; destruction and unhook() take the request back. Affinity: the core's thread. Cost: a
// hook. The function does not throw. It may list its own task again, for the next turn, and destroy it.
class TurnJob : public ListHook {
 public:
  using Run = void(TurnJob& task) noexcept;
  explicit TurnJob(Run* function) noexcept : function_(function) {}

  void run() noexcept { function_(*this); }

 private:
  Run* function_;
};

}  // namespace weft::rt
