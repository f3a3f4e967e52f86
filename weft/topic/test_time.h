// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>

#include "weft/sys/clock.h"

namespace weft::topic {

using namespace std::chrono_literals;

// The longest time that a test waits for an expected event. No test waits so long when all is well.
inline Instant soon() { return sys::now() + 20s; }

}  // namespace weft::topic
