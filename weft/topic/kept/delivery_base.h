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

// DeliveryBase: the common part of Delivery and AsyncDelivery. After the first of ack(), retry() and reject() the
// others have no effect. None of them waits. A call that the hub never receives, because it ends, has no effect.
class DeliveryBase : public KeptMessage {
 public:
  DeliveryBase(std::shared_ptr<HubLink> link, IntrusivePtr<KeptChannel> channel, KeptMessage message) noexcept;
  DeliveryBase(DeliveryBase&&) noexcept = default;
  DeliveryBase& operator=(DeliveryBase&&) noexcept = default;

  void ack() noexcept;
  // Tells the hub to deliver it again, to any member: after the given time, or after the consumer's retry_waits.
  void retry(Duration after) noexcept;
  void retry() noexcept;
  void working() noexcept;                     // restarts ack_wait
  void reject(std::string_view why) noexcept;  // the hub never delivers it again

  // The steps of ack_confirmed() for a queue of calls: confirmation() prepares the call, settle() follows once it is
  // under way, and confirmed() reads its answer. confirmation() fails with invalid_state after ack(), retry() or
  // reject().
  [[nodiscard]] Result<IntrusivePtr<HubCall>> confirmation() const noexcept;
  void settle() noexcept { channel_ = nullptr; }
  [[nodiscard]] static Result<void> confirmed(const HubCall& call, const Result<void>& result) noexcept;
  [[nodiscard]] const std::shared_ptr<HubLink>& link() const noexcept { return link_; }

 protected:
  [[nodiscard]] Result<IntrusivePtr<HubCall>> confirm() noexcept;  // confirmation() and settle()

 private:
  void send(OpKind kind, std::uint64_t second, std::string_view text) noexcept;

  std::shared_ptr<HubLink> link_;
  IntrusivePtr<KeptChannel> channel_;  // null if settled
};

}  // namespace weft::topic
