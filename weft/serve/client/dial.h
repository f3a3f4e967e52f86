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

// One attempt to connect, on this thread's loop, which is `loop`; it stops nobody: a name is looked up by the resolver
// (null: Resolver::shared()), and every address is tried in turn. Bound it with with_timeout(): there is no limit of
// its own. Errors: what net::Dialer says; kCancelled.
[[nodiscard]] rt::Task<Result<std::unique_ptr<net::Stream>>> dial(rt::Loop& loop, net::Endpoint endpoint,
                                                                  sys::SocketOptions options,
                                                                  net::Resolver* resolver = nullptr);
// The handshake of a stream that has one, as TlsClient::wrap() makes it, until it is over and out. Bound it likewise.
// Errors: why the stream failed; connection_closed: the peer left; kCancelled.
[[nodiscard]] rt::Task<Result<std::unique_ptr<net::Stream>>> shake_hands(rt::Loop& loop,
                                                                         std::unique_ptr<net::Stream> stream);

}  // namespace weft::serve
