// SPDX-License-Identifier: MIT
#include "weft/topic/subscription.h"

#include <utility>

#include "weft/topic/node/node.h"

namespace weft {

namespace {
constexpr Error kSubscriptionMoved(Errc::closed, "the subscription was moved from");
}

Subscription::Subscription(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::SubscriptionCore> core) noexcept
    : node_(std::move(node)), core_(std::move(core)) {}
Subscription::Subscription(Subscription&&) noexcept = default;
Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    close();
    node_ = std::move(other.node_);
    core_ = std::move(other.core_);
  }
  return *this;
}
Subscription::~Subscription() { close(); }

void Subscription::close() noexcept {
  if (node_ != nullptr) {
    node_->unsubscribe(*core_);
  }
}

Result<TopicMessage> Subscription::next() { return next_until(kNever); }
Result<TopicMessage> Subscription::next_until(Instant deadline) {
  if (node_ == nullptr) {
    return kSubscriptionMoved;
  }
  Result<TopicMessage> message = core_->try_pop();
  if (!message && message.error() == Errc::would_block) {
    const auto node = node_;  // another thread may destroy the subscription while this one waits
    const auto core = core_;
    message = node->next_until(*core, deadline);
  }
  return message;
}
Result<TopicMessage> Subscription::try_next() {
  return node_ == nullptr ? Result<TopicMessage>(kSubscriptionMoved) : node_->try_next(*core_);
}

Result<void> Subscription::add(std::string_view filter) {
  return node_ == nullptr ? Result<void>(kSubscriptionMoved) : node_->add_text_filter(*core_, filter);
}
Result<void> Subscription::add(const Filter& filter) {
  return node_ == nullptr ? Result<void>(kSubscriptionMoved) : node_->add_filter(*core_, filter);
}
Result<void> Subscription::add(const Result<Filter>& filter) {
  return filter ? add(*filter) : Result<void>(filter.error());
}
Result<void> Subscription::remove(std::string_view filter) {
  return node_ == nullptr ? Result<void>(kSubscriptionMoved) : node_->remove_text_filter(*core_, filter);
}
Result<void> Subscription::remove(const Filter& filter) {
  return node_ == nullptr ? Result<void>(kSubscriptionMoved) : node_->remove_filter(*core_, filter);
}
Result<void> Subscription::remove(const Result<Filter>& filter) {
  return filter ? remove(*filter) : Result<void>(filter.error());
}

std::uint64_t Subscription::missed() const noexcept { return core_ == nullptr ? 0 : core_->lost(); }
Result<int> Subscription::descriptor() {
  return core_ == nullptr ? Result<int>(kSubscriptionMoved) : core_->descriptor();
}

}  // namespace weft
