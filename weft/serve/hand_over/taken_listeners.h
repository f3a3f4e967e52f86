// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/fd.h"
#include "weft/sys/linux/service_manager.h"

namespace weft::serve {

// TakenListener: a listener of the older process: a socket, or one of each of its cores.
struct TakenListener {
  std::string name;              // ListenerOptions::name there
  std::vector<int> descriptors;  // for ListenerOptions::adopt_fds
};

// TakenListeners: the listening sockets that an older process of this program gave, see HandOver.
// Owner: the program, until confirm(). Destruction without it closes the connection, and the older process goes on.
// Affinity: one thread. It waits in the calls.
class TakenListeners {
 public:
  // No process at the path, or one that ends meanwhile: there are none, and the program listens by itself. Errors:
  // timed_out; not_permitted (the older process is of another user); protocol_error; those of the system.
  [[nodiscard]] static Result<TakenListeners> take(const std::string& path, Instant deadline);

  // The program owns the descriptors: it gives those of each listener to a listener of its own. In the order of the
  // names.
  [[nodiscard]] std::vector<TakenListener> listeners() const;
  // The same sockets one by one.
  [[nodiscard]] const std::vector<sys::PassedSocket>& sockets() const noexcept { return sockets_; }
  // This process serves. When the call returns, the older process accepts no more, or has ended. Without sockets
  // nothing happens. Errors: timed_out (the older process does not answer, and may still accept); those of the system.
  Result<void> confirm(Instant deadline);

 private:
  TakenListeners() = default;

  sys::Fd connection_;
  std::vector<sys::PassedSocket> sockets_;
};

}  // namespace weft::serve
