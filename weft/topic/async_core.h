// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <utility>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/topic/node/node.h"

namespace weft::topic {

// A handle of a loop shares these with its calls that are under way. One count for all of it, and no atomic one: the
// calls are the loop's, as the handle is.
struct AsyncPublisherCore : Counted<AsyncPublisherCore> {
  AsyncPublisherCore(std::shared_ptr<Node> own_node, IntrusivePtr<PublisherCore> own) noexcept
      : node(std::move(own_node)), publisher(std::move(own)) {}
  const std::shared_ptr<Node> node;
  const IntrusivePtr<PublisherCore> publisher;
};
struct AsyncSubscriptionCore : Counted<AsyncSubscriptionCore> {
  AsyncSubscriptionCore(std::shared_ptr<Node> own_node, IntrusivePtr<SubscriptionCore> own) noexcept
      : node(std::move(own_node)), subscription(std::move(own)) {}
  const std::shared_ptr<Node> node;
  const IntrusivePtr<SubscriptionCore> subscription;
};

// The task of a call that is refused before it begins.
template <typename T>
[[nodiscard]] rt::Task<Result<T>> refused(Error error) {
  co_return error;
}

// Takes the next message of a subscription, or request of a service. `keep` keeps the node and the subscription; null:
// the awaiter does.
[[nodiscard]] rt::Task<Result<TopicMessage>> next_of(IntrusivePtr<AsyncSubscriptionCore> keep, Node* node,
                                                     SubscriptionCore* subscription);

}  // namespace weft::topic
