// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace weft::sys {

// A number that differs in every forked child. An object that keeps the number from its construction can
// detect that it was inherited. Then the threads that served it do not exist in this process, and a locked
// lock may have no holder.
// Affinity: any thread. Cost: a load. It does not detect processes made without fork(3), by clone(2) alone.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace weft::sys
