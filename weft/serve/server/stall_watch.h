// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/runtime.h"
#include "weft/serve/session/log.h"
#include "weft/sys/thread.h"

namespace weft::serve {

// StallWatch: a thread that looks at what the cores do, and logs each turn that lasts for too long: which core, service
// and callback, which session. It looks twice in that time.
// Owner: a Server. Affinity: one thread. It may outlive the runtime.
// Cost: a thread that wakes twice in `after`; for each core a load.
class StallWatch {
 public:
  // resource_exhausted: no thread.
  [[nodiscard]] static Result<std::unique_ptr<StallWatch>> make(rt::Runtime& runtime, Duration after, LogSink log);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  ~StallWatch();

 private:
  struct Watched {
    unsigned core;
    std::shared_ptr<rt::Activity> activity;
    Instant told;  // the turn that was logged
  };

  StallWatch(Duration after, LogSink log) : after_(after), log_(std::move(log)) {}
  void run();
  void look(Instant now);
  void tell(const Watched& core, const rt::Activity::Busy& busy, Instant now) const noexcept;

  const Duration after_;
  const LogSink log_;
  std::vector<Watched> cores_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  sys::Thread thread_;
};

}  // namespace weft::serve
