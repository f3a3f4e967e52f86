// SPDX-License-Identifier: MIT
#include "weft/topic/subscription.h"

#include <utility>

#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"

namespace weft {

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

void Subscription::drain() noexcept {
  if (node_ != nullptr) {
    node_->drain(*core_);
  }
}

Result<TopicMessage> Subscription::next() { return next_until(kNever); }
Result<TopicMessage> Subscription::next_until(Instant deadline) {
  Result<TopicMessage> message = WEFT_TRY(topic::borrow(core_))->try_pop();
  if (!message && message.error() == Errc::would_block) {
    const auto node = node_;  // another thread may destroy the subscription while this one waits
    const auto core = core_;
    message = node->next_until(*core, deadline);
  }
  return message;
}
Result<TopicMessage> Subscription::try_next() { return WEFT_TRY(topic::borrow(node_))->try_next(*core_); }

Result<void> Subscription::add(std::string_view filter) {
  return WEFT_TRY(topic::borrow(node_))->add_text_filter(*core_, filter);
}
Result<void> Subscription::add(const Filter& filter) {
  return WEFT_TRY(topic::borrow(node_))->add_filter(*core_, filter);
}
Result<void> Subscription::add(const Result<Filter>& filter) {
  return filter ? add(*filter) : Result<void>(filter.error());
}
Result<void> Subscription::remove(std::string_view filter) {
  return WEFT_TRY(topic::borrow(node_))->remove_text_filter(*core_, filter);
}
Result<void> Subscription::remove(const Filter& filter) {
  return WEFT_TRY(topic::borrow(node_))->remove_filter(*core_, filter);
}
Result<void> Subscription::remove(const Result<Filter>& filter) {
  return filter ? remove(*filter) : Result<void>(filter.error());
}

std::uint64_t Subscription::missed() const noexcept { return core_ == nullptr ? 0 : core_->lost(); }
Result<int> Subscription::descriptor() { return WEFT_TRY(topic::borrow(core_))->descriptor(); }

}  // namespace weft
