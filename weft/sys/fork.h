// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::sys {

// A number that differs in every forked child.
// Affinity: any thread. Cost: a load. It does not detect processes made without fork(3), by clone(2) alone.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

// From now on, calls `before` in each thread that forks, before the fork, and `after` in it and in the child, for locks
// that the child needs. Returns false if there is no memory. There is no way back.
[[nodiscard]] bool at_fork(void (*before)(), void (*after)()) noexcept;

// Birth: the process in which an object was made: a member of the object. In a forked child the threads that served the
// object are not there, and a lock of it may be held for ever: the child waits for nothing and takes no lock of it.
// Owner: a value. Affinity: any thread. Cost: elsewhere() is two loads.
class Birth {
 public:
  // Whether this process is a forked child of that one.
  [[nodiscard]] bool elsewhere() const noexcept { return generation_ != fork_generation(); }

 private:
  std::uint32_t generation_ = fork_generation();
};

}  // namespace weft::sys
