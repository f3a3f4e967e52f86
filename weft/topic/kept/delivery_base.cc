// SPDX-License-Identifier: MIT
#include "weft/topic/kept/delivery_base.h"

#include <algorithm>
#include <utility>

#include "weft/topic/kept/hub_link.h"
#include "weft/topic/kept/stream_core.h"

namespace weft::topic {

namespace {
constexpr std::uint64_t kSettingsWait = ~std::uint64_t{0};  // of a nak: the wait of the consumer's settings
constexpr std::size_t kReasonMax = 1024;                    // bytes
}  // namespace

DeliveryBase::DeliveryBase(std::shared_ptr<HubLink> link, IntrusivePtr<KeptChannel> channel,
                           KeptMessage message) noexcept
    : KeptMessage(std::move(message)), link_(std::move(link)), channel_(std::move(channel)) {}

void DeliveryBase::send(OpKind kind, std::uint64_t second, std::string_view text) noexcept {
  if (channel_ != nullptr) {
    link_->settle(*channel_, {.kind = kind,
                              .flags = OpFlags::quiet,
                              .id = channel_->id,
                              .number = sequence(),
                              .second = second,
                              .name = channel_->stream,
                              .key = channel_->consumer,
                              .message_id = InstanceText(stream_instance()),
                              .body = as_bytes(text)});
  }
}

void DeliveryBase::ack() noexcept {
  if (const IntrusivePtr<KeptChannel> channel = std::exchange(channel_, nullptr)) {
    link_->acknowledge(*channel, stream_instance(), sequence());
  }
}
void DeliveryBase::retry(Duration after) noexcept {
  send(OpKind::nak, static_cast<std::uint64_t>(std::max(after, Duration::zero()).count()), {});
  channel_ = nullptr;
}
void DeliveryBase::retry() noexcept {
  send(OpKind::nak, kSettingsWait, {});
  channel_ = nullptr;
}
void DeliveryBase::working() noexcept { send(OpKind::work, 0, {}); }
void DeliveryBase::reject(std::string_view why) noexcept {
  send(OpKind::reject, 0, why.substr(0, kReasonMax));
  channel_ = nullptr;
}

Result<IntrusivePtr<HubCall>> DeliveryBase::confirmation() const noexcept {
  if (channel_ == nullptr) {
    return Error(Errc::invalid_state, "the delivery was acknowledged, given back or rejected");
  }
  return HubLink::prepare({.kind = OpKind::ack,
                           .number = sequence(),
                           .name = channel_->stream,
                           .key = channel_->consumer,
                           .message_id = InstanceText(stream_instance())},
                          OnLoss::resend_change, sys::now() + kAnswerWait);
}

Result<IntrusivePtr<HubCall>> DeliveryBase::confirm() noexcept {
  auto call = confirmation();
  if (call) {
    settle();
  }
  return call;
}

// The answer has the number of messages that waited for the acknowledgement.
Result<void> DeliveryBase::confirmed(const HubCall& call, const Result<void>& result) noexcept {
  if (!result || call.answer.number != 0) {
    return result;
  }
  if (call.resent) {
    return Error(Errc::outcome_unknown, "the acknowledgement before had arrived, or another member has the message");
  }
  return Error(Errc::not_found, "ack_wait is over, and another member may have it");
}

}  // namespace weft::topic
