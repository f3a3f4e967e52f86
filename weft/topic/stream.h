// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
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
class Call;
class HubLink;
class StreamCore;
}  // namespace topic

// PendingPublish: a message that was sent, and whose answer may not have come.
// Owner: a move-only value; without it the answer is lost, not the message. Affinity: one thread at a time.
class PendingPublish {
 public:
  PendingPublish(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::Call> call) noexcept;
  PendingPublish(PendingPublish&&) noexcept;
  PendingPublish& operator=(PendingPublish&&) noexcept;
  ~PendingPublish();

  // The errors of Stream::publish(). The answer may be asked for more than once.
  Result<Published> wait();
  Result<Published> wait_until(Instant deadline);  // timed_out: and it may be asked for again
  Result<Published> try_result();                  // would_block

 private:
  std::shared_ptr<topic::HubLink> link_;
  IntrusivePtr<topic::Call> call_;
};

// Stream: a stream of the fleet: topics whose messages are kept.
// Owner: a move-only value; it may outlive the handle, and every call is `closed` then. The stream stays.
// Affinity: any thread, also several at once. AsyncStream is the same for coroutines.
// Promise: an acknowledged message is kept, as survives() says; order and delivery as the table of docs/topics.md says.
class Stream {
 public:
  explicit Stream(std::shared_ptr<topic::StreamCore> core) noexcept;
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  // Waits until the message is kept. When the hub changes meanwhile, the message leaves again with its id: it is stored
  // once. At most 4,096 messages and 8 MiB of a handle are under way; beyond, the call waits for a place.
  // outcome_unknown: it was sent, and the answer did not come in time; timed_out: it was never sent; conflict: the
  // topic is not as expected, or the expectation is of another life of the stream; not_found: there is no such stream;
  // invalid_argument: no topic, or none of the stream's; message_too_large: a body beyond 1 MiB, headers beyond 64 KiB;
  // resource_exhausted: the stream is full, or memory; closed.
  Result<Published> publish(std::string_view topic, Bytes body, const PublishOptions& options = {});
  Result<Published> publish(std::string_view topic, std::string_view body, const PublishOptions& options = {}) {
    return publish(topic, as_bytes(body), options);
  }
  // The same without waiting for the answer; only for a place. Not with Order::strict: invalid_argument.
  Result<PendingPublish> publish_later(std::string_view topic, Bytes body, const PublishOptions& options = {});
  Result<PendingPublish> publish_later(std::string_view topic, std::string_view body,
                                       const PublishOptions& options = {}) {
    return publish_later(topic, as_bytes(body), options);
  }

  // Makes or joins the consumer. conflict: its settings differ; invalid_argument; not_found; timed_out;
  // resource_exhausted; closed.
  Result<Consumer> consumer(std::string_view name, const ConsumerOptions& options = {});
  Result<Reader> read(const ReadOptions& options = {});

  Result<KeptMessage> message(std::uint64_t sequence);  // not_found: it never was, or is gone
  Result<KeptMessage> newest(std::string_view topic);   // also an erasure; not_found
  Result<StreamInfo> info();
  // Every message before this sequence goes. conflict: the stream was removed and made anew since a message, an answer
  // or the declaration came through this object.
  Result<void> purge(std::uint64_t before);
  Result<void> purge_topic(std::string_view topic);      // streams that keep the latest; not_supported
  Result<void> remove();                                 // the stream, its messages and consumers
  Result<void> remove_consumer(std::string_view name);   // its open members end
  [[nodiscard]] Survives survives() const noexcept;      // what the stream got
  [[nodiscard]] std::string_view name() const noexcept;  // with the handle's space

  // Declares the stream: for Topics::stream(). conflict: it exists with other settings; not_supported: the engine
  // cannot keep the promise; invalid_argument; timed_out; closed.
  [[nodiscard]] static Result<Stream> declare(std::shared_ptr<topic::HubLink> link, const StreamOptions& options);
  // For Topics::streams(): those of the hub whose names begin with `prefix`.
  [[nodiscard]] static Result<std::vector<StreamInfo>> list(const std::shared_ptr<topic::HubLink>& link,
                                                            std::string_view prefix);

 private:
  Result<Published> publish_strict(std::string_view topic, Bytes body, PublishOptions options);

  std::shared_ptr<topic::StreamCore> core_;
};

}  // namespace weft
