// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <set>

#include "weft/base/no_memory.h"
#include "weft/msg/message/peer_properties.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/topic/loop/loop_timer.h"

namespace weft::topic {

// ConnectionSweep: when to forget the handles whose connections have ended. A connection is gone when nothing refers to
// it any more: its messages that wait to be read do. So the sweeps repeat, each time after four times as long, up to
// two seconds, as long as one of the ended connections was known at the last one.
// Owner: a node. Affinity: the loop. Cost: a set's entry for each ended connection.
class ConnectionSweep {
 public:
  ConnectionSweep(NodeLoop& loop, rt::TimerCallback sweep) noexcept : timer_(loop, sweep, kFirst) {}

  // A connection ended, perhaps the one of the peer; 0: unknown. The caller sweeps now.
  void restart(msg::PeerId peer) noexcept {
    (void)or_no_memory([&]() -> Result<void> {
      if (peer != 0) {
        ended_.insert(peer);
      }
      return {};
    });
    wait_ = kFirst;
  }
  void schedule() noexcept {  // after a sweep
    timer_.stop();
    // One that is gone by now may have been known during the sweep.
    const auto gone = std::erase_if(ended_, [](msg::PeerId peer) { return !msg::is_known(peer); });
    if (wait_ <= kLast || gone != 0 || !ended_.empty()) {
      const Duration wait = std::min(wait_, kLast);
      timer_.start(wait);
      wait_ = std::max(wait_, 4 * wait);
    }
  }
  void stop() noexcept { timer_.stop(); }

 private:
  static constexpr Duration kFirst = std::chrono::milliseconds(5);
  static constexpr Duration kLast = std::chrono::seconds(2);

  LoopTimer timer_;
  Duration wait_{0};
  std::set<msg::PeerId> ended_;
};

}  // namespace weft::topic
