// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>

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

}  // namespace weft::sys
