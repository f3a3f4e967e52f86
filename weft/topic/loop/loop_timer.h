// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <utility>

#include "weft/base/time.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/topic/loop/node_loop.h"

namespace weft::topic {

// LoopTimer: a timer of a handle's loop, and its wait, which may double from call to call.
// Owner: a node or a part of it, which stops the timer before its end. Affinity: the loop. Cost: that of TimerWheel.
class LoopTimer {
 public:
  // `longest`: the bound of lengthen().
  LoopTimer(NodeLoop& loop, rt::TimerCallback then, Duration first, Duration longest) noexcept
      : loop_(loop), then_(then), first_(first), longest_(longest), wait_(first) {}
  LoopTimer(NodeLoop& loop, rt::TimerCallback then, Duration wait) noexcept : LoopTimer(loop, then, wait, wait) {}
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;
  ~LoopTimer() = default;

  // A timer that runs already keeps its time. Returns false if there is no memory.
  bool start() noexcept { return start(wait_); }
  bool start(Duration wait) noexcept {
    if (!id_) {
      id_ = loop_.loop().timers().schedule(loop_.loop().now() + wait, {&LoopTimer::fire, this});
    }
    return runs();
  }
  void stop() noexcept {
    if (id_) {
      loop_.loop().timers().cancel(std::exchange(id_, {}));
    }
  }
  [[nodiscard]] bool runs() const noexcept { return static_cast<bool>(id_); }
  void lengthen() noexcept { wait_ = std::min(2 * wait_, longest_); }
  void shorten() noexcept { wait_ = first_; }  // to the first wait

 private:
  static void fire(void* self) {
    LoopTimer& timer = *static_cast<LoopTimer*>(self);
    timer.id_ = {};
    timer.then_.function(timer.then_.context);
  }

  NodeLoop& loop_;
  const rt::TimerCallback then_;
  const Duration first_;
  const Duration longest_;
  Duration wait_;
  rt::TimerId id_;
};

}  // namespace weft::topic
