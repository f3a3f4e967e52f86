// SPDX-License-Identifier: MIT
#include "weft/topic/async_stream.h"

#include <utility>

#include "weft/sync/lock.h"
#include "weft/topic/kept/stream_core.h"

namespace weft {

namespace {

using topic::HubCall;
using topic::HubLink;
using topic::KeptChannel;
using topic::StreamCore;
using Link = std::shared_ptr<HubLink>;
using CallPtr = IntrusivePtr<HubCall>;
using ChannelPtr = IntrusivePtr<KeptChannel>;

constexpr Error kAsyncStreamMoved(Errc::closed, "the object was moved from");

rt::Task<Result<Published>> publish_call(Link link, Result<CallPtr> call) {
  if (!call) {
    co_return call.error();
  }
  const Result<void> ran = co_await HubLink::run_task(link, *call);
  if (!ran) {
    co_return ran.error();
  }
  co_return StreamCore::published(**call);
}

rt::Task<Result<AsyncPendingPublish>> later_call(Link link, Result<CallPtr> call) {
  if (!call) {
    co_return call.error();
  }
  const auto begin = [self = link.get(), raw = &*call] { return self->in_lock(), self->start(*raw); };
  const Result<void> started = co_await HubLink::wait_task<void>(link, &link->place(), begin, nullptr);
  if (!started) {
    co_return started.error();
  }
  co_return AsyncPendingPublish(link, *call);
}

rt::Task<Result<Published>> wait_answer(Link link, CallPtr call) {
  if (call == nullptr) {
    co_return kAsyncStreamMoved;
  }
  const auto end = [raw = call.get()] { return HubLink::outcome(*raw); };
  const Result<void> ended = co_await HubLink::wait_task<void>(link, &call->changed, end, call);
  if (!ended) {
    co_return ended.error();
  }
  co_return StreamCore::published(*call);
}

// `removes`: an object that the first try removed is not an error of the second one.
rt::Task<Result<void>> plain_call(Link link, Result<CallPtr> call, bool removes) {
  if (!call) {
    co_return call.error();
  }
  const Result<void> ran = co_await HubLink::run_task(link, *call);
  co_return removes ? StreamCore::removed(**call, ran) : ran;
}

rt::Task<Result<KeptMessage>> message_call(Link link, Result<CallPtr> call) {
  if (!call) {
    co_return call.error();
  }
  const Result<void> ran = co_await HubLink::run_task(link, *call);
  if (!ran) {
    co_return ran.error();
  }
  co_return StreamCore::message(**call, link->names());
}

// `End`: AsyncConsumer or AsyncReader, whose destruction ends the channel also when the wait fails.
template <typename End>
rt::Task<Result<End>> open_channel(Link link, Result<ChannelPtr> channel) {
  if (!channel) {
    co_return channel.error();
  }
  End end(link, *channel);
  const auto opened = [raw = channel->get()] { return HubLink::opened(*raw); };
  const Result<void> open = co_await HubLink::wait_task<void>(link, &(*channel)->changed, opened, *channel);
  if (!open) {
    co_return open.error();
  }
  co_return std::move(end);
}

}  // namespace

// --- deliveries, consumers, readers ---

rt::Task<Result<void>> AsyncDelivery::ack_confirmed() {
  static constexpr auto kRun = [](Link link, Result<CallPtr> call) -> rt::Task<Result<void>> {
    if (!call) {
      co_return call.error();
    }
    const Result<void> ran = co_await HubLink::run_task(link, *call);
    co_return confirmed(**call, ran);
  };
  return kRun(link(), confirm());
}

rt::Task<Result<AsyncDelivery>> AsyncConsumer::next() {
  static constexpr auto kNext = [](Link link, ChannelPtr channel) -> rt::Task<Result<AsyncDelivery>> {
    Result<KeptMessage> message = co_await next_task(link, channel);
    if (!message) {
      co_return message.error();
    }
    co_return AsyncDelivery(link, channel, *std::move(message));
  };
  return kNext(link_, channel_);
}
Result<AsyncDelivery> AsyncConsumer::try_next() {
  auto message = try_take();
  return message ? Result<AsyncDelivery>(AsyncDelivery(link_, channel_, *std::move(message))) : message.error();
}

rt::Task<Result<AsyncReader>> AsyncReader::open(Link link, Result<ChannelPtr> channel) {
  return open_channel<AsyncReader>(std::move(link), std::move(channel));
}

// --- publishing ---

AsyncPendingPublish::AsyncPendingPublish(Link link, CallPtr call) noexcept
    : link_(std::move(link)), call_(std::move(call)) {}
rt::Task<Result<Published>> AsyncPendingPublish::wait() { return wait_answer(link_, call_); }
Result<Published> AsyncPendingPublish::try_result() {
  if (call_ == nullptr) {
    return kAsyncStreamMoved;
  }
  const sync::LockGuard lock(link_->mutex());
  WEFT_TRY(HubLink::outcome(*call_));
  return StreamCore::published(*call_);
}

AsyncStream::AsyncStream(std::shared_ptr<StreamCore> core) noexcept : core_(std::move(core)) {}

Link AsyncStream::link() const noexcept { return core_ == nullptr ? nullptr : core_->link(); }
template <typename Make>
Result<CallPtr> AsyncStream::request(Make make) const {
  return core_ == nullptr ? Result<CallPtr>(kAsyncStreamMoved) : make();
}

rt::Task<Result<AsyncStream>> AsyncStream::declare(Link link, const StreamOptions& options) {
  static constexpr auto kDeclare = [](Result<std::shared_ptr<StreamCore>> core,
                                      bool redeclare) -> rt::Task<Result<AsyncStream>> {
    if (!core) {
      co_return core.error();
    }
    const Result<CallPtr> call = (*core)->declare(redeclare);
    if (!call) {
      co_return call.error();
    }
    const Result<void> ran = co_await HubLink::run_task((*core)->link(), *call);
    if (!ran) {
      co_return ran.error();
    }
    WEFT_CO_TRY((*core)->declared(**call));
    co_return AsyncStream(*core);
  };
  return kDeclare(StreamCore::make(std::move(link), options), options.redeclare);
}

rt::Task<Result<Published>> AsyncStream::publish(std::string_view topic, Bytes body, const PublishOptions& options) {
  constexpr Error kStrict(Errc::not_supported, "a strict order is the blocking Stream's");
  return publish_call(link(), options.order == Order::strict ? Result<CallPtr>(kStrict) : request([&] {
                        return core_->append(topic, body, options, {});
                      }));
}
rt::Task<Result<AsyncPendingPublish>> AsyncStream::publish_later(std::string_view topic, Bytes body,
                                                                 const PublishOptions& options) {
  constexpr Error kStrict(Errc::invalid_argument, "a strict order has one message of a topic under way");
  return later_call(link(), options.order == Order::strict ? Result<CallPtr>(kStrict) : request([&] {
                      return core_->append(topic, body, options, {});
                    }));
}
rt::Task<Result<AsyncConsumer>> AsyncStream::consumer(std::string_view name, const ConsumerOptions& options) {
  return open_channel<AsyncConsumer>(
      link(), core_ == nullptr ? Result<ChannelPtr>(kAsyncStreamMoved) : core_->consumer(name, options));
}
rt::Task<Result<AsyncReader>> AsyncStream::read(const ReadOptions& options) {
  return AsyncReader::open(link(), core_ == nullptr ? Result<ChannelPtr>(kAsyncStreamMoved) : core_->reader(options));
}
rt::Task<Result<KeptMessage>> AsyncStream::message(std::uint64_t sequence) {
  constexpr Error kNone(Errc::not_found, "sequences begin at 1");
  return message_call(link(),
                      sequence == 0 ? Result<CallPtr>(kNone) : request([&] { return core_->get({}, sequence); }));
}
rt::Task<Result<KeptMessage>> AsyncStream::newest(std::string_view topic) {
  return message_call(link(), request([&] { return core_->get(topic, 0); }));
}
rt::Task<Result<std::vector<StreamInfo>>> AsyncStream::list(std::shared_ptr<HubLink> link, std::string prefix) {
  std::vector<std::string> names;
  std::optional<std::string> behind = std::string();
  while (behind) {
    const Result<CallPtr> call = StreamCore::names(*behind);
    if (!call) {
      co_return call.error();
    }
    const Result<void> ran = co_await HubLink::run_task(link, *call);
    if (!ran) {
      co_return ran.error();
    }
    Result<std::optional<std::string>> next = StreamCore::add_names(**call, prefix, names);
    if (!next) {
      co_return next.error();
    }
    behind = *std::move(next);
  }
  std::vector<StreamInfo> all;
  for (const std::string& name : names) {
    const Result<CallPtr> call = StreamCore::info_of(name);
    if (!call) {
      co_return call.error();
    }
    const Result<void> ran = co_await HubLink::run_task(link, *call);
    Result<StreamInfo> info = ran ? StreamCore::read_info(**call, name) : Result<StreamInfo>(ran.error());
    if (info) {
      all.push_back(*std::move(info));
    } else if (info.error() != Errc::not_found) {  // it was removed meanwhile
      co_return info.error();
    }
  }
  co_return all;
}
rt::Task<Result<StreamInfo>> AsyncStream::info() {
  static constexpr auto kInfo = [](std::shared_ptr<StreamCore> core) -> rt::Task<Result<StreamInfo>> {
    if (core == nullptr) {
      co_return kAsyncStreamMoved;
    }
    const Result<CallPtr> call = core->info();
    if (!call) {
      co_return call.error();
    }
    const Result<void> ran = co_await HubLink::run_task(core->link(), *call);
    if (!ran) {
      co_return ran.error();
    }
    co_return core->read_info(**call);
  };
  return kInfo(core_);
}
rt::Task<Result<void>> AsyncStream::purge(std::uint64_t before) {
  return plain_call(link(), request([&] { return core_->purge(before); }), false);
}
rt::Task<Result<void>> AsyncStream::purge_topic(std::string_view topic) {
  return plain_call(link(), request([&] { return core_->purge_topic(topic); }), false);
}
rt::Task<Result<void>> AsyncStream::remove() {
  return plain_call(link(), request([&] { return core_->remove(); }), true);
}
rt::Task<Result<void>> AsyncStream::remove_consumer(std::string_view name) {
  return plain_call(link(), request([&] { return core_->remove_consumer(name); }), true);
}
Survives AsyncStream::survives() const noexcept { return core_ == nullptr ? Survives::nothing : core_->survives(); }
std::string_view AsyncStream::name() const noexcept {
  return core_ == nullptr ? std::string_view() : std::string_view(core_->wire());
}

}  // namespace weft
