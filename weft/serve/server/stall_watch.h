// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/core/runtime.h"
#include "weft/rt/loop/activity.h"
#include "weft/serve/session/log.h"
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sys/thread.h"

namespace weft::serve {

// StallWatch: a thread that checks the work of the cores, and logs each turn that lasts too long: core, service,
// callback and session. It checks twice in that time.
// Owner: a Server. Affinity: one thread. It may outlive the runtime.
// Cost: a thread that wakes twice in `after` while the cores have turns; for each core a load, and a lock in one turn
// between two looks. The thread sleeps without a limit when no core had a turn for `after`; the next turn wakes it.
class StallWatch final : private rt::Activity::Bell {
 public:
  // `stalled`: called in the watch's thread after turns were logged; does not throw. Fails with resource_exhausted if
  // there is no thread.
  [[nodiscard]] static Result<std::unique_ptr<StallWatch>> make(rt::Runtime& runtime, Duration after, LogSink log,
                                                                std::function<void()> stalled = nullptr);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  ~StallWatch();
  [[nodiscard]] bool sleeps() const;  // without a limit; any thread

 private:
  struct Watched {
    unsigned core;
    std::shared_ptr<rt::Activity> activity;
    Instant told;  // the turn that was logged
  };

  StallWatch(Duration after, LogSink log, std::function<void()> stalled)
      : after_(after), log_(std::move(log)), stalled_(std::move(stalled)) {}
  void ring() noexcept override;
  void run();
  [[nodiscard]] bool look(Instant now);  // whether a core has a turn
  void tell(const Watched& core, const rt::Activity::Busy& busy, Instant now) const noexcept;

  const Duration after_;
  const LogSink log_;
  const std::function<void()> stalled_;
  std::vector<Watched> cores_;
  mutable sync::StdMutex mutex_;
  sync::Condition changed_;
  bool ending_ WEFT_GUARDED_BY(mutex_) = false;
  bool rung_ WEFT_GUARDED_BY(mutex_) = false;  // a core began a turn
  bool sleeps_ WEFT_GUARDED_BY(mutex_) = false;
  sys::Thread thread_;
};

}  // namespace weft::serve
