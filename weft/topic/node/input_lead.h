// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/socket.h"
#include "weft/rt/loop/loop.h"
#include "weft/sync/lock.h"
#include "weft/sync/spin.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/loop/loop_timer.h"
#include "weft/topic/loop/node_loop.h"
#include "weft/topic/node/pump.h"
#include "weft/topic/node/subscription_core.h"

namespace weft::topic {

// InputLead: the reader of a handle's XSUB: a thread that waits in next(), the leader, one at a time; without a leader
// the handle's loop. So no thread stands between a waiting subscriber and the network, and subscriptions whose threads
// are busy get their policy nevertheless.
// Owner: a node. Affinity: any thread, except where a line names the loop. Cost: a wait is a spin, then a poll.
// Locks: the followers' comes after no other one, and before none.
// Invariant: while a subscription has a waiting thread, one thread reads, or the loop does.
class InputLead final : rt::Watcher {
 public:
  InputLead(NodeLoop& loop, Socket& in, Pump& pump) noexcept : loop_(loop), in_(in), pump_(pump) {}
  InputLead(const InputLead&) = delete;
  InputLead& operator=(const InputLead&) = delete;
  ~InputLead() = default;

  [[nodiscard]] Result<void> begin();  // before the loop runs. Errors: those of Loop::watch()
  void end() noexcept;                 // loop, or after its end
  // Reads a turn's messages, and requests another turn if the XSUB may have more. Returns their number.
  unsigned read_turn();
  // For an event loop of the program, which reads instead of the handle's loop while it calls at least once a tick.
  unsigned take_input();

  [[nodiscard]] Result<TopicMessage> try_next(SubscriptionCore& subscription);
  [[nodiscard]] Result<TopicMessage> next_until(SubscriptionCore& subscription, Instant deadline);

 private:
  // Of AsyncTopics, as many as a coroutine takes before it yields: it takes the messages of a turn in that turn, while
  // it is in the cache, and queues grow only for subscriptions that are slow.
  static constexpr unsigned kMostOfSharedLoop = 64;
  static constexpr Duration kTick = std::chrono::milliseconds(5);

  void handle_event(const sys::PollEvent& event) override;
  static void tick(void* self);
  void watch();
  void unwatch() noexcept;
  void wait(SubscriptionCore& subscription, sys::EventFd& event, Instant deadline);
  void lead_ended() noexcept;
  void promote() noexcept;

  NodeLoop& loop_;
  Socket& in_;
  Pump& pump_;
  std::atomic<bool> led_{false};  // a waiting thread reads
  std::atomic<std::uint64_t> leads_{0};
  std::atomic<bool> dormant_{false};  // the loop leaves the XSUB to leaders until one of them ends
  sync::SpinBudget spin_;
  sync::StdMutex mutex_;
  List<SubscriptionCore::Sleeper> followers_ WEFT_GUARDED_BY(mutex_);
  // The loop's.
  rt::Loop::WatchId watch_ = 0;
  std::uint64_t leads_seen_ = 0;
  LoopTimer tick_{loop_, {&InputLead::tick, this}, kTick};
};

// The event on which the calling thread sleeps. Errors: resource_exhausted.
[[nodiscard]] Result<sys::EventFd*> thread_event();

}  // namespace weft::topic
