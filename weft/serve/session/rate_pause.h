// SPDX-License-Identifier: MIT
#pragma once

#include "weft/base/time.h"
#include "weft/net/admit/token_bucket.h"
#include "weft/rt/loop/timer_wheel.h"

namespace weft::serve {

// RatePause: the message rate of one session: its bucket, and the timer that ends the pause of an empty one.
// Owner: a session, which keeps the limit. Affinity: one core. Cost: as net::TokenBucket; a timer for each pause.
class RatePause {
 public:
  // Takes the token of the next frame. Returns true if the bucket has none, and `resume` runs when it has. Returns
  // false, and takes no token, if a pause has begun already, or if there is no memory for a timer.
  [[nodiscard]] bool begins(const net::RateLimit& limit, rt::TimerWheel& timers, Instant now,
                            rt::TimerCallback resume) {
    if (timer_ || tokens_.try_take(limit, now)) {
      return false;
    }
    timer_ = timers.schedule(now + tokens_.wait(limit, now), resume);
    return static_cast<bool>(timer_);
  }
  void note_fired() noexcept { timer_ = {}; }
  void cancel(rt::TimerWheel& timers) noexcept { (void)timers.cancel(timer_); }

 private:
  net::TokenBucket tokens_;
  rt::TimerId timer_;
};

}  // namespace weft::serve
