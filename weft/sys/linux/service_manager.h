// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::sys {

// PassedSocket: a descriptor that the service manager opened before it started the program.
struct PassedSocket {
  int fd = -1;
  std::string name;  // FileDescriptorName= of the socket unit; "unknown" if the manager gave no name
};

// Returns the descriptors that the environment variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES announce (the
// protocol of sd_listen_fds(3)), sets their close-on-exec flag, and removes the variables. Returns none to a second
// call, and in a process that the variables do not name. The caller owns the descriptors. Call it before the first
// thread starts: it changes the environment. Errors: invalid_argument (the variables announce a descriptor that is
// not open, or no number, or more than 1,024); resource_exhausted (no memory).
[[nodiscard]] Result<std::vector<PassedSocket>> take_passed_sockets();

// Sends the service manager a state such as "READY=1" or "STOPPING=1" (the protocol of sd_notify(3)). Returns false if
// the program has no service manager. Errors: invalid_argument (NOTIFY_SOCKET holds no address of a unix socket);
// would_block (the manager does not read); the others of the system.
Result<bool> notify_service_manager(std::string_view state);

}  // namespace weft::sys
