// SPDX-License-Identifier: MIT
#pragma once

#include <new>
#include <utility>

#include "weft/base/error.h"

namespace weft {

// Runs `call`, which returns a Result. If memory runs out in there, the result is resource_exhausted.
template <typename Call>
[[nodiscard]] auto or_no_memory(Call&& call) noexcept -> decltype(std::forward<Call>(call)()) {
  try {
    return std::forward<Call>(call)();
  } catch (const std::bad_alloc&) {
    return Error(Errc::resource_exhausted, "no memory");
  }
}

}  // namespace weft
