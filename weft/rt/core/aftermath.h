// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "weft/rt/loop/task_runner.h"

namespace weft::rt {

// Aftermath: the work that the messages of a core leave after they ran: jobs of the turn's end, jobs that they posted
// to their own loop, and coroutines that resume in the next turns. All of these may post. While a runtime drains, they
// count as one message of the core that has not run, so that a stop does not end between a message and the messages to
// which it leads in this way.
// Owner: the Core. Affinity: the core's thread; begun() and ended() any thread.
// Cost: nothing but while the runtime drains.
// Invariants:
//   1. An aftermath begins before the messages of a turn run. Until settle() has ended it, ended() < begun().
//   2. It ends in the turn in which every coroutine has resumed that was ready at the end of the messages' turn, and
//      each that became ready meanwhile, and in which the loop has run its mail: of these at most kTurnsMax turns,
//      because a coroutine may always be ready, and other threads may always post.
//   3. The first one begins with the core, so it covers the messages that ran before the core saw the drain.
class Aftermath final : private detail::Ready {
 public:
  static constexpr unsigned kTurnsMax = 16;

  explicit Aftermath(TaskRunner& runner) noexcept
      : Ready([](Ready& self) noexcept { static_cast<Aftermath&>(self).handle_mark(); }), runner_(runner) {}
  Aftermath(const Aftermath&) = delete;
  Aftermath& operator=(const Aftermath&) = delete;

  void begin() noexcept {  // before the messages of a turn run
    fresh_ = true;
    if (!open_) {
      open_ = true;
      add_one(begun_);
    }
  }
  // At the end of a turn, after its jobs. `mail`: jobs that were posted to the loop wait for its next turn.
  void settle(bool mail) noexcept {
    if (!open_) {
      return;
    }
    turns_ = fresh_ ? 0 : turns_ + 1;
    const bool may_wait = turns_ < kTurnsMax;
    if (runner_.has_ready() && may_wait) {
      put_mark();
    }
    fresh_ = false;
    if (!hooked() && !(mail && may_wait)) {
      open_ = false;
      add_one(ended_);
    }
  }
  // When the core ends: no message runs any longer.
  void end() noexcept {
    if (std::exchange(open_, false)) {
      add_one(ended_);
    }
  }

  // Partners of the stores in add_one(), and of Core::count(): a thread that sees a message's end sees the beginning of
  // the aftermath before it.
  [[nodiscard]] std::uint64_t begun() const noexcept { return begun_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_acquire); }

 private:
  // The mark is after the ready coroutines in the queue. When it runs, they have resumed.
  void put_mark() noexcept {
    if (hooked()) {
      again_ = true;
    } else {
      runner_.add(*this);
    }
  }
  void handle_mark() noexcept {
    if (std::exchange(again_, false)) {
      runner_.add(*this);
    }
  }
  static void add_one(std::atomic<std::uint64_t>& count) noexcept {  // one thread writes it
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  TaskRunner& runner_;
  bool open_ = true;    // an aftermath has begun and not ended
  bool fresh_ = true;   // messages ran in this turn
  bool again_ = false;  // coroutines became ready after the mark
  unsigned turns_ = 0;  // since messages ran
  std::atomic<std::uint64_t> begun_{1};
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace weft::rt
