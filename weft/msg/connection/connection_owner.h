// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>

#include "weft/base/bytes.h"
#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/connection/authentication.h"
#include "weft/msg/connection/socket_share.h"
#include "weft/msg/message/monitor.h"
#include "weft/msg/message/options.h"
#include "weft/rt/loop/loop.h"

namespace weft::msg {

class Connection;
struct InprocLink;

// ConnectionOwner: the interface of a socket for its connections and pipes. A dynamic seam (docs/design/0012).
// Owner: see SocketCore, which implements it. Affinity: any thread, except where a member names another one.
// Cost: a virtual call, and mostly a lock of the socket: when a connection begins, is lost or ends, and for each
// subscription. Messages pass through share(), which is not a call.
class ConnectionOwner {
 public:
  ConnectionOwner(const ConnectionOwner&) = delete;
  ConnectionOwner& operator=(const ConnectionOwner&) = delete;

  [[nodiscard]] SocketShare& share() noexcept { return share_; }

  // Whether a connection with these options keeps only the newest message.
  [[nodiscard]] virtual bool conflates(const Options& options) const noexcept = 0;
  // Connections are plain bytes: STREAM, and ROUTER with the option router_raw.
  [[nodiscard]] virtual bool raw() const noexcept = 0;
  // The last message of a connection that we made (`outgoing`) or the peer made; empty: none.
  [[nodiscard]] virtual std::string last_message(const Options& options, bool outgoing) const = 0;
  [[nodiscard]] virtual Monitor& monitor() noexcept = 0;
  // Returns null if no authenticator is bound, or an error if the question cannot be sent. I/O thread.
  [[nodiscard]] virtual Result<std::unique_ptr<ZapRequest>> ask_authenticator(rt::Loop& loop,
                                                                              const ZapQuestion& question,
                                                                              ZapRequest::Done done) = 0;

  // The life of a connection, in this order and on the I/O thread: any number of ready and lost, then finished.
  // connection_ready() throws std::bad_alloc, with nothing changed.
  // returns false to refuse the peer
  [[nodiscard]] virtual bool connection_ready(Connection& connection, Bytes identity) = 0;
  virtual void connection_lost(Connection& connection) = 0;
  virtual void forget_descriptor(Connection& connection) noexcept = 0;  // before the stream is destroyed; idempotent
  virtual void connection_finished(Connection& connection) = 0;         // the owner must not use it afterwards
  // The socket was closed, and the connection still has messages for its peer, once a second or more often.
  virtual void connection_lingers(const std::string& /*endpoint*/, bool /*connected*/, Instant /*until*/) noexcept {}

  // The calling thread left bytes in a batch, and has not yet listed this socket for its next wait. Send lock.
  virtual void batch_begun() noexcept = 0;

  // With the read baton. Fails if the peer's request is too large, or if there is no memory.
  [[nodiscard]] virtual Result<void> handle_subscription(Connection& connection, bool subscribe,
                                                         const FilterView& topic) = 0;
  // With the read baton. Whether the socket joined the group.
  [[nodiscard]] virtual bool takes_group(Bytes /*group*/) noexcept { return true; }
  // From the socket at the other end of `link`; `end` is this socket's. Throws std::bad_alloc; then this end does not
  // have the subscription.
  virtual void handle_inproc_subscription(const InprocLink& link, int end, bool subscribe, const FilterView& topic) = 0;

 protected:
  ConnectionOwner(const SocketShare::Traits& traits, sync::WaitMode wait_mode) noexcept : share_(traits, wait_mode) {}
  ~ConnectionOwner() = default;

  SocketShare share_;
};

}  // namespace weft::msg
