// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/kept/channel_end.h"
#include "weft/topic/kept/delivery_base.h"

namespace weft {

// Delivery: a message for a member of a consumer, to be acknowledged.
// Owner: a move-only value; it may outlive its consumer. One that goes without ack(), retry() or reject() is delivered
// again after ack_wait. Affinity: one thread at a time. Cost: ack() gathers; one op acknowledges what a turn brought.
class Delivery : public topic::DeliveryBase {
 public:
  using DeliveryBase::DeliveryBase;

  // Waits until the hub has kept the acknowledgement: the message is never delivered again. not_found: it was delivered
  // to another member meanwhile; outcome_unknown; timed_out; closed.
  Result<void> ack_confirmed();
};

// Consumer: a member of a consumer: who uses the same name, on any handle, shares its messages.
// Owner: a move-only value; destruction closes. It may outlive the handle. Closing gives the queued messages back.
// Affinity: any thread, also several at once; each message goes to one of them.
// Promise: each message of the stream at least once to one member, until it is acknowledged.
class Consumer : public topic::ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;

  // The delivery of the message begins. closed: the consumer, its handle, or the hub removed it (not_found).
  Result<Delivery> next() { return next_until(kNever); }
  Result<Delivery> next_until(Instant deadline) {  // also timed_out
    const Held now = held();
    return delivery(now, wait_next(now, deadline));
  }
  Result<Delivery> try_next() { return delivery(held(), try_take()); }  // never waits: would_block

 private:
  static Result<Delivery> delivery(const Held& held, Result<KeptMessage> message) {
    return message ? Result<Delivery>(Delivery(held.link, held.channel, *std::move(message))) : message.error();
  }
};

}  // namespace weft
