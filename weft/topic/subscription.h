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

// Subscription: any number of filters, and one bounded queue for what matches any of them, once.
// Owner: a move-only value; destruction closes. It may outlive the handle.
// Affinity: any thread, also several at once; each message goes to one of them.
// Cost: next() is a lock and a move. A thread that waits reads the network itself.
// Time: the queue's policy acts while a thread waits at any subscription of the handle, and else within about 5 ms.
class Subscription {
 public:
  Subscription(Subscription&&) noexcept;
  Subscription& operator=(Subscription&&) noexcept;
  ~Subscription();
  void close() noexcept;  // idempotent; wakes every next(). Queued messages are dropped and counted

  // closed: the subscription or its handle; resource_exhausted: it ended, as Full::end says.
  Result<TopicMessage> next();
  Result<TopicMessage> next_until(Instant deadline);  // also timed_out
  Result<TopicMessage> try_next();                    // never waits: would_block

  // The text of a filter: a topic, or tokens (Filter::parse). To add a filter twice is to add it once.
  // invalid_argument; message_too_large; resource_exhausted; closed.
  Result<void> add(std::string_view filter);
  Result<void> add(const Filter& filter);
  Result<void> add(const Result<Filter>& filter);  // s.add(Filter::glob("news:*")): or the filter's error
  // invalid_argument: the subscription does not have it.
  Result<void> remove(std::string_view filter);
  Result<void> remove(const Filter& filter);
  Result<void> remove(const Result<Filter>& filter);

  // How many messages were lost so far: what TopicMessage::missed() told, and tells with the next ones.
  [[nodiscard]] std::uint64_t missed() const noexcept;
  // For event loops: readable while there may be a message. try_next() that returns would_block clears it. Valid as
  // long as the subscription. resource_exhausted.
  Result<int> descriptor();

 private:
  friend class Topics;
  Subscription(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::SubscriptionCore> core) noexcept;

  std::shared_ptr<topic::Node> node_;
  IntrusivePtr<topic::SubscriptionCore> core_;
};

}  // namespace weft
