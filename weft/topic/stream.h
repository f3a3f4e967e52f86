// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/topic/consumer.h"
#include "weft/topic/kept/options.h"
#include "weft/topic/reader.h"

namespace weft {

namespace topic {
class HubCall;
class HubLink;
class StreamCore;
}  // namespace topic

// PendingPublish: a sent message whose answer may not have arrived.
// Owner: a move-only value. Destruction drops the answer, not the message. Affinity: one thread at a time.
class PendingPublish {
 public:
  PendingPublish(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::HubCall> call) noexcept;
  PendingPublish(PendingPublish&&) noexcept;
  PendingPublish& operator=(PendingPublish&&) noexcept;
  ~PendingPublish();

  // Errors: those of Stream::publish(). The caller may read the answer more than once.
  Result<Published> wait();
  Result<Published> wait_until(Instant deadline);  // timed_out: the caller may wait again
  Result<Published> try_result();                  // never waits; fails with would_block
  // For event loops: a descriptor that is readable when there may be an answer. A try_result() that returns would_block
  // clears it. The descriptor is valid as long as this object. Errors: resource_exhausted.
  Result<int> descriptor();

 private:
  std::shared_ptr<topic::HubLink> link_;
  IntrusivePtr<topic::HubCall> call_;
};

// Stream: a stream of the fleet: topics whose messages are kept.
// Owner: a move-only value; it may outlive the handle, and every call is `closed` then. The stream stays.
// Affinity: any thread, also several at once. AsyncStream is the same for coroutines.
// Promise: the store keeps an acknowledged message as long as survives() promises. docs/topics.md has the table of
// order and delivery.
class Stream {
 public:
  explicit Stream(std::shared_ptr<topic::StreamCore> core) noexcept;
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // Waits until the message is kept. If the hub changes meanwhile, the link sends the message again with its id, and
  // the hub stores it once. At most 4,096 messages and 8 MiB of a handle are under way; beyond, the call waits for a
  // place. Errors: outcome_unknown (the message was sent, and the answer did not arrive in time); timed_out (the
  // message was never sent); conflict (the topic differs from the expectation, or the expectation is of another life of
  // the stream); not_found (the stream does not exist); invalid_argument (not a topic, or not one of the stream);
  // message_too_large (a body beyond 1 MiB, headers beyond 64 KiB); resource_exhausted (the stream or memory is full);
  // closed.
  Result<Published> publish(std::string_view topic, Bytes body, const PublishOptions& options = {});
  Result<Published> publish(std::string_view topic, std::string_view body, const PublishOptions& options = {}) {
    return publish(topic, as_bytes(body), options);
  }
  // The same, but waits only for a place and not for the answer. Fails with invalid_argument under Order::strict.
  Result<PendingPublish> publish_later(std::string_view topic, Bytes body, const PublishOptions& options = {});
  Result<PendingPublish> publish_later(std::string_view topic, std::string_view body,
                                       const PublishOptions& options = {}) {
    return publish_later(topic, as_bytes(body), options);
  }

  // Stores all of the messages, with consecutive sequences, or none: 1 to 1,000 messages, 1 MiB in all. Returns the
  // sequence of the first one. Errors: those of publish(); conflict (also: a message of the id was stored before; if a
  // hub stored the whole batch, it is a duplicate instead); not_supported (servers of NATS before 2.12, and a hub of a
  // revision without it).
  Result<Published> publish_all(std::span<const BatchMessage> messages, const BatchOptions& options = {});

  // Makes the consumer or joins it. Errors: conflict (its settings differ); invalid_argument; not_found; timed_out;
  // resource_exhausted; closed.
  Result<Consumer> consumer(std::string_view name, const ConsumerOptions& options = {});
  Result<Reader> read(const ReadOptions& options = {});

  Result<KeptMessage> message(std::uint64_t sequence);  // fails with not_found if it never existed or was dropped
  Result<KeptMessage> newest(std::string_view topic);   // returns an erasure, too; fails with not_found
  Result<StreamInfo> info();
  // Deletes every message before this sequence. Errors: conflict (the stream was removed and made again since this
  // object returned a message, an answer or the declaration).
  Result<void> purge(std::uint64_t before);
  // for streams that keep the latest; otherwise fails with not_supported
  Result<void> purge_topic(std::string_view topic);
  Result<void> remove();                                 // removes the stream, its messages and consumers
  Result<void> remove_consumer(std::string_view name);   // ends its open members
  [[nodiscard]] Survives survives() const noexcept;      // the promise that the stream got
  [[nodiscard]] std::string_view name() const noexcept;  // with the handle's space

  // Declares the stream, for Topics::stream(). Errors: conflict (it exists with other settings); not_supported (the
  // engine cannot keep the promise); invalid_argument; timed_out; closed.
  [[nodiscard]] static Result<Stream> declare(std::shared_ptr<topic::HubLink> link, const StreamOptions& options);
  // For Topics::streams(): the streams of the hub whose names begin with `prefix`.
  [[nodiscard]] static Result<std::vector<StreamInfo>> list(const std::shared_ptr<topic::HubLink>& link,
                                                            std::string_view prefix);
  // For the C interface, as Topics::node() is.
  [[nodiscard]] const std::shared_ptr<topic::StreamCore>& core() const noexcept { return core_; }

 private:
  Result<Published> publish_strict(std::string_view topic, Bytes body, PublishOptions options);

  std::shared_ptr<topic::StreamCore> core_;
};

}  // namespace weft
