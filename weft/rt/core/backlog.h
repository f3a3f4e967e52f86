// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/error.h"
#include "weft/base/list.h"
#include "weft/rt/loop/job.h"

namespace weft::rt {

// Waiting: a message that waits for room in a lane, with who is told. Owner: whoever waits; destruction takes it back,
// and the message is destroyed with it. Affinity: the sender's thread.
class Waiting : public ListHook {
 public:
  // Ok: the message is in the lane; else it is still here, and never will be. The Waiting is on no list then; it may
  // go.
  using Told = void(Waiting& waiting, Error outcome) noexcept;
  // Null: nobody is told, and the Waiting may be gone as soon as its message is in the lane.
  explicit Waiting(Told* who_is_told) noexcept : told_(who_is_told) {}

  [[nodiscard]] Told* told() const noexcept { return told_; }

  Job message;

 private:
  Told* told_;
};

using Backlog = List<Waiting>;  // first come, first served

}  // namespace weft::rt
