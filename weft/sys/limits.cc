// SPDX-License-Identifier: MIT
#include "weft/sys/limits.h"

#include <sys/resource.h>

#include <algorithm>

#include "weft/sys/call.h"

namespace weft::sys {

Result<std::size_t> set_descriptor_limit(std::size_t count) noexcept {
  rlimit limit{};
  WEFT_TRY(checked_call("read the limit of descriptors", [&] { return ::getrlimit(RLIMIT_NOFILE, &limit); }));
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
  WEFT_TRY(checked_call("set the limit of descriptors", [&] { return ::setrlimit(RLIMIT_NOFILE, &limit); }));
  return static_cast<std::size_t>(before);
}

Result<std::size_t> raise_descriptor_limit(std::size_t count) noexcept {
  rlimit limit{};
  WEFT_TRY(checked_call("read the limit of descriptors", [&] { return ::getrlimit(RLIMIT_NOFILE, &limit); }));
  if (limit.rlim_cur < count) {
    limit.rlim_cur = std::min<rlim_t>(count, limit.rlim_max);
    WEFT_TRY(checked_call("set the limit of descriptors", [&] { return ::setrlimit(RLIMIT_NOFILE, &limit); }));
  }
  return static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace weft::sys
