// SPDX-License-Identifier: MIT
#pragma once

#include <chrono>
#include <functional>

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

// StopSignals: SIGINT and SIGTERM as the end of a server, and SIGHUP as a call of the program. It blocks them, so make
// it before the first thread starts: each thread inherits the mask.
// Owner: main(). Affinity: the thread that made it. Cost: nothing while it waits; 20 looks a second during a drain.
class StopSignals {
 public:
  StopSignals() = default;
  // While the server serves, run() calls the function for a SIGHUP, on its thread: for a program that reads its files
  // again. The service manager gets RELOADING=1 before and READY=1 after. Several signals before a call are one. An
  // exception of the function is dropped. After a signal to stop SIGHUP does nothing.
  explicit StopSignals(std::function<void()> on_hang_up);

  // Sends the service manager READY=1, waits for a signal, sends STOPPING=1, and then does announce_stop(), the lame
  // duck and stop(). A further signal ends the lame duck, and one more the drain. Errors: those of Server::stop().
  Result<void> run(Server& server, const StopOptions& options = {});

 private:
  void hang_up() noexcept;

  std::function<void()> on_hang_up_;
  sys::EndSignals signals_;
};

}  // namespace weft::serve
