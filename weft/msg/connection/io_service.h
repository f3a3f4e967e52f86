// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "weft/rt/loop/loop.h"
#include "weft/sync/call_list.h"

namespace weft::msg {

class Session;

// IoService: the guarantee of progress. Its thread connects and shakes hands, keeps time, reads for sockets whose
// threads are elsewhere, and flushes what senders left in a batch. Owner: the context. Affinity: arm(),
// resume_reading() and request_take_down() any thread; the rest its own thread. Invariants:
//   (1) An armed session is looked at at once after a rest, else when the nap ends, until it has nothing left.
//   (2) With no session armed or watched, and no timer, the thread sleeps without a time-out.
class IoService final : private rt::TurnHook {
 public:
  static Result<std::unique_ptr<IoService>> make(const sys::ThreadOptions& thread_options);
  ~IoService();

  [[nodiscard]] rt::Loop& loop() noexcept { return *loop_; }

  void arm(Session& session) noexcept;  // with the session's write baton; once until the session is dropped
  void resume_reading(std::shared_ptr<Session> session) noexcept;
  void request_take_down(std::shared_ptr<Session> session);

  // Own thread.
  void watch_app(Session& session) { watched_.push_back(&session); }
  void forget(Session& session) noexcept;  // before the session dies

 private:
  static constexpr Duration kNap = std::chrono::microseconds(100);
  static constexpr Duration kNapLongest = std::chrono::microseconds(250);  // while senders flush by themselves
  static constexpr std::uint32_t kLookUs = 3;                              // twice while a sender sends
  static constexpr Duration kWatchEvery = std::chrono::milliseconds(10);

  explicit IoService(std::unique_ptr<rt::Loop> loop) noexcept : loop_(std::move(loop)) {}
  Instant handle_turn(Instant now) override;
  [[nodiscard]] bool has_work() const noexcept override {
    return incoming_.load(std::memory_order_relaxed) != nullptr || !resumed_.empty();
  }
  [[nodiscard]] bool may_sleep() noexcept override { return resumed_.empty(); }
  void collect_armed() noexcept;
  void run_flushes(Instant now, bool only_bursts);
  void flush_bursts(Instant now);
  void run_watches(Instant now);

  std::unique_ptr<rt::Loop> loop_;
  std::atomic<Session*> incoming_{nullptr};  // armed, newest first
  sync::CallList<std::shared_ptr<Session>> resumed_;
  std::vector<Session*> armed_;
  std::vector<Session*> watched_;
  Duration nap_ = kNap;
  Instant next_flush_ = kNever;
  Instant next_watch_ = kNever;
};

}  // namespace weft::msg
