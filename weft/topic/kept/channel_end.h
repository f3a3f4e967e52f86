// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <optional>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/task/task.h"
#include "weft/topic/kept/channel.h"
#include "weft/topic/kept/kept_message.h"

namespace weft::topic {

class HubLink;

// ChannelEnd: the common part of consumers and readers, blocking or of coroutines: the program's end of a channel.
// Owner: a move-only value; destruction closes. It may outlive the handle. Affinity: the handle's.
// Every call on a moved-from object fails with `closed`.
class ChannelEnd {
 public:
  ChannelEnd(std::shared_ptr<HubLink> link, IntrusivePtr<KeptChannel> channel) noexcept
      : link_(std::move(link)), channel_(std::move(channel)) {}
  ChannelEnd(ChannelEnd&&) noexcept = default;
  ChannelEnd& operator=(ChannelEnd&& other) noexcept;
  ~ChannelEnd() { close(); }
  void close() noexcept;  // idempotent
  // For event loops: a descriptor that is readable while there may be a message. A try_next() that returns would_block
  // clears it. The descriptor is valid as long as this end. Errors: resource_exhausted.
  Result<int> descriptor();

 protected:
  // A waiting call keeps these alive: another thread may destroy this end meanwhile.
  struct Held {
    std::shared_ptr<HubLink> link;
    IntrusivePtr<KeptChannel> channel;
  };
  [[nodiscard]] Held held() const noexcept { return {link_, channel_}; }
  [[nodiscard]] static Result<KeptMessage> wait_next(const Held& held, Instant deadline);
  [[nodiscard]] static Result<std::optional<KeptMessage>> wait_next_stored(const Held& held);
  [[nodiscard]] Result<KeptMessage> try_take();
  // Of a channel that its task keeps alive.
  [[nodiscard]] static rt::Task<Result<KeptMessage>> next_task(std::shared_ptr<HubLink> link,
                                                               IntrusivePtr<KeptChannel> channel);
  [[nodiscard]] static rt::Task<Result<std::optional<KeptMessage>>> next_stored_task(std::shared_ptr<HubLink> link,
                                                                                     IntrusivePtr<KeptChannel> channel);
  [[nodiscard]] bool took_all_stored() const noexcept;

  std::shared_ptr<HubLink> link_;
  IntrusivePtr<KeptChannel> channel_;
};

}  // namespace weft::topic
