// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/net/endpoint.h"
#include "weft/net/resolver.h"
#include "weft/net/stream.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/task.h"
#include "weft/sys/socket.h"

namespace weft::serve {

// Connects once, on this thread's loop, which must be `loop`. Does not block the thread: the resolver (null:
// Resolver::shared()) looks the name up, and each address is tried in turn. There is no time limit: bound it
// with with_timeout(). Errors: those of net::Dialer; kCancelled.
[[nodiscard]] rt::Task<Result<std::unique_ptr<net::Stream>>> dial(rt::Loop& loop, net::Endpoint endpoint,
                                                                  sys::SocketOptions options,
                                                                  net::Resolver* resolver = nullptr);
// Runs the handshake of a stream that has one, from TlsClient::wrap(), until it is over and all of it is written. Bound
// it with with_timeout(). Errors: the failure of the stream; connection_closed (the peer closed); kCancelled.
[[nodiscard]] rt::Task<Result<std::unique_ptr<net::Stream>>> shake_hands(rt::Loop& loop,
                                                                         std::unique_ptr<net::Stream> stream);

}  // namespace weft::serve
