// SPDX-License-Identifier: MIT
#pragma once

#include <memory>

#include "weft/base/result.h"
#include "weft/msg/message/context_options.h"
#include "weft/msg/socket.h"

namespace weft {

namespace msg {
class ContextCore;
}

// Context: sockets that can reach each other over inproc, and the one I/O thread that serves their connections.
// Owner: a move-only handle. Destruction closes every open socket, and waits until their queued messages are delivered
// or their linger has ended.
// Affinity: any thread. A forked child may close an inherited context. Every other call of the child on it is an error.
class Context {
 public:
  explicit Context(const ContextOptions& options = {});
  Context(Context&&) noexcept = default;
  Context& operator=(Context&& other) noexcept;
  ~Context();

  // Errors: not_supported; too_many_sockets; terminated; closed (moved from).
  Result<Socket> socket(SocketType type);
  // Every call that waits, and every later call on a socket, fails with `terminated`. The program can still close
  // sockets.
  void shut_down();
  void close();  // the same as destruction; idempotent

  [[nodiscard]] const std::shared_ptr<msg::ContextCore>& core() const noexcept { return core_; }

 private:
  std::shared_ptr<msg::ContextCore> core_;
};

}  // namespace weft
