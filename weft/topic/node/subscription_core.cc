// SPDX-License-Identifier: MIT
#include "weft/topic/node/subscription_core.h"

#include <utility>

#include "weft/sync/lock.h"

namespace weft::topic {

void SubscriptionCore::wake() noexcept {
  // Relaxed: a hint for threads that spin; the lock orders the queue.
  has_input_.store(true, std::memory_order_relaxed);
  while (Sleeper* const sleeper = sleepers_.pop_front()) {
    sleeper->event->signal();
  }
  if (event_ && !event_set_) {
    event_set_ = true;
    event_->signal();
  }
  if (input_.awaited()) {
    input_.pulse();
  }
}

void SubscriptionCore::offer(TopicMessage&& message) noexcept {
  if (sink_) {
    {
      const sync::LockGuard lock(mutex_);
      if (closed_) {
        return;
      }
      ++sunk_;
    }
    sink_(std::move(message));
    return;
  }
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return;  // the match was made before the end, so it has no subscription in the index
  }
  const bool had_ended = queue_.ended();
  pushed(queue_.push(std::move(message)), had_ended);
}

void SubscriptionCore::offer(Message&& topic, Message&& body, Message&& headers,
                             const IntrusivePtr<const OwnFilter>& filter) noexcept {
  if (sink_ || full_ == Full::newest_per_topic) [[unlikely]] {
    offer(TopicMessage(std::move(topic), std::move(body), std::move(headers), filter));
    return;
  }
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return;
  }
  const bool had_ended = queue_.ended();
  pushed(queue_.push(TopicMessage::footprint(topic.size(), body.size(), headers.size()),
                     [&](TopicMessage& place) {
                       place.take(std::move(topic), std::move(body), std::move(headers), filter);
                       return true;
                     }),
         had_ended);
}

bool SubscriptionCore::offer_copy(const Message& topic, Bytes body, std::string_view headers,
                                  const IntrusivePtr<const OwnFilter>& filter) noexcept {
  if (sink_ || full_ == Full::newest_per_topic) {
    return false;
  }
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return true;  // as in offer()
  }
  const bool had_ended = queue_.ended();
  pushed(queue_.push(TopicMessage::footprint(topic.size(), body.size(), headers.size()),
                     [&](TopicMessage& place) { return place.fill(topic, body, headers, filter); }),
         had_ended);
  return true;
}

Result<TopicMessage> SubscriptionCore::try_pop() noexcept {
  const sync::LockGuard lock(mutex_);
  if (queue_.size() != 0) [[likely]] {
    return queue_.pop([](TopicMessage&& oldest) { return Result<TopicMessage>(std::in_place, std::move(oldest)); });
  }
  if (closed_) {
    return end_;
  }
  if (queue_.ended()) {
    return Error(Errc::resource_exhausted, "the subscription's queue was full, and its policy is to end");
  }
  has_input_.store(false, std::memory_order_relaxed);
  if (event_set_) {
    event_set_ = false;
    event_->drain();
  }
  return Errc::would_block;
}

bool SubscriptionCore::has_input() noexcept { return has_input_.load(std::memory_order_relaxed); }

void SubscriptionCore::close(const Error& reason) noexcept {
  const sync::LockGuard lock(mutex_);
  while (queue_.pop()) {
    ++dropped_closed_;
  }
  if (!closed_) {
    close_input(reason);
  }
}

void SubscriptionCore::end(const Error& reason) noexcept {
  const sync::LockGuard lock(mutex_);
  if (!closed_) {
    close_input(reason);
  }
}

void SubscriptionCore::close_input(const Error& reason) noexcept {
  closed_ = true;
  end_ = reason;
  wake();
}

Result<void> SubscriptionCore::status() noexcept {
  const sync::LockGuard lock(mutex_);
  return closed_ ? Result<void>(end_) : Result<void>();
}

std::uint64_t SubscriptionCore::lost() noexcept {
  const sync::LockGuard lock(mutex_);
  return queue_.lost().sum();
}

void SubscriptionCore::add_sleeper(Sleeper& sleeper) noexcept {
  const sync::LockGuard lock(mutex_);
  if (!sleeper.hooked()) {
    sleepers_.push_back(sleeper);
  }
}
void SubscriptionCore::remove_sleeper(Sleeper& sleeper) noexcept {
  const sync::LockGuard lock(mutex_);
  sleeper.unhook();
}

Result<int> SubscriptionCore::descriptor() noexcept {
  const sync::LockGuard lock(mutex_);
  if (!event_) {
    event_.emplace(WEFT_TRY(sys::EventFd::make()));
    event_->signal();  // there may be input already
    event_set_ = true;
  }
  return event_->fd();
}

void SubscriptionCore::add_counts(TopicsStatistics& into) noexcept {
  const sync::LockGuard lock(mutex_);
  const Lost& lost = queue_.lost();
  into.matched += queue_.pushed() + sunk_;
  into.delivered += queue_.popped() - dropped_closed_ + sunk_;
  into.dropped_oldest += lost.oldest;
  into.dropped_newest += lost.newest;
  into.dropped_conflated += lost.conflated;
  into.dropped_ended += lost.ended;
  into.dropped_no_memory += lost.no_memory;
  into.dropped_closed += dropped_closed_;
  into.queued += queue_.size();
}

}  // namespace weft::topic
