// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <vector>

#include "weft/msg/message/message.h"
#include "weft/msg/socket.h"
#include "weft/sync/lock.h"
#include "weft/sync/mutex.h"
#include "weft/topic/gate/gate_member.h"
#include "weft/topic/node/counters.h"
#include "weft/topic/node/interest.h"
#include "weft/topic/wire/name.h"

namespace weft::topic {

// Pump: from the XSUB of a handle, or from a gate, into the handle's subscriptions.
// Owner: a node. Affinity: any thread; one at a time brings messages. Cost: a memo's comparison and an offer() to each
// subscription that matches.
// Locks: the pump's comes before those of the interest, the mesh and a subscription.
// Invariant: the messages of one publisher enter a subscription in their order.
class Pump {
 public:
  static constexpr unsigned kMost = 256;  // messages a turn
  Pump(Socket& in, InterestTable& interest, const Names& names, TopicsCounters& counters) noexcept
      : in_(in), interest_(interest), names_(names), counters_(counters) {}

  // Returns the number of messages. Unless `wait_for_lock`, it is 0 while another thread reads.
  unsigned read(bool wait_for_lock, unsigned most = kMost);
  void read_all();  // before a disconnect
  void deliver(FleetMessage& message);
  // Of AsyncTopics, whose subscriptions are the loop's: keeps the message for deliver_kept(), or counts it as dropped,
  // also if `bytes_max` bytes are kept already. Returns whether it is the first one.
  [[nodiscard]] bool keep(FleetMessage& message, std::size_t bytes_max) noexcept;
  void deliver_kept();

 private:
  struct Parts {
    Message topic;
    Message body;
    Message headers;
  };

  void dispatch(Message&& topic, Message&& body, Message&& headers) WEFT_REQUIRES(mutex_);
  [[nodiscard]] bool offer_copy(const FleetMessage& message) WEFT_REQUIRES(mutex_);

  Socket& in_;
  InterestTable& interest_;
  const Names& names_;
  TopicsCounters& counters_;
  sync::Mutex mutex_;
  MatchMemo memo_ WEFT_GUARDED_BY(mutex_);
  sync::StdMutex kept_mutex_;
  std::vector<Parts> kept_ WEFT_GUARDED_BY(kept_mutex_);
  std::size_t kept_bytes_ WEFT_GUARDED_BY(kept_mutex_) = 0;
};

}  // namespace weft::topic
