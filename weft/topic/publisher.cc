// SPDX-License-Identifier: MIT
#include "weft/topic/publisher.h"

#include <utility>

#include "weft/topic/fleet_calls.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/node/node.h"

namespace weft {

Publisher::Publisher(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::PublisherCore> core,
                     PublisherOptions options) noexcept
    : node_(std::move(node)), core_(std::move(core)), options_(options) {}
Publisher::Publisher(Publisher&&) noexcept = default;
Publisher& Publisher::operator=(Publisher&&) noexcept = default;
Publisher::~Publisher() = default;

Result<void> Publisher::publish(Bytes body, const Headers& headers) {
  auto* const node = WEFT_TRY(topic::borrow(node_));
  return options_.when_full == WhenFull::drop ? node->publish(*core_, body, headers.block(), false)
                                              : publish_until(kNever, body, headers);
}
Result<void> Publisher::publish_until(Instant deadline, Bytes body, const Headers& headers) {
  const Result<void> published = try_publish(body, headers);
  if (published || published.error() != Errc::would_block) {
    return published;
  }
  const auto node = node_;  // another thread may destroy the publisher while this one waits
  const auto core = core_;
  return node->publish_until(*core, body, headers.block(), deadline);
}
Result<void> Publisher::try_publish(Bytes body, const Headers& headers) {
  return WEFT_TRY(topic::borrow(node_))->publish(*core_, body, headers.block(), true);
}

Result<std::size_t> Publisher::wait_subscribers(std::size_t count, Instant deadline) {
  const auto node = WEFT_TRY(topic::share(node_));
  const auto core = core_;
  topic::SubscriberCount call(*node, *core, count, deadline);
  return topic::wait_for_fleet(*node, call);
}

std::string_view Publisher::topic() const noexcept {
  return core_ == nullptr ? std::string_view() : core_->name.text();
}

}  // namespace weft
