// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "weft/base/filter.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/node/topic_message.h"

namespace weft {

namespace topic {
class Node;
class SubscriptionCore;
}  // namespace topic

// Subscription: any number of filters, and one bounded queue. A message that matches several filters enters the queue
// once.
// Owner: a move-only value; destruction closes. It may outlive the handle.
// Affinity: any thread, also several at once. Each message goes to one of them.
// Cost: next() is a lock and a move. A thread that waits reads the network itself.
// Time: the queue's policy acts while a thread waits at any subscription of the handle, otherwise within about 5 ms.
class Subscription {
 public:
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;
  ~Subscription();
  void close() noexcept;  // idempotent; wakes every next(); drops and counts the queued messages
  void drain() noexcept;  // the same, but next() returns the queued messages first

  // Errors: closed (the subscription or its handle); resource_exhausted (the subscription ended, see Full::end).
  Result<TopicMessage> next();
  Result<TopicMessage> next_until(Instant deadline);  // fails with timed_out, too
  Result<TopicMessage> try_next();                    // never waits; fails with would_block

  // The text of a filter is a topic or tokens (Filter::parse). Adding a filter twice is the same as adding it once.
  // Errors: invalid_argument; message_too_large; resource_exhausted; closed.
  Result<void> add(std::string_view filter);
  Result<void> add(const Filter& filter);
  Result<void> add(const Result<Filter>& filter);  // s.add(Filter::glob("news:*")); returns the filter's error
  // Fails with invalid_argument if the subscription does not have the filter.
  Result<void> remove(std::string_view filter);
  Result<void> remove(const Filter& filter);
  Result<void> remove(const Result<Filter>& filter);

  // Returns the number of messages lost so far: the sum that TopicMessage::missed() has returned, and returns with the
  // next messages.
  [[nodiscard]] std::uint64_t missed() const noexcept;
  // For event loops: a descriptor that is readable while there may be a message. A try_next() that returns would_block
  // clears it. The descriptor is valid as long as the subscription. Errors: resource_exhausted.
  Result<int> descriptor();

 private:
  friend class Topics;
  Subscription(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::SubscriptionCore> core) noexcept;

  std::shared_ptr<topic::Node> node_;
  IntrusivePtr<topic::SubscriptionCore> core_;
};

}  // namespace weft
