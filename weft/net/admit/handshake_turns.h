// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <utility>

#include "weft/base/time.h"
#include "weft/sys/clock.h"

namespace weft::net {

// HandshakeTurns: bounds the time that handshakes take in one turn of a loop. A step of one takes milliseconds with a
// big key of RSA, and many peers may come at once.
// Owner: beside a loop. Affinity: the loop's thread. Cost: a call to the clock.
// Invariant: one step runs in each turn, so that every handshake ends.
class HandshakeTurns {
 public:
  static constexpr Duration kLongest = std::chrono::milliseconds(2);  // of a turn, before its last step begins

  // Returns true if the step waits for the next turn. `turn`: when this one began.
  [[nodiscard]] bool defers(Instant turn) noexcept {
    return std::exchange(turn_, turn) == turn && sys::now() - turn > kLongest;
  }

 private:
  Instant turn_{};  // in which a step ran last
};

}  // namespace weft::net
