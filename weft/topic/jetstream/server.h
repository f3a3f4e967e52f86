// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>

#include "weft/base/result.h"
#include "weft/msg/socket.h"
#include "weft/topic/gate/gate.h"

namespace weft::topic {

class ServersTrouble;

// JetStreamServer: the server of a handle's kept topics in a fleet on NATS. It takes the ops that a hub takes, and
// carries them out on JetStream.
// Owner: the handle's HubLink. Destruction waits for up to a second until the last acknowledgements have left.
// Affinity: any thread; a core of its own has the socket and the connection. Cost: a thread, a connection. Idle: it
// wakes for PINGs, and for the heartbeats of open channels.
class JetStreamServer {
 public:
  // `router`: bound. It connects in the background; without a server ops wait for one. Errors: those of
  // nats::Client::open() and of net::TlsClient::make(); resource_exhausted.
  [[nodiscard]] static Result<std::unique_ptr<JetStreamServer>> start(Socket router, const GateOptions& options);
  JetStreamServer(const JetStreamServer&) = delete;
  JetStreamServer& operator=(const JetStreamServer&) = delete;
  ~JetStreamServer();

  // Returns why the servers carry out no request: the reason of a missing connection, after the server's end the last
  // one, or of a JetStream that does not answer; ok: none is known. Any thread may call it.
  [[nodiscard]] std::function<Error()> missing() const;

 private:
  class Session;
  JetStreamServer();

  const std::shared_ptr<ServersTrouble> trouble_;
  std::unique_ptr<rt::Runtime> runtime_;
  std::unique_ptr<Session> session_;  // the core's
};

}  // namespace weft::topic
