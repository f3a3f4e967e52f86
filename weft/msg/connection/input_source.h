// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/list.h"

namespace weft::msg {

// InputSource: the base of an object with a descriptor for which the threads of a socket wait themselves.
// Owner: the derived object. Affinity: the socket's receive lock, which also guards the hook.
struct InputSource : ListHook {
  // The place in the socket's set of descriptors; 0: none. Written under the receive lock. The I/O thread reads it
  // without the lock.
  std::atomic<std::uint64_t> poll_tag{0};
};

}  // namespace weft::msg
