// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/sys/signals.h"

namespace weft::serve {

class Server;

struct StopOptions {
  // After the signal: readiness fails, and listeners still accept. So a load balancer that asks /readyz now and then
  // connects to no closed port. Zero: the stop begins at once.
  Duration lame_duck{};
  Duration drain = std::chrono::seconds(30);  // then Server::stop() with this deadline
};

// StopSignals: SIGINT and SIGTERM as the end of a server. It blocks both, so make it before the first thread starts:
// each thread inherits the mask.
// Owner: main(). Affinity: the thread that made it. Cost: nothing while it waits; 20 looks a second during a drain.
class StopSignals {
 public:
  // Sends the service manager READY=1, waits for a signal, sends STOPPING=1, and then does announce_stop(), the lame
  // duck and stop(). A further signal ends the lame duck, and one more the drain. Errors: those of Server::stop().
  Result<void> run(Server& server, const StopOptions& options = {});

 private:
  sys::EndSignals signals_;
};

}  // namespace weft::serve
