// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>

#include "weft/base/result.h"
#include "weft/msg/socket.h"
#include "weft/sync/spin.h"
#include "weft/sys/thread.h"

namespace weft {

using sync::WaitMode;
using sys::ThreadOptions;

namespace msg {
class ContextCore;
}

struct ContextOptions {
  std::size_t sockets_max = 1023;
  // How blocked calls wait. The environment's WEFT_WAIT_MODE (adaptive, latency, eco) overrides the default.
  WaitMode wait_mode = default_wait_mode();
  ThreadOptions io_thread{};  // what the system refuses of it is left out

  [[nodiscard]] static WaitMode default_wait_mode() noexcept;
};

// Context: sockets that can reach each other over inproc, and the one thread that keeps their connections going.
// Owner: a move-only handle. Destruction closes every socket that is still open and waits until what they queued was
// delivered or their linger ended. Affinity: any thread. A forked child may close what it inherited, and nothing else.
class Context {
 public:
  explicit Context(const ContextOptions& options = {});
  Context(Context&&) noexcept = default;
  Context& operator=(Context&& other) noexcept;
  ~Context();

  // not_supported, too_many_sockets, terminated; closed when moved from.
  Result<Socket> socket(SocketType type);
  // Every call that waits, and every later call on a socket, fails with `terminated`; sockets can still be closed.
  void shut_down();
  void close();  // what destruction does; idempotent

 private:
  std::shared_ptr<msg::ContextCore> core_;
};

}  // namespace weft
