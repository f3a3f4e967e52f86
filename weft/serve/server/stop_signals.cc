// SPDX-License-Identifier: MIT
#include "weft/serve/server/stop_signals.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "weft/serve/server/server.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/service_manager.h"

namespace weft::serve {

StopSignals::StopSignals(std::function<void()> on_hang_up)
    : on_hang_up_(std::move(on_hang_up)), signals_(on_hang_up_ != nullptr) {}

void StopSignals::hang_up() noexcept {
  char state[64];  // systemd needs the time with the state (sd_notify(3), Type=notify-reload)
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(sys::now().time_since_epoch());
  (void)std::snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld", static_cast<long long>(now.count()));
  (void)sys::notify_service_manager(state);
  try {
    on_hang_up_();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the server serves on
  }
  (void)sys::notify_service_manager("READY=1");
}

Result<void> StopSignals::run(Server& server, const StopOptions& options) {
  (void)sys::notify_service_manager("READY=1");
  while (signals_.take_until(kNever) != sys::EndSignals::Taken::end) {
    hang_up();
  }
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
