// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::sys {

// A number that is another one in every forked child. Who kept the number of its birth can tell whether it was
// inherited: then the threads that served it do not exist here, and locks may be held by nobody.
// Affinity: any thread. Cost: a load. Not seen: processes made without fork(3), by clone(2) alone.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace weft::sys
