// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

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

// OthersFailingMemory: while it lives, one allocation of any thread except the calling one fails: of the I/O threads.
// Owner: a test, on its stack. Affinity: its thread; one at a time.
class OthersFailingMemory {
 public:
  explicit OthersFailingMemory(std::size_t spared) noexcept;
  OthersFailingMemory(const OthersFailingMemory&) = delete;
  OthersFailingMemory& operator=(const OthersFailingMemory&) = delete;
  ~OthersFailingMemory();

  void end() noexcept;
  [[nodiscard]] bool failed() const noexcept;
};

// Blocks that the program has allocated and not freed, of all threads.
[[nodiscard]] std::int64_t live_allocations() noexcept;

}  // namespace weft::test
