// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "weft/base/time.h"
#include "weft/net/stream/endpoint.h"
#include "weft/sys/poll.h"
#include "weft/sys/socket.h"

namespace weft::cli {

// A tcp:// or ipc:// endpoint. Anything else is a Usage that names `what`.
[[nodiscard]] net::Endpoint byte_endpoint(const std::string& text, bool for_bind, const std::string& what);

// Starts a connection. tcp tries the host's first address only. A name waits for the name service.
[[nodiscard]] Result<sys::Connecting> begin_dial(const net::Endpoint& to);

// A connection; `text` names the endpoint in errors. Failure: it is not there at `end`.
[[nodiscard]] sys::Fd dial(const net::Endpoint& to, const std::string& text, Instant end);

// Until the descriptor is ready; false: `end` came first. Stopped at a signal.
[[nodiscard]] bool wait_ready(int fd, sys::Interest want, Instant end);

}  // namespace weft::cli
