// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "weft/rt/core/runtime.h"
#include "weft/sync/lock.h"

namespace weft::serve {

// Drain: finds the moment of a stop at which every core has handled its messages, and no message that they caused is
// under way, nor a job of a core's loop. Then a session can close without missing a frame of another one.
// Owner: a ServerRun. Affinity: each call its core's thread, or any thread when that has ended.
// Cost: a round is two jobs for each core. A drain of a quiet runtime takes one round.
// Invariants:
//   1. `over` is called once at most, when every core was drained after all messages and jobs posted before, and none
//      was posted meanwhile; or after kRoundsMax rounds, where others never cease to post.
//   2. Nothing waits, nothing is allocated.
class Drain {
 public:
  static constexpr unsigned kRoundsMax = 16;

  // check(core), on the core: whether it is drained. If not, note_drained() follows.
  Drain(rt::Runtime& runtime, std::function<bool(unsigned core)> check, std::function<void()> over);
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;
  ~Drain() = default;

  // The core has handled its messages, or takes no part any longer. `keep` outlives the jobs, and owns this.
  void note_drained(unsigned core, const std::shared_ptr<void>& keep) noexcept;

 private:
  enum class Stage : std::uint8_t {
    waiting,  // for a core that is not drained
    showing,  // each core shows its posts to the others
    passing,  // each core runs all messages and jobs that were posted to it before
    over,
  };
  struct Step final : rt::CoreJob {
    Step() noexcept;
    Drain* drain = nullptr;
    unsigned core = 0;
    std::shared_ptr<void> keep;  // while a core has the job
  };

  void run(unsigned core, const std::shared_ptr<void>& keep) noexcept;
  void give_steps(Stage stage, const std::shared_ptr<void>& keep) noexcept;
  [[nodiscard]] Stage begin(Stage stage) noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] Stage next() noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool all_drained() const noexcept WEFT_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t posted() const noexcept;

  rt::Runtime& runtime_;
  const std::function<bool(unsigned)> check_;
  const std::function<void()> over_;
  std::vector<Step> steps_;
  sync::StdMutex mutex_;
  std::vector<bool> drained_ WEFT_GUARDED_BY(mutex_);
  Stage stage_ WEFT_GUARDED_BY(mutex_) = Stage::waiting;
  std::size_t pending_ WEFT_GUARDED_BY(mutex_) = 0;   // steps of this stage that have not run
  std::uint64_t posted_ WEFT_GUARDED_BY(mutex_) = 0;  // messages and jobs of all cores when the round began
  unsigned rounds_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::serve
