// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/bytes.h"
#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/rt/task/task.h"
#include "weft/topic/kept/channel_end.h"
#include "weft/topic/kept/delivery_base.h"
#include "weft/topic/kept/options.h"

namespace weft {

namespace topic {
class StreamCore;
}

// AsyncDelivery: Delivery for the coroutines of one loop, with the same names.
class AsyncDelivery : public topic::DeliveryBase {
 public:
  using DeliveryBase::DeliveryBase;
  [[nodiscard]] rt::Task<Result<void>> ack_confirmed();
};

// AsyncConsumer: Consumer for the coroutines of one loop, with the same names. A cancelled coroutine has not taken a
// message. Affinity: the loop's thread; any number of coroutines may wait.
class AsyncConsumer : public topic::ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;

  [[nodiscard]] rt::Task<Result<AsyncDelivery>> next();  // fails with kCancelled, too
  Result<AsyncDelivery> try_next();
};

// AsyncReader: Reader for the coroutines of one loop, with the same names.
class AsyncReader : public topic::ChannelEnd {
 public:
  using ChannelEnd::ChannelEnd;

  [[nodiscard]] rt::Task<Result<KeptMessage>> next() { return next_task(link_, channel_); }
  [[nodiscard]] rt::Task<Result<std::optional<KeptMessage>>> next_stored() { return next_stored_task(link_, channel_); }
  Result<KeptMessage> try_next() { return try_take(); }
  [[nodiscard]] bool live() const noexcept { return took_all_stored(); }
};

// AsyncPendingPublish: PendingPublish for the coroutines of one loop.
class AsyncPendingPublish {
 public:
  AsyncPendingPublish(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::HubCall> call) noexcept;
  [[nodiscard]] rt::Task<Result<Published>> wait();
  Result<Published> try_result();

 private:
  std::shared_ptr<topic::HubLink> link_;
  IntrusivePtr<topic::HubCall> call_;
};

// AsyncStream: Stream for the coroutines of one loop, with the same names, meanings and errors. A call encodes its
// arguments before it returns its task, so the task does not refer to the arguments.
// Affinity: the loop's thread. The hub keeps a message whose publish is cancelled after it was sent. Errors: `closed`
// from every call on a moved-from object.
class AsyncStream {
 public:
  explicit AsyncStream(std::shared_ptr<topic::StreamCore> core) noexcept;

  [[nodiscard]] rt::Task<Result<Published>> publish(std::string_view topic, Bytes body,
                                                    const PublishOptions& options = {});
  [[nodiscard]] rt::Task<Result<Published>> publish(std::string_view topic, std::string_view body,
                                                    const PublishOptions& options = {}) {
    return publish(topic, as_bytes(body), options);
  }
  [[nodiscard]] rt::Task<Result<AsyncPendingPublish>> publish_later(std::string_view topic, Bytes body,
                                                                    const PublishOptions& options = {});
  [[nodiscard]] rt::Task<Result<AsyncPendingPublish>> publish_later(std::string_view topic, std::string_view body,
                                                                    const PublishOptions& options = {}) {
    return publish_later(topic, as_bytes(body), options);
  }
  [[nodiscard]] rt::Task<Result<Published>> publish_all(std::span<const BatchMessage> messages,
                                                        const BatchOptions& options = {});
  // Name options with texts before the co_await (rt/task/task.h has the reason).
  [[nodiscard]] rt::Task<Result<AsyncConsumer>> consumer(std::string_view name, const ConsumerOptions& options);
  [[nodiscard]] rt::Task<Result<AsyncReader>> read(const ReadOptions& options);
  [[nodiscard]] rt::Task<Result<KeptMessage>> message(std::uint64_t sequence);
  [[nodiscard]] rt::Task<Result<KeptMessage>> newest(std::string_view topic);
  [[nodiscard]] rt::Task<Result<StreamInfo>> info();
  [[nodiscard]] rt::Task<Result<void>> purge(std::uint64_t before);
  [[nodiscard]] rt::Task<Result<void>> purge_topic(std::string_view topic);
  [[nodiscard]] rt::Task<Result<void>> remove();
  [[nodiscard]] rt::Task<Result<void>> remove_consumer(std::string_view name);
  [[nodiscard]] Survives survives() const noexcept;
  [[nodiscard]] std::string_view name() const noexcept;

  [[nodiscard]] static rt::Task<Result<AsyncStream>> declare(std::shared_ptr<topic::HubLink> link,
                                                             const StreamOptions& options);
  // For AsyncTopics::streams(): the streams of the hub whose names begin with `prefix`.
  [[nodiscard]] static rt::Task<Result<std::vector<StreamInfo>>> list(std::shared_ptr<topic::HubLink> link,
                                                                      std::string prefix);

 private:
  [[nodiscard]] std::shared_ptr<topic::HubLink> link() const noexcept;

  std::shared_ptr<topic::StreamCore> core_;
};

}  // namespace weft
