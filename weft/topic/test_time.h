// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>

#include "weft/sys/clock.h"

namespace weft::topic {

using namespace std::chrono_literals;

// How long a test waits for what must come. No test waits so long when all is well.
inline Instant soon() { return sys::now() + 20s; }

}  // namespace weft::topic
