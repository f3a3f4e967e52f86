// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/net/dialer.h"
#include "weft/net/resolver.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/net/stream/endpoint.h"
#include "weft/rt/loop/loop.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/sys/socket.h"

namespace weft::serve {

class Shard;

// Dialling: connects once, in two steps. A slow name service takes none of the time for connecting.
// Owner: a coroutine, which outlives the steps. Affinity: the loop's thread, which a step does not block.
class Dialling {
 public:
  // `resolver`: null: Resolver::shared().
  Dialling(rt::Loop& loop, net::Endpoint endpoint, const sys::SocketOptions& options, net::Resolver* resolver);

  // The first step: looks the name up, if the endpoint has one. It has no time limit: bound it with with_timeout().
  // Errors: those of net::Dialer; kCancelled.
  [[nodiscard]] static rt::Task<Result<void>> look_up(Dialling* self);
  // The second one: tries each address. The same holds for it.
  [[nodiscard]] static rt::Task<Result<std::unique_ptr<net::ByteStream>>> connect(Dialling* self);
  // Of the second step: from its begin to that of the last address.
  [[nodiscard]] Duration time_to_last_address() const noexcept { return dialer_.time_to_last_address(); }

 private:
  rt::Loop& loop_;
  const std::shared_ptr<rt::AsyncEvent> resolved_;
  net::Dialer dialer_;
  Result<net::Progress> progress_ = net::Progress::resolving;
};

// Runs the handshake of a stream that has one, from TlsClient::wrap(), until it is over and all of it is written. Bound
// it with with_timeout(). The handshakes of a shard share the time that they have in each turn. Errors: the failure of
// the stream; connection_closed (the peer closed); kCancelled.
[[nodiscard]] rt::Task<Result<std::unique_ptr<net::ByteStream>>> shake_hands(Shard& shard,
                                                                             std::unique_ptr<net::ByteStream> stream);

}  // namespace weft::serve
