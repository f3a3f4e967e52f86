// SPDX-License-Identifier: MIT
#include "weft/topic/async_stream.h"

#include <utility>

#include "weft/base/no_memory.h"
#include "weft/rt/task/task_time.h"
#include "weft/sync/lock.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/kept/stream_calls.h"

namespace weft {

namespace {

using topic::HubCall;
using topic::HubLink;
using topic::KeptChannel;
using topic::StreamCore;
using Link = std::shared_ptr<HubLink>;
using CallPtr = IntrusivePtr<HubCall>;
using ChannelPtr = IntrusivePtr<KeptChannel>;

rt::Task<Result<AsyncPendingPublish>> later_call(Link link, Result<CallPtr> call) {
  if (!call) {
    co_return call.error();
  }
  const Result<void> started = co_await HubLink::start_task(link, *call);
  if (!started) {
    co_return started.error();
  }
  co_return AsyncPendingPublish(link, *call);
}

rt::Task<Result<Published>> wait_answer(Link link, CallPtr call) {
  WEFT_CO_TRY(topic::borrow(call));
  const auto end = [raw = call.get()] { return topic::pending_result(*raw); };
  const Result<Published> published = co_await HubLink::wait_task<Published>(link, &call->changed, end, call);
  co_return published;
}

// StrictMessage: the arguments of a publish() under Order::strict, for as long as its task.
struct StrictMessage {
  std::string topic;
  std::string id;
  std::string headers;
  Message body;
  PublishOptions options;  // its views are of the texts above
};

Result<std::shared_ptr<const StrictMessage>> copy_of(const StreamCore& stream, std::string_view topic, Bytes body,
                                                     const PublishOptions& options) {
  return or_no_memory([&]() -> Result<std::shared_ptr<const StrictMessage>> {
    Message copy = WEFT_TRY(Message::copy_of(as_text(body)));
    auto message = std::make_shared<StrictMessage>(StrictMessage{
        std::string(topic), std::string(options.id), std::string(options.headers), std::move(copy), options});
    message->options.id = message->id;
    message->options.headers = message->headers;
    message->options.deadline = stream.answer_by(options.deadline);
    return message;
  });
}

rt::Task<Result<Published>> publish_strict(topic::StreamPtr stream, Result<std::shared_ptr<const StrictMessage>> copy) {
  if (!copy) {
    co_return copy.error();
  }
  const StrictMessage& message = **copy;
  const Link link = stream->link();
  const auto take = [&stream, &message] { return stream->take_turn(message.topic); };
  const Result<StreamCore::Turn> turn = co_await HubLink::wait_task_until<StreamCore::Turn>(
      link, &stream->strict_change(), message.options.deadline, take, stream);
  if (!turn) {
    co_return turn.error();
  }
  topic::StrictPublish series(stream, message.topic, message.body.bytes(), message.options, *turn);
  const Result<Published> published = co_await topic::run_series(link, &series);
  co_return published;
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

// --- publishing ---

AsyncPendingPublish::AsyncPendingPublish(Link link, CallPtr call) noexcept
    : link_(std::move(link)), call_(std::move(call)) {}
rt::Task<Result<Published>> AsyncPendingPublish::wait() { return wait_answer(link_, call_); }
Result<Published> AsyncPendingPublish::try_result() {
  const auto* const call = WEFT_TRY(topic::borrow(call_));
  const sync::LockGuard lock(link_->mutex());
  return topic::pending_result(*call);
}

AsyncStream::AsyncStream(std::shared_ptr<StreamCore> core) noexcept : core_(std::move(core)) {}

Link AsyncStream::link() const noexcept { return core_ == nullptr ? nullptr : core_->link(); }

rt::Task<Result<AsyncStream>> AsyncStream::declare(Link link, const StreamOptions& options) {
  return topic::run_declare<AsyncStream>(StreamCore::make(std::move(link), options), options.redeclare);
}
rt::Task<Result<std::vector<StreamInfo>>> AsyncStream::list(Link link, std::string prefix) {
  topic::StreamList list(std::move(prefix));
  Result<std::vector<StreamInfo>> all = co_await topic::run_series(link, &list);
  co_return all;
}

rt::Task<Result<Published>> AsyncStream::publish(std::string_view topic, Bytes body, const PublishOptions& options) {
  return options.order != Order::strict || core_ == nullptr
             ? topic::publish(core_, topic, body, options).task()
             : publish_strict(core_, copy_of(*core_, topic, body, options));
}
rt::Task<Result<AsyncPendingPublish>> AsyncStream::publish_later(std::string_view topic, Bytes body,
                                                                 const PublishOptions& options) {
  return later_call(link(), topic::prepare_later(core_, topic, body, options));
}
rt::Task<Result<Published>> AsyncStream::publish_all(std::span<const BatchMessage> messages,
                                                     const BatchOptions& options) {
  return topic::publish_all(core_, messages, options).task();
}
rt::Task<Result<AsyncConsumer>> AsyncStream::consumer(std::string_view name, const ConsumerOptions& options) {
  const auto make = [&](const StreamCore* core) { return core->consumer(name, options); };
  return topic::open_channel<AsyncConsumer>(link(), topic::borrow(core_).and_then(make));
}
rt::Task<Result<AsyncReader>> AsyncStream::read(const ReadOptions& options) {
  const auto make = [&](const StreamCore* core) { return core->reader(options); };
  return topic::open_channel<AsyncReader>(link(), topic::borrow(core_).and_then(make));
}

rt::Task<Result<KeptMessage>> AsyncStream::message(std::uint64_t sequence) {
  return topic::message(core_, sequence).task();
}
rt::Task<Result<KeptMessage>> AsyncStream::newest(std::string_view topic) { return topic::newest(core_, topic).task(); }
rt::Task<Result<StreamInfo>> AsyncStream::info() { return topic::info(core_).task(); }
rt::Task<Result<void>> AsyncStream::purge(std::uint64_t before) { return topic::purge(core_, before).task(); }
rt::Task<Result<void>> AsyncStream::purge_topic(std::string_view topic) {
  return topic::purge_topic(core_, topic).task();
}
rt::Task<Result<void>> AsyncStream::remove() { return topic::remove(core_).task(); }
rt::Task<Result<void>> AsyncStream::remove_consumer(std::string_view name) {
  return topic::remove_consumer(core_, name).task();
}
Survives AsyncStream::survives() const noexcept { return core_ == nullptr ? Survives::nothing : core_->survives(); }
std::string_view AsyncStream::name() const noexcept {
  return core_ == nullptr ? std::string_view() : std::string_view(core_->wire());
}

}  // namespace weft
