// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string_view>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/channel.h"
#include "weft/topic/kept/kept_message.h"

namespace weft::topic {

class HubLink;

// DeliveryBase: what Delivery and AsyncDelivery share. After the first of ack(), retry() and reject() the others do
// nothing. None of them waits; one that the hub does not get, because it ends, is as if it had not been called.
class DeliveryBase : public KeptMessage {
 public:
  DeliveryBase(std::shared_ptr<HubLink> link, IntrusivePtr<KeptChannel> channel, KeptMessage message) noexcept;
  DeliveryBase(DeliveryBase&&) noexcept = default;
  DeliveryBase& operator=(DeliveryBase&&) noexcept = default;

  void ack() noexcept;
  // Deliver it again, to any member: after the time, or after the consumer's retry_waits.
  void retry(Duration after) noexcept;
  void retry() noexcept;
  void working() noexcept;                     // ack_wait begins anew
  void reject(std::string_view why) noexcept;  // never deliver it again

 protected:
  [[nodiscard]] Result<IntrusivePtr<Call>> confirm() noexcept;  // invalid_state: after ack(), retry(), reject()
  [[nodiscard]] static Result<void> confirmed(const Call& call, const Result<void>& result) noexcept;
  [[nodiscard]] const std::shared_ptr<HubLink>& link() const noexcept { return link_; }

 private:
  void send(OpKind kind, std::uint64_t second, std::string_view text) noexcept;

  std::shared_ptr<HubLink> link_;
  IntrusivePtr<KeptChannel> channel_;  // null: it was settled
};

}  // namespace weft::topic
