// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/base/no_memory.h"
#include "weft/sys/call.h"

namespace weft::msg {

// or_no_memory() for calls that set something up: a library may read files in there, which is a cancellation point.
template <typename Call>
[[nodiscard]] auto set_up(Call&& call) noexcept -> decltype(std::forward<Call>(call)()) {
  const sys::CancellationOff off;
  return or_no_memory(std::forward<Call>(call));
}

}  // namespace weft::msg
