// SPDX-License-Identifier: MIT
#include "weft/topic/kept/channel_end.h"

#include <utility>

#include "weft/sync/lock.h"
#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/moved_from.h"

namespace weft::topic {

ChannelEnd& ChannelEnd::operator=(ChannelEnd&& other) noexcept {
  if (this != &other) {
    close();
    link_ = std::move(other.link_);
    channel_ = std::move(other.channel_);
  }
  return *this;
}

void ChannelEnd::close() noexcept {
  if (channel_ != nullptr) {
    link_->end(*channel_);
  }
}

Result<KeptMessage> ChannelEnd::wait_next(const Held& held, Instant deadline) {
  WEFT_TRY(borrow(held.channel));
  auto message = held.link->wait(held.channel->changed, deadline,
                                 [&] { return held.link->in_lock(), held.link->try_next(*held.channel); });
  if (!message && message.error() == Errc::timed_out && held.channel->counted()) {
    const sync::LockGuard lock(held.link->mutex());
    auto begun = held.link->take_begun(*held.channel);
    return begun ? std::move(begun) : std::move(message);
  }
  return message;
}

Result<std::optional<KeptMessage>> ChannelEnd::wait_next_stored(const Held& held) {
  WEFT_TRY(borrow(held.channel));
  return held.link->wait(held.channel->changed, kNever,
                         [&] { return held.link->in_lock(), held.link->try_next_stored(*held.channel); });
}

Result<KeptMessage> ChannelEnd::try_take() {
  auto* const channel = WEFT_TRY(borrow(channel_));
  const sync::LockGuard lock(link_->mutex());
  auto message = link_->try_next(*channel, HubLink::Count::sent);
  if (!message && message.error() == Errc::would_block) {
    channel->changed.found_nothing();
    link_->flush_sent();  // the caller is about to wait
  }
  return message;
}

Result<int> ChannelEnd::descriptor() {
  auto* const channel = WEFT_TRY(borrow(channel_));
  const sync::LockGuard lock(link_->mutex());
  return channel->changed.descriptor();
}

rt::Task<Result<KeptMessage>> ChannelEnd::next_task(std::shared_ptr<HubLink> link, IntrusivePtr<KeptChannel> channel) {
  WEFT_CO_TRY(borrow(channel));
  const auto take = [self = link.get(), raw = channel.get()] { return self->in_lock(), self->try_next(*raw); };
  Result<KeptMessage> taken = co_await HubLink::wait_task<KeptMessage>(link, &channel->changed, take, channel);
  if (!taken) {  // cancelled, perhaps while the hub counted a delivery
    const sync::LockGuard lock(link->mutex());
    link->give_back_begun(*channel);
  }
  co_return taken;
}

rt::Task<Result<std::optional<KeptMessage>>> ChannelEnd::next_stored_task(std::shared_ptr<HubLink> link,
                                                                          IntrusivePtr<KeptChannel> channel) {
  using Stored = std::optional<KeptMessage>;
  WEFT_CO_TRY(borrow(channel));
  const auto take = [self = link.get(), raw = channel.get()] { return self->in_lock(), self->try_next_stored(*raw); };
  Result<Stored> taken = co_await HubLink::wait_task<Stored>(link, &channel->changed, take, channel);
  co_return taken;
}

bool ChannelEnd::took_all_stored() const noexcept {
  if (channel_ == nullptr) {
    return false;
  }
  const sync::LockGuard lock(link_->mutex());
  return channel_->live();
}

}  // namespace weft::topic
