// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/base/time.h"

namespace weft::sys {

// SignalMask: the bytes of a sigset_t, for code that does not include <signal.h>.
struct SignalMask {
  alignas(8) std::array<std::byte, 128> bytes{};
};

// SignalsBlocked: while it lives, the calling thread takes no asynchronous signal. The threads that it starts
// inherit the mask for good, so that the application's handlers run on the application's threads. Faults and
// SIGPROF stay open.
// Affinity: made and destroyed on one thread. Cost: one system call each.
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked();

 private:
  alignas(8) std::array<std::byte, 128> previous_{};  // a sigset_t
};

// EndSignals: SIGINT and SIGTERM, as calls. While it lives, they are pending for the calling thread, and for those that
// it starts. With `hang_up` SIGHUP is, too.
// Affinity: one thread. Cost: one system call each.
class EndSignals {
 public:
  enum class Taken : std::uint8_t { none, end, hang_up };

  explicit EndSignals(bool hang_up = false) noexcept;
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  ~EndSignals();  // a pending signal then ends the process, or runs its handler

  // Waits for one of them and takes it. Returns false at the deadline.
  [[nodiscard]] bool wait_until(Instant deadline) noexcept;
  // The same, and for SIGHUP if the object has it.
  [[nodiscard]] Taken take_until(Instant deadline) noexcept;

 private:
  const bool hang_up_;
  SignalMask previous_;
};

}  // namespace weft::sys
