// SPDX-License-Identifier: MIT
#include "weft/serve/server/stop_signals.h"

#include <algorithm>

#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/service_manager.h"

namespace weft::serve {

Result<void> StopSignals::run(Server& server, const StopOptions& options) {
  (void)sys::notify_service_manager("READY=1");
  (void)signals_.wait_until(kNever);
  (void)sys::notify_service_manager("STOPPING=1");
  server.announce_stop();
  if (options.lame_duck > Duration::zero()) {
    (void)signals_.wait_until(sys::now() + options.lame_duck);
  }
  Instant deadline = deadline_after(sys::now(), options.drain);
  server.begin_stop(deadline);
  constexpr Duration kLook = std::chrono::milliseconds(50);
  while (server.sessions() != 0 && sys::now() < deadline) {
    if (signals_.wait_until(std::min(deadline, sys::now() + kLook))) {
      deadline = Instant();
    }
  }
  return server.stop(deadline);
}

}  // namespace weft::serve
