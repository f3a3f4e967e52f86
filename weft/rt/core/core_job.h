// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

#include "weft/base/list.h"

namespace weft::rt {

// CoreJob: an intrusive job that any thread gives to a core, see Core::give(). No lane carries the job, so that no
// giver needs room or memory.
// Owner: the object with the work, which lives until the job has begun to run.
// Affinity: any thread.
// The function does not throw. It may give its own job again, and may destroy it.
class CoreJob : public ListHook {
 public:
  using Run = void(CoreJob& job) noexcept;
  explicit CoreJob(Run* function) noexcept : function_(function) {}

 private:
  friend class Core;

  Run* function_;
  unsigned lane_ = 0;        // the giver's lane to the core
  std::uint64_t after_ = 0;  // the job runs once that lane's ring has given out so many messages
  bool every_lane_ = false;  // and then the same of each lane after it, and of the loop's mail
};

}  // namespace weft::rt
