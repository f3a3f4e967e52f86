// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

namespace weft::test {

// FailingMemory: while it lives, one allocation of the calling thread fails, or that one and all later ones.
// Owner: a test, on its stack. Affinity: its thread; one at a time.
class FailingMemory {
 public:
  enum class Length { one, all };

  // The first `spared` allocations succeed.
  FailingMemory(std::size_t spared, Length length) noexcept;
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory();

  void end() noexcept;                         // allocations succeed again
  void resume() noexcept;                      // after end(): as before it
  [[nodiscard]] bool failed() const noexcept;  // an allocation was refused
};

}  // namespace weft::test
