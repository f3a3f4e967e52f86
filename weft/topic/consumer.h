// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/channel_end.h"
#include "weft/topic/kept/delivery_base.h"

namespace weft {

// Delivery: a message for a member of a consumer, which the member acknowledges.
// Owner: a move-only value; it may outlive its consumer. The hub delivers a message again after ack_wait if its
// delivery is destroyed without ack(), retry() or reject(). Affinity: one thread at a time. Cost: ack() gathers; one op
// acknowledges the deliveries of a turn.
class Delivery : public topic::DeliveryBase {
 public:
  using DeliveryBase::DeliveryBase;

  // Waits until the hub has kept the acknowledgement. The hub never delivers the message again. Errors: not_found (the
  // hub has delivered it to another member since); outcome_unknown; timed_out; closed.
  Result<void> ack_confirmed();
};

// Consumer: a member of a consumer. All members with the same name, on any handle, share its messages.
// Owner: a move-only value; destruction closes. It may outlive the handle. A closed member returns its queued messages
// to the hub.
// Affinity: any thread, also several at once. Each message goes to one of them.
// Promise: the hub delivers each message of the stream to one member at least once, until a member acknowledges it.
class Consumer : public topic::ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;

  // Waits for the next message, and begins its delivery. Errors: closed (the consumer or its handle); not_found (the
  // hub removed the consumer).
  Result<Delivery> next() { return next_until(kNever); }
  Result<Delivery> next_until(Instant deadline) {  // fails with timed_out, too
    const Held now = held();
    return delivery(now, wait_next(now, deadline));
  }
  Result<Delivery> try_next() { return delivery(held(), try_take()); }  // never waits; fails with would_block

 private:
  static Result<Delivery> delivery(const Held& held, Result<KeptMessage> message) {
    return message ? Result<Delivery>(Delivery(held.link, held.channel, *std::move(message))) : message.error();
  }
};

}  // namespace weft
