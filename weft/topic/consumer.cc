// SPDX-License-Identifier: MIT
#include "weft/topic/consumer.h"

#include "weft/topic/kept/hub_link.h"

namespace weft {

namespace {
constexpr Error kMoved(Errc::closed, "the consumer was moved from");
}

Result<void> Delivery::ack_confirmed() {
  const auto call = WEFT_TRY(confirm());
  return confirmed(*call, link()->run(call));
}

Consumer::Consumer(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::KeptChannel> channel) noexcept
    : link_(std::move(link)), channel_(std::move(channel)) {}
Consumer::Consumer(Consumer&&) noexcept = default;
Consumer& Consumer::operator=(Consumer&& other) noexcept {
  if (this != &other) {
    close();
    link_ = std::move(other.link_);
    channel_ = std::move(other.channel_);
  }
  return *this;
}
Consumer::~Consumer() { close(); }

void Consumer::close() noexcept {
  if (channel_ != nullptr) {
    link_->end(*channel_);
  }
}

Result<void> Consumer::wait_open() {
  return link_->wait(channel_->changed, kNever, [this] { return link_->opened(*channel_); });
}

Result<Delivery> Consumer::next() { return next_until(kNever); }
Result<Delivery> Consumer::next_until(Instant deadline) {
  if (channel_ == nullptr) {
    return kMoved;
  }
  auto message = link_->wait(channel_->changed, deadline, [this] { return link_->try_next(*channel_); });
  return message ? Result<Delivery>(Delivery(link_, channel_, *std::move(message))) : message.error();
}
Result<Delivery> Consumer::try_next() {
  if (channel_ == nullptr) {
    return kMoved;
  }
  link_->lock();
  auto message = link_->try_next(*channel_);
  link_->unlock();
  return message ? Result<Delivery>(Delivery(link_, channel_, *std::move(message))) : message.error();
}

}  // namespace weft
