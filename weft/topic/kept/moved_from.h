// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/result.h"

// The guard of the calls of all handles and of their objects. An object that was moved from has a null pointer in the
// place of its node, core, channel or call.
namespace weft::topic {

inline constexpr Error kMovedFrom(Errc::closed, "the object was moved from");

// For a call that does not wait. Cost: one comparison; the reference count is not touched. Errors: kMovedFrom.
template <typename Pointer>
[[nodiscard]] Result<typename Pointer::element_type*> borrow(const Pointer& own) noexcept {
  if (own == nullptr) [[unlikely]] {
    return kMovedFrom;
  }
  return own.get();
}

// For a call that waits: another thread may destroy the object meanwhile. Errors: kMovedFrom.
template <typename Pointer>
[[nodiscard]] Result<Pointer> share(const Pointer& own) noexcept {
  if (own == nullptr) [[unlikely]] {
    return kMovedFrom;
  }
  return own;
}

}  // namespace weft::topic
