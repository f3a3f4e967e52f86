// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>

#include "weft/base/error.h"
#include "weft/base/time.h"
#include "weft/net/admit/proxy_header.h"
#include "weft/net/stream/byte_stream.h"
#include "weft/rt/loop/loop.h"
#include "weft/serve/admission/session_count.h"

namespace weft::serve {

// ProxyWaits: the connections of one core whose header of the PROXY protocol is not whole.
// Owner: the core's part of a server. Affinity: that core's thread.
// Cost: 1 KB, a watch and a timer for each connection that waits; a header that is there at once costs none of them.
// Invariants:
//   1. It reads no byte after the header.
//   2. A connection that waits counts as a session of the server.
//   3. Each connection of begin() ends in one call of a handler, or in a throw.
class ProxyWaits {
 public:
  struct Handlers {  // of each connection's port
    // `client` has family none if the connection is the proxy's own. `accepted`: the time of begin(). May throw
    // std::bad_alloc, which is refused().
    std::function<void(std::size_t port, std::unique_ptr<net::ByteStream> stream, const sys::SocketAddress& client,
                       Instant accepted)>
        ready;
    std::function<void(const net::ByteStream& stream, const Error& why)> refused;  // does not throw
    std::function<void(const net::ByteStream& stream)> full;                       // likewise: the count is spent
  };

  ProxyWaits(rt::Loop& loop, SessionCount& count, Handlers handlers);
  ProxyWaits(const ProxyWaits&) = delete;
  ProxyWaits& operator=(const ProxyWaits&) = delete;
  ~ProxyWaits();

  // The header is whole within `patience`. Throws std::bad_alloc.
  void begin(std::size_t port, std::unique_ptr<net::ByteStream> stream, Duration patience);
  void refuse_all(const Error& why) noexcept;

 private:
  class Wait;
  using Waits = std::list<Wait>;

  void handle_readable(Waits::iterator at);
  void refuse(Waits::iterator at, const Error& why) noexcept;
  std::unique_ptr<net::ByteStream> take(Waits::iterator at) noexcept;

  rt::Loop& loop_;
  SessionCount& count_;
  const Handlers handlers_;
  Waits waits_;
};

}  // namespace weft::serve
