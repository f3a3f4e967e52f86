// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/net/resolver.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"

namespace weft::serve {

// The addresses of a host name, each with `port`, in the system's order. `resolver` and `loop` outlive the task, which
// runs on the loop. It has no time limit: bound it with with_timeout(). Errors: those of Resolver::submit() and of its
// look-up, such as name_unresolved; kCancelled.
[[nodiscard]] rt::Task<Result<net::Resolver::Addresses>> look_up_name(rt::Loop& loop, net::Resolver& resolver,
                                                                      std::string host, std::uint16_t port, bool ipv6);

}  // namespace weft::serve
