// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/serve/config/config.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/files/file_watch.h"
#include "weft/sys/thread.h"

namespace weft::serve::config {

// ConfigWatcher: reloads a Config after each change of its file, or of a file of TLS (certificates, keys, authorities):
// a write, or a rename over the file or over a symbolic link in its directory. A reload begins when the files have not
// changed for 100 ms, but 1 s after the first change at the latest: a certificate and its key are two files.
// Owner: the program, which destroys it before the Config, and not in `report`. The destructor waits for a reload.
// Affinity: one thread. Cost: a thread, which sleeps until a directory of the files changes.
class ConfigWatcher {
 public:
  // Called after each reload, on the watcher's thread. An exception is dropped.
  using Report = std::function<void(const Result<void>& result, const Problems& problems)>;

  // The first reload follows at once, for a change after Config::load(). Errors: those of sys::FileWatch::open();
  // resource_exhausted (no thread).
  [[nodiscard]] static Result<std::unique_ptr<ConfigWatcher>> start(Config& config, Report report = {});
  ConfigWatcher(const ConfigWatcher&) = delete;
  ConfigWatcher& operator=(const ConfigWatcher&) = delete;
  ~ConfigWatcher();

 private:
  enum class Seen : std::uint8_t { change, nothing, end };

  ConfigWatcher(Config& config, Report report, std::vector<std::string> paths, sys::FileWatch files, sys::EventFd stop)
      : config_(config),
        report_(std::move(report)),
        paths_(std::move(paths)),
        files_(std::move(files)),
        stop_(std::move(stop)) {}
  void run() noexcept;
  [[nodiscard]] Seen wait(Instant deadline) noexcept;
  void reload() noexcept;
  [[nodiscard]] bool watch_new_files();
  void report(const Result<void>& result, const Problems& problems) const noexcept;

  Config& config_;
  const Report report_;
  // Of the watcher's thread:
  std::vector<std::string> paths_;
  sys::FileWatch files_;  // of these paths

  sys::EventFd stop_;
  sys::Thread thread_;
};

}  // namespace weft::serve::config
