// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>

#include "weft/base/result.h"
#include "weft/msg/socket.h"
#include "weft/sync/lock.h"
#include "weft/topic/gate/gate.h"

namespace weft::topic {

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

  // Returns the reason of a missing connection, after the server's end the last one; ok: there is one, or the first
  // attempt has not ended. Any thread may call it.
  [[nodiscard]] std::function<Error()> missing() const;

 private:
  class Session;
  // ServersTrouble: the last reason, which the session writes.
  struct ServersTrouble {
    sync::StdMutex mutex;
    Error why WEFT_GUARDED_BY(mutex);
  };
  JetStreamServer();

  const std::shared_ptr<ServersTrouble> trouble_ = std::make_shared<ServersTrouble>();
  std::unique_ptr<rt::Runtime> runtime_;
  std::unique_ptr<Session> session_;  // the core's
};

}  // namespace weft::topic
