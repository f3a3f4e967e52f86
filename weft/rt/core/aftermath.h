// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "weft/rt/loop/task_runner.h"

namespace weft::rt {

// Aftermath: the work that the messages of a core leave after they ran: jobs of the turn's end, jobs that they posted
// to a loop, and coroutines that resume in the next turns. All of these may post. While a runtime drains, they count as
// one message of the core that has not run, and each job in a loop's mailbox counts as a message to that core. So a
// stop does not end between a message and the messages to which it leads in this way.
// Owner: the Core. Affinity: the core's thread; begun(), ended() and mail_done() any thread.
// Cost: nothing but while the runtime drains.
// Invariants:
//   1. An aftermath begins before the messages of a turn run. Until settle() has ended it, ended() < begun().
//   2. It ends in the turn in which every coroutine has resumed that was ready at the end of the messages' turn, and
//      each that became ready meanwhile.
//   3. The first one begins with the core, so it covers the messages that ran before the core saw the drain.
//   4. mail_done() counts a job after its aftermath has begun. The aftermath of mail is like that of a message.
//   5. Since the last message ran, at most kTurnsMax turns are waited for, because a coroutine may always be ready, and
//      jobs may always post jobs. From then on neither the mail nor the coroutines of the core count.
class Aftermath final : private detail::Ready {
 public:
  static constexpr unsigned kTurnsMax = 16;

  explicit Aftermath(TaskRunner& runner) noexcept
      : Ready([](Ready& self) noexcept { static_cast<Aftermath&>(self).handle_mark(); }), runner_(runner) {}
  Aftermath(const Aftermath&) = delete;
  Aftermath& operator=(const Aftermath&) = delete;

  void begin() noexcept {  // before the messages of a turn run
    fresh_ = true;
    if (mail_done_.load(std::memory_order_relaxed) == kUncounted) {
      mail_done_.store(mail_, std::memory_order_release);
    }
    open();
  }
  // At the end of a turn, after its jobs. `mail`: Loop::mail_taken().
  void settle(std::uint64_t mail) noexcept {
    if (mail_ != mail) {
      mail_ = mail;
      open();
    }
    if (open_) {
      turns_ = fresh_ ? 0 : turns_ + 1;
    }
    const bool may_wait = turns_ < kTurnsMax;
    if (open_ && runner_.has_ready() && may_wait) {
      put_mark();
    }
    fresh_ = false;
    mail_done_.store(may_wait ? mail_ : kUncounted, std::memory_order_release);
    if (!hooked()) {
      end_open();
    }
  }
  // When the core ends: neither a message nor a job of its loop runs any longer.
  void end() noexcept {
    mail_done_.store(kUncounted, std::memory_order_release);
    end_open();
  }

  // Partners of the stores in add_one(), those of mail_done_, and of Core::count(): a thread that sees a message's end
  // sees the beginning of the aftermath before it.
  [[nodiscard]] std::uint64_t begun() const noexcept { return begun_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_acquire); }
  // The part of Loop::mailed() that has been done. Returns null if the core's mail does not count.
  [[nodiscard]] std::optional<std::uint64_t> mail_done() const noexcept {
    const std::uint64_t done = mail_done_.load(std::memory_order_acquire);
    return done == kUncounted ? std::nullopt : std::optional(done);
  }

 private:
  static constexpr std::uint64_t kUncounted = ~std::uint64_t{0};

  void open() noexcept {
    if (!std::exchange(open_, true)) {
      add_one(begun_);
    }
  }
  void end_open() noexcept {
    if (std::exchange(open_, false)) {
      add_one(ended_);
    }
  }
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
  bool open_ = true;        // an aftermath has begun and not ended
  bool fresh_ = true;       // messages ran in this turn
  bool again_ = false;      // coroutines became ready after the mark
  unsigned turns_ = 0;      // since messages ran
  std::uint64_t mail_ = 0;  // Loop::mail_taken() at the end of the last turn
  std::atomic<std::uint64_t> mail_done_{0};
  std::atomic<std::uint64_t> begun_{1};
  std::atomic<std::uint64_t> ended_{0};
};

}  // namespace weft::rt
