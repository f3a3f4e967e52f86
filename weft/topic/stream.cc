// SPDX-License-Identifier: MIT
#include "weft/topic/stream.h"

#include <optional>
#include <string>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/topic/kept/stream_core.h"

namespace weft {

namespace {

using topic::StreamCore;

constexpr Error kStreamMoved(Errc::closed, "the stream was moved from");

Result<Published> result_of(const topic::HubCall& call) {
  WEFT_TRY(topic::HubLink::outcome(call));
  return StreamCore::published(call);
}

// A call without a value. Each method holds the object on which it waits: another thread may destroy the stream
// meanwhile.
Result<IntrusivePtr<topic::HubCall>> run(const StreamCore& core, Result<IntrusivePtr<topic::HubCall>> call) {
  WEFT_TRY(call);
  WEFT_TRY(core.link()->run(*call));
  return call;
}

}  // namespace

// --- PendingPublish ---

PendingPublish::PendingPublish(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::HubCall> call) noexcept
    : link_(std::move(link)), call_(std::move(call)) {}
PendingPublish::PendingPublish(PendingPublish&&) noexcept = default;
PendingPublish& PendingPublish::operator=(PendingPublish&&) noexcept = default;
PendingPublish::~PendingPublish() = default;

Result<Published> PendingPublish::wait() { return wait_until(kNever); }
Result<Published> PendingPublish::wait_until(Instant deadline) {
  if (call_ == nullptr) {
    return kStreamMoved;
  }
  return link_->wait(call_->changed, deadline, [&] { return result_of(*call_); });
}
Result<Published> PendingPublish::try_result() {
  if (call_ == nullptr) {
    return kStreamMoved;
  }
  const sync::LockGuard lock(link_->mutex());
  const auto result = result_of(*call_);
  if (!result && result.error() == Errc::would_block) {
    call_->changed.found_nothing();
    link_->flush_sent();  // the caller is about to wait
  }
  return result;
}
Result<int> PendingPublish::descriptor() {
  if (call_ == nullptr) {
    return kStreamMoved;
  }
  const sync::LockGuard lock(link_->mutex());
  return call_->changed.descriptor();
}

// --- Stream ---

Stream::Stream(std::shared_ptr<StreamCore> core) noexcept : core_(std::move(core)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Result<Stream> Stream::declare(std::shared_ptr<topic::HubLink> link, const StreamOptions& options) {
  const auto core = WEFT_TRY(StreamCore::make(std::move(link), options));
  const auto call = WEFT_TRY(core->declare(options.redeclare));
  WEFT_TRY(run(*core, call));
  WEFT_TRY(core->declared(*call));
  return Stream(core);
}

Result<std::vector<StreamInfo>> Stream::list(const std::shared_ptr<topic::HubLink>& link, std::string_view prefix) {
  return or_no_memory([&]() -> Result<std::vector<StreamInfo>> {
    std::vector<std::string> names;
    std::optional<std::string> behind = std::string();
    while (behind) {
      const auto call = WEFT_TRY(StreamCore::names(*behind));
      WEFT_TRY(link->run(call));
      behind = WEFT_TRY(StreamCore::add_names(*call, prefix, names));
    }
    std::vector<StreamInfo> all;
    for (const std::string& name : names) {
      const auto call = WEFT_TRY(StreamCore::info_of(name));
      if (const Result<void> ran = link->run(call); ran) {
        all.push_back(WEFT_TRY(StreamCore::read_info(*call, name)));
      } else if (ran.error() != Errc::not_found) {  // it was removed meanwhile
        return ran.error();
      }
    }
    return all;
  });
}

Result<PendingPublish> Stream::publish_later(std::string_view topic, Bytes body, const PublishOptions& options) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  if (options.order == Order::strict) {
    return Error(Errc::invalid_argument, "a strict order has one message of a topic under way: publish()");
  }
  topic::HubLink& link = *core->link();
  auto call = WEFT_TRY(core->append(topic, body, options, {}));
  WEFT_TRY(link.wait(link.place(), call->deadline, [&] { return link.in_lock(), link.start(call); }));
  return PendingPublish(core->link(), std::move(call));
}

Result<Published> Stream::publish(std::string_view topic, Bytes body, const PublishOptions& options) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  if (options.order == Order::strict) {
    return publish_strict(topic, body, options);
  }
  const auto call = WEFT_TRY(run(*core, core->append(topic, body, options, {})));
  return StreamCore::published(*call);
}

// The turn of a topic is held from the question for its last sequence to the answer of the append.
Result<Published> Stream::publish_strict(std::string_view topic, Bytes body, PublishOptions options) {
  const auto core = core_;
  topic::HubLink& link = *core->link();
  const std::string name = WEFT_TRY(or_no_memory([&] { return Result<std::string>(std::string(topic)); }));
  options.deadline = core->answer_by(options.deadline);
  const auto turn = WEFT_TRY(link.wait(core->strict_change(), options.deadline, [&] { return core->take_turn(name); }));
  StreamCore::Turn next;
  const auto publish = [&]() -> Result<Published> {
    if (!options.expect_last) {
      StreamCore::Turn known = turn;
      if (!turn.known) {
        const auto newest = run(*core, core->get(topic, 0));
        if (!newest && newest.error() != Errc::not_found) {
          return newest.error();
        }
        if (newest) {
          const KeptMessage message = WEFT_TRY(StreamCore::message(**newest, link.names()));
          known = {message.sequence(), message.stream_instance(), true};
        }
      }
      options.expect_last = known.last;
      options.expect_instance = known.instance;
    }
    const auto call = WEFT_TRY(run(*core, core->append(topic, body, options, {})));
    const Published published = StreamCore::published(*call);
    if (!published.duplicate) {
      next = {published.sequence, published.instance, true};
    }
    return published;
  };
  Result<Published> published = publish();
  const sync::LockGuard lock(link.mutex());
  core->end_turn(name, next);
  return published;
}

Result<Consumer> Stream::consumer(std::string_view name, const ConsumerOptions& options) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  const auto channel = WEFT_TRY(core->consumer(name, options));
  Consumer consumer(core->link(), channel);
  WEFT_TRY(core->link()->wait_open(*channel));
  return consumer;
}

Result<Reader> Stream::read(const ReadOptions& options) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  const auto channel = WEFT_TRY(core->reader(options));
  Reader reader(core->link(), channel);
  WEFT_TRY(core->link()->wait_open(*channel));
  return reader;
}

Result<KeptMessage> Stream::message(std::uint64_t sequence) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  if (sequence == 0) {
    return Error(Errc::not_found, "sequences begin at 1");
  }
  const auto call = WEFT_TRY(run(*core, core->get({}, sequence)));
  return StreamCore::message(*call, core->link()->names());
}
Result<KeptMessage> Stream::newest(std::string_view topic) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  const auto call = WEFT_TRY(run(*core, core->get(topic, 0)));
  return StreamCore::message(*call, core->link()->names());
}

Result<StreamInfo> Stream::info() {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  const auto call = WEFT_TRY(run(*core, core->info()));
  return core->read_info(*call);
}

Result<void> Stream::purge(std::uint64_t before) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  WEFT_TRY(run(*core, core->purge(before)));
  return {};
}
Result<void> Stream::purge_topic(std::string_view topic) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  WEFT_TRY(run(*core, core->purge_topic(topic)));
  return {};
}
Result<void> Stream::remove() {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  const auto call = WEFT_TRY(core->remove());
  return StreamCore::removed(*call, core->link()->run(call));
}
Result<void> Stream::remove_consumer(std::string_view name) {
  const auto core = core_;
  if (core == nullptr) {
    return kStreamMoved;
  }
  const auto call = WEFT_TRY(core->remove_consumer(name));
  return StreamCore::removed(*call, core->link()->run(call));
}

Survives Stream::survives() const noexcept { return core_ == nullptr ? Survives::nothing : core_->survives(); }
std::string_view Stream::name() const noexcept { return core_ == nullptr ? std::string_view() : core_->wire(); }

}  // namespace weft
