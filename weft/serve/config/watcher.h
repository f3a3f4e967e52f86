// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "weft/base/result.h"
#include "weft/serve/config/config.h"
#include "weft/sys/event_fd.h"
#include "weft/sys/files/file_watch.h"
#include "weft/sys/thread.h"

namespace weft::serve::config {

// Watcher: reloads a Config after each change of its file: a write, or a rename over the file or over a symbolic link
// in its directory. It does not notice changes of certificates: those need a reload() by the program.
// Owner: the program, which destroys it before the Config, and not in `report`. The destructor waits for a reload.
// Affinity: one thread. Cost: a thread, which sleeps until the directory changes.
class Watcher {
 public:
  // Called after each reload, on the watcher's thread. An exception is dropped.
  using Report = std::function<void(const Result<void>& result, const Problems& problems)>;

  // The first reload follows at once, for a change after Config::load(). Errors: those of sys::FileWatch::open();
  // resource_exhausted (no thread).
  [[nodiscard]] static Result<std::unique_ptr<Watcher>> start(Config& config, Report report = {});
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
  ~Watcher();

 private:
  Watcher(Config& config, Report report, sys::FileWatch file, sys::EventFd stop)
      : config_(config), report_(std::move(report)), file_(std::move(file)), stop_(std::move(stop)) {}
  void run() noexcept;
  void reload() noexcept;

  Config& config_;
  const Report report_;
  sys::FileWatch file_;  // of the watcher's thread
  sys::EventFd stop_;
  sys::Thread thread_;
};

}  // namespace weft::serve::config
