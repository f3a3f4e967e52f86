// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "weft/base/bytes.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/node/options.h"
#include "weft/topic/wire/headers.h"

namespace weft {

namespace topic {
class Node;
struct PublisherCore;
}  // namespace topic

// Publisher: one topic of a handle, its name checked and encoded once.
// Owner: a move-only value; it may outlive the handle, and every call is `closed` then.
// Affinity: any thread, also several at once.
// Cost: a lock, a move into the queue of each own subscription that matches, and a send if there are peers.
// Promise: at most once, in order of each publisher. A process that ends loses its queued messages.
class Publisher {
 public:
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;
  ~Publisher();

  // Takes the message or returns an error. With WhenFull::drop, publish() never waits: a peer whose queue is full
  // misses the message, and dropped_full counts it. With WhenFull::wait, publish() waits until every peer has room. A
  // taken message may still reach no subscriber. Errors: closed; message_too_large (more than 64 KiB of headers, 64
  // MiB); resource_exhausted (no memory).
  Result<void> publish(Bytes body, const Headers& headers = {});
  Result<void> publish(std::string_view body, const Headers& headers = {}) { return publish(as_bytes(body), headers); }
  // Waits like WhenFull::wait, until `deadline`. Errors: those of publish(); timed_out.
  Result<void> publish_until(Instant deadline, Bytes body, const Headers& headers = {});
  // Fails with would_block if the queue of a peer is full. Then the message goes to no peer. Errors: also those of
  // publish().
  Result<void> try_publish(Bytes body, const Headers& headers = {});

  // Waits until `count` subscriptions of the fleet, own ones included, are ready for this topic, and returns the number
  // of ready ones. Each of them receives the messages that are published from now on: its handle's answer came over the
  // connection that carries the subscription. Errors: timed_out; closed.
  Result<std::size_t> wait_subscribers(std::size_t count, Instant deadline);

  [[nodiscard]] std::string_view topic() const noexcept;

 private:
  friend class Topics;
  Publisher(std::shared_ptr<topic::Node> node, IntrusivePtr<topic::PublisherCore> core,
            PublisherOptions options) noexcept;

  std::shared_ptr<topic::Node> node_;
  IntrusivePtr<topic::PublisherCore> core_;
  PublisherOptions options_;
};

}  // namespace weft
