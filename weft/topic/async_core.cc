// SPDX-License-Identifier: MIT
// The queues of messages and requests that a coroutine takes.
#include "weft/topic/async_core.h"

#include <string_view>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/rt/task/task_time.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/kept/moved_from.h"

namespace weft {

namespace {
constexpr unsigned kBurst = 64;
}  // namespace

namespace topic {

rt::Task<Result<TopicMessage>> next_of([[maybe_unused]] IntrusivePtr<AsyncSubscriptionCore> keep, Node* node,
                                       SubscriptionCore* subscription) {
  thread_local unsigned burst = 0;
  while (true) {
    if (const bool cancelled = co_await rt::is_cancelled(); cancelled) {
      co_return rt::kCancelled;
    }
    if (++burst > kBurst) {
      burst = 0;
      (void)co_await rt::yield();
    }
    Result<TopicMessage> message = node->try_next(*subscription);
    if (message || message.error() != Errc::would_block) {
      co_return message;
    }
    node->flush();
    const Result<void> waited = co_await subscription->input().wait();
    burst = 0;
    if (!waited) {
      co_return waited.error();
    }
  }
}

}  // namespace topic

using topic::AsyncSubscriptionCore;

// --- AsyncRequestQueue ---

AsyncRequestQueue::AsyncRequestQueue(IntrusivePtr<AsyncSubscriptionCore> core, Message topic) noexcept
    : core_(std::move(core)), topic_(std::move(topic)) {}
AsyncRequestQueue::AsyncRequestQueue(AsyncRequestQueue&&) noexcept = default;
AsyncRequestQueue& AsyncRequestQueue::operator=(AsyncRequestQueue&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
    topic_ = std::move(other.topic_);
  }
  return *this;
}
AsyncRequestQueue::~AsyncRequestQueue() { close(); }
void AsyncRequestQueue::close() noexcept {
  if (core_ != nullptr) {
    core_->node->stop_serving(*core_->subscription);
  }
}
TakenRequest AsyncRequestQueue::taken(AsyncSubscriptionCore& core, const Message& topic, TopicMessage&& request) {
  return {core.node, topic.share(), std::move(request)};
}
rt::Task<Result<TakenRequest>> AsyncRequestQueue::next_taken(IntrusivePtr<AsyncSubscriptionCore> core, Message topic) {
  WEFT_CO_TRY(topic::borrow(core));
  Result<TopicMessage> request = co_await topic::next_of(core, core->node.get(), core->subscription.get());
  if (!request) {
    co_return request.error();
  }
  co_return taken(*core, topic, *std::move(request));
}
rt::Task<Result<TakenRequest>> AsyncRequestQueue::next() { return next_taken(core_, topic_.share()); }
Result<TakenRequest> AsyncRequestQueue::try_next() {
  auto* const core = WEFT_TRY(topic::borrow(core_));
  return taken(*core, topic_, WEFT_TRY(core->node->try_next(*core->subscription)));
}
Result<void> AsyncRequestQueue::status() const noexcept {
  const auto* const core = WEFT_TRY(topic::borrow(core_));
  return core->node->service_status(*core->subscription);
}

Result<AsyncRequestQueue> AsyncTopics::serve(std::string_view topic, const ServiceOptions& options) {
  WEFT_TRY(topic::borrow(node_));
  constexpr std::size_t kQueueMost = std::size_t{1} << 20;
  if (options.queue_max == 0 || options.queue_max > kQueueMost) {
    return Error(Errc::invalid_argument, "a queue of requests has 1 to 1,048,576 places");
  }
  return or_no_memory([&]() -> Result<AsyncRequestQueue> {
    Message name = WEFT_TRY(Message::copy_of(topic));
    auto requests = WEFT_TRY(node_->serve(topic, options.group, options.queue_max));
    return AsyncRequestQueue(make_intrusive<AsyncSubscriptionCore>(node_, std::move(requests)), std::move(name));
  });
}

}  // namespace weft
