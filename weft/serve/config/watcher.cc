// SPDX-License-Identifier: MIT
#include "weft/serve/config/watcher.h"

#include "weft/sys/poll.h"
#include "weft/sys/signals.h"

namespace weft::serve::config {

Result<std::unique_ptr<Watcher>> Watcher::start(Config& config, Report report) {
  auto file = WEFT_TRY(sys::FileWatch::open(config.file()));
  auto stop = WEFT_TRY(sys::EventFd::make());
  std::unique_ptr<Watcher> watcher(new Watcher(config, std::move(report), std::move(file), std::move(stop)));
  const sys::SignalsBlocked blocked;
  watcher->thread_ =
      WEFT_TRY(sys::Thread::start([](void* self) { static_cast<Watcher*>(self)->run(); }, watcher.get()));
  return watcher;
}

Watcher::~Watcher() {
  stop_.signal();
  thread_.join();
}

void Watcher::run() noexcept {
  sys::set_up_thread("config", {});
  reload();
  for (;;) {
    sys::PollFd fds[] = {{file_.fd(), sys::Interest::readable}, {stop_.fd(), sys::Interest::readable}};
    const auto ready = sys::poll_fds(fds, Duration(-1));
    if (fds[1].got != sys::Interest::none || (!ready && ready.error() != Errc::interrupted)) {
      return;
    }
    if (ready && file_.take_change()) {
      reload();
    }
  }
}

void Watcher::reload() noexcept {
  try {
    Problems problems;
    const Result<void> result = config_.reload(&problems);
    if (report_) {
      report_(result, problems);
    }
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next change is reloaded nevertheless
  }
}

}  // namespace weft::serve::config
