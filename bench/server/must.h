// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "bench/server/host.h"
#include "weft/base/result.h"

namespace bench {

// The value; without one the program ends with the reason.
template <typename Value>
Value must(weft::Result<Value> result) {
  if (!result) {
    errno = result.error().os_errno();
    give_up(std::string("weft: ") + result.error().message());
  }
  return std::move(*result);
}

}  // namespace bench
