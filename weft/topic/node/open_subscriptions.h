// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

#include "weft/base/intrusive_ptr.h"
#include "weft/sync/counter_block.h"
#include "weft/sync/lock.h"
#include "weft/topic/node/counters.h"
#include "weft/topic/node/subscription_core.h"

namespace weft::topic {

// OpenSubscriptions: the open subscriptions of a handle, with the counts of those that have ended.
// Owner: a node. Affinity: any thread. Cost: a lock; removal and the counts take a step for each subscription.
// Locks: its lock comes before that of a subscription.
class OpenSubscriptions {
 public:
  void add(const IntrusivePtr<SubscriptionCore>& subscription) {  // throws std::bad_alloc
    const sync::LockGuard lock(mutex_);
    open_.push_back(subscription);
  }
  // Does nothing if it was removed before.
  void remove(SubscriptionCore& subscription) noexcept {
    const sync::LockGuard lock(mutex_);
    const auto same = [&](const IntrusivePtr<SubscriptionCore>& each) { return each.get() == &subscription; };
    if (std::erase_if(open_, same) != 0) {
      subscription.add_counts(past_);
    }
  }
  // The messages of those that have ended can still be taken.
  void close_all(const Error& reason) noexcept {
    const sync::LockGuard lock(mutex_);
    for (const auto& each : open_) {
      if (each->status()) {
        each->close(reason);
      }
    }
  }
  [[nodiscard]] std::vector<IntrusivePtr<SubscriptionCore>> all() const {  // throws std::bad_alloc
    const sync::LockGuard lock(mutex_);
    return open_;
  }
  void add_counts(TopicsStatistics& into) const noexcept {
    const sync::LockGuard lock(mutex_);
    sync::add_counters(into, past_);
    for (const auto& each : open_) {
      each->add_counts(into);
    }
  }

 private:
  mutable sync::StdMutex mutex_;
  std::vector<IntrusivePtr<SubscriptionCore>> open_ WEFT_GUARDED_BY(mutex_);
  TopicsStatistics past_ WEFT_GUARDED_BY(mutex_);
};

}  // namespace weft::topic
