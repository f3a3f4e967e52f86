// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/error.h"
#include "weft/base/list.h"
#include "weft/rt/loop/job.h"

namespace weft::rt {

// Waiting: a message that waits for room in a lane, with a function to call when the wait ends.
// Owner: the object that waits; destruction takes the message back and destroys it.
// Affinity: the sender's thread.
class Waiting : public ListHook {
 public:
  // Called when the wait ends. Ok: the message is in the lane. Any other outcome: the message is still in `waiting` and
  // the lane will not take it. The Waiting is then on no list and may be destroyed.
  using Report = void(Waiting& waiting, Error outcome) noexcept;
  // Null: without a call, and the Waiting may end as soon as its message is in the lane.
  explicit Waiting(Report* function) noexcept : report_(function) {}

  [[nodiscard]] Report* report() const noexcept { return report_; }

  Job message;

 private:
  Report* report_;
};

using Backlog = List<Waiting>;  // first come, first served

}  // namespace weft::rt
