// SPDX-License-Identifier: MIT
#include "weft/serve/config/watcher.h"

#include <algorithm>
#include <chrono>

#include "weft/sys/clock.h"
#include "weft/sys/poll.h"
#include "weft/sys/signals.h"

namespace weft::serve::config {

namespace {

constexpr Duration kRest = std::chrono::milliseconds(100);
constexpr Duration kRestLatest = std::chrono::seconds(1);

void add_files(const net::TlsServerOptions& tls, std::vector<std::string>& files) {
  for (const std::string* const file : {&tls.certificate_file, &tls.key_file, &tls.client_ca_file}) {
    if (!file->empty()) {
      files.push_back(*file);
    }
  }
}

// The file, and those of TLS, each once.
std::vector<std::string> files_of(const Config& config) {
  const std::shared_ptr<const Snapshot> now = config.current();
  std::vector<std::string> files{config.file()};
  add_files(now->admin_tls, files);
  for (const ListenerSettings& listener : now->listeners) {
    add_files(listener.tls, files);
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace

Result<std::unique_ptr<ConfigWatcher>> ConfigWatcher::start(Config& config, Report report) {
  std::vector<std::string> paths = files_of(config);
  auto files = WEFT_TRY(sys::FileWatch::open(paths));
  auto stop = WEFT_TRY(sys::EventFd::make());
  std::unique_ptr<ConfigWatcher> watcher(
      new ConfigWatcher(config, std::move(report), std::move(paths), std::move(files), std::move(stop)));
  const sys::SignalsBlocked blocked;
  watcher->thread_ =
      WEFT_TRY(sys::Thread::start([](void* self) { static_cast<ConfigWatcher*>(self)->run(); }, watcher.get()));
  return watcher;
}

ConfigWatcher::~ConfigWatcher() {
  stop_.signal();
  thread_.join();
}

void ConfigWatcher::run() noexcept {
  sys::set_up_thread("config", {});
  reload();
  for (;;) {
    if (wait(kNever) == Seen::end) {
      return;
    }
    const Instant latest = sys::now() + kRestLatest;
    Seen seen = Seen::change;
    while (seen == Seen::change && sys::now() < latest) {
      seen = wait(std::min(sys::now() + kRest, latest));
    }
    if (seen == Seen::end) {
      return;
    }
    reload();
  }
}

// Waits for a change until the deadline.
ConfigWatcher::Seen ConfigWatcher::wait(Instant deadline) noexcept {
  for (;;) {
    sys::PollFd fds[] = {{files_.fd(), sys::Interest::readable}, {stop_.fd(), sys::Interest::readable}};
    const auto ready = sys::poll_fds(fds, time_left(deadline, sys::now()));
    if (fds[1].got != sys::Interest::none || (!ready && ready.error() != Errc::interrupted)) {
      return Seen::end;
    }
    if (ready && *ready == 0) {
      return Seen::nothing;
    }
    if (ready && files_.take_change()) {
      return Seen::change;
    }
  }
}

void ConfigWatcher::reload() noexcept {
  try {
    do {
      Problems problems;
      const Result<void> result = config_.reload(&problems);
      report(result, problems);
    } while (watch_new_files());
  } catch (...) {  // NOLINT(bugprone-empty-catch): the next change is reloaded nevertheless
  }
}

// Returns whether other files are watched now: earlier changes of these caused no event.
bool ConfigWatcher::watch_new_files() {
  std::vector<std::string> paths = files_of(config_);
  if (paths == paths_) {
    return false;
  }
  auto files = sys::FileWatch::open(paths);
  if (!files) {
    Problems problems;
    problems.add({{config_.file()}, "", "its certificates are not watched: " + files.error().message()});
    report(files.error(), problems);
    return false;
  }
  files_ = *std::move(files);
  paths_ = std::move(paths);
  return true;
}

void ConfigWatcher::report(const Result<void>& result, const Problems& problems) const noexcept {
  if (report_) {
    try {
      report_(result, problems);
    } catch (...) {  // NOLINT(bugprone-empty-catch): dropped
    }
  }
}

}  // namespace weft::serve::config
