// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/rt/task/async_event.h"
#include "weft/sync/atomic_counted.h"
#include "weft/sync/mutex.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/node/counters.h"
#include "weft/topic/node/message_queue.h"

namespace weft::topic {

// SubscriptionCore: the queue of one subscription, and the calls that wait for it.
// Owner: the subscription's handle, the node's index, and the memos of a topic's matches.
// Affinity: any thread. Of an AsyncTopics handle: the loop's thread.
// Cost: offer() and try_pop() are a lock and a move; a system call wakes a thread that sleeps.
// Invariants:
//   1. After close() no message enters, and the queued ones are counted as dropped_closed.
//   2. A waiter that was added before a message entered is signalled.
class SubscriptionCore final : public sync::AtomicCounted<SubscriptionCore> {
 public:
  // Sleeper: a thread that waits for this subscription's input.
  struct Sleeper : ListHook {
    explicit Sleeper(sys::EventFd& own) noexcept : event(&own) {}
    sys::EventFd* event;
  };
  using Sink = std::function<void(TopicMessage&&)>;

  SubscriptionCore(Full full, std::size_t messages_max, std::size_t bytes_max)
      : full_(full), queue_(full, messages_max, bytes_max) {}
  // The subscription passes each message to the sink, on the thread that brings it, and queues none. The sink does not
  // wait, and never publishes.
  explicit SubscriptionCore(Sink sink)
      : full_(Full::drop_newest), queue_(Full::drop_newest, 1, 1), sink_(std::move(sink)) {}

  void offer(TopicMessage&& message) noexcept;
  // offer() of a message that is made from the parts in its place in the queue.
  void offer(Message&& topic, Message&& body, Message&& headers, const IntrusivePtr<const OwnFilter>& filter) noexcept;
  // offer() of a copy of the parts, which is made in its place in the queue. Returns false, without an effect, if the
  // caller must make the message.
  [[nodiscard]] bool offer_copy(const Message& topic, Bytes body, std::string_view headers,
                                const IntrusivePtr<const OwnFilter>& filter) noexcept;
  // Errors: would_block; closed; resource_exhausted (the subscription has ended).
  [[nodiscard]] Result<TopicMessage> try_pop() noexcept;
  [[nodiscard]] bool has_input() noexcept;   // or an end
  void close(const Error& reason) noexcept;  // idempotent: the first reason stays. Drops the queue
  void end(const Error& reason) noexcept;    // the same, without the messages in the queue, which can still be taken
  [[nodiscard]] std::uint64_t lost() noexcept;
  [[nodiscard]] Result<void> status() noexcept;  // the reason of close() or end()

  void add_sleeper(Sleeper& sleeper) noexcept;
  void remove_sleeper(Sleeper& sleeper) noexcept;
  // A descriptor that is readable while there may be input. A try_pop() that finds nothing clears it. Errors:
  // resource_exhausted.
  [[nodiscard]] Result<int> descriptor() noexcept;
  // The handle's own subscription, for requests and their answers; no filter of a program matches its topics.
  [[nodiscard]] bool internal() const noexcept { return sink_ != nullptr; }
  // Of an AsyncTopics handle.
  [[nodiscard]] rt::AsyncEvent& input() noexcept { return input_; }

  void add_counts(TopicsStatistics& into) noexcept;

  // --- guarded by the node's interest lock ---
  std::map<Filter, IntrusivePtr<const OwnFilter>> filters;
  std::uint64_t mark = 0;  // of the last match() that found this subscription

 private:
  // The lock is held since the caller's push.
  void pushed(bool was_pushed, bool had_ended) noexcept WEFT_REQUIRES(mutex_) {
    if (was_pushed || queue_.ended() != had_ended) {
      wake();
    }
  }
  void close_input(const Error& reason) noexcept WEFT_REQUIRES(mutex_);
  void wake() noexcept WEFT_REQUIRES(mutex_);

  const Full full_;
  sync::Mutex mutex_;
  MessageQueue queue_ WEFT_GUARDED_BY(mutex_);
  List<Sleeper> sleepers_ WEFT_GUARDED_BY(mutex_);
  std::optional<sys::EventFd> event_ WEFT_GUARDED_BY(mutex_);
  bool event_set_ WEFT_GUARDED_BY(mutex_) = false;
  std::atomic<bool> has_input_{false};
  bool closed_ WEFT_GUARDED_BY(mutex_) = false;
  Error end_ WEFT_GUARDED_BY(mutex_);
  std::uint64_t dropped_closed_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t sunk_ WEFT_GUARDED_BY(mutex_) = 0;
  rt::AsyncEvent input_;
  const Sink sink_;
};

}  // namespace weft::topic
