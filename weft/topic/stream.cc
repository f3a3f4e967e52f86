// SPDX-License-Identifier: MIT
#include "weft/topic/stream.h"

#include <string>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/topic/kept/moved_from.h"
#include "weft/topic/kept/stream_calls.h"

namespace weft {

using topic::StreamCore;

// --- PendingPublish ---

PendingPublish::PendingPublish(std::shared_ptr<topic::HubLink> link, IntrusivePtr<topic::HubCall> call) noexcept
    : link_(std::move(link)), call_(std::move(call)) {}
PendingPublish::PendingPublish(PendingPublish&&) noexcept = default;
PendingPublish& PendingPublish::operator=(PendingPublish&&) noexcept = default;
PendingPublish::~PendingPublish() = default;

Result<Published> PendingPublish::wait() { return wait_until(kNever); }
Result<Published> PendingPublish::wait_until(Instant deadline) {
  auto* const call = WEFT_TRY(topic::borrow(call_));
  return link_->wait(call->changed, deadline, [&] { return topic::pending_result(*call); });
}
Result<Published> PendingPublish::try_result() {
  auto* const call = WEFT_TRY(topic::borrow(call_));
  const sync::LockGuard lock(link_->mutex());
  const auto result = topic::pending_result(*call);
  if (!result && result.error() == Errc::would_block) {
    call->changed.found_nothing();
    link_->flush_sent();  // the caller is about to wait
  }
  return result;
}
Result<int> PendingPublish::descriptor() {
  auto* const call = WEFT_TRY(topic::borrow(call_));
  const sync::LockGuard lock(link_->mutex());
  return call->changed.descriptor();
}

// --- Stream ---

Stream::Stream(std::shared_ptr<StreamCore> core) noexcept : core_(std::move(core)) {}
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;
Stream::~Stream() = default;

Result<Stream> Stream::declare(std::shared_ptr<topic::HubLink> link, const StreamOptions& options) {
  return topic::wait_for_declared<Stream>(StreamCore::make(std::move(link), options), options.redeclare);
}
Result<std::vector<StreamInfo>> Stream::list(const std::shared_ptr<topic::HubLink>& link, std::string_view prefix) {
  return or_no_memory([&]() -> Result<std::vector<StreamInfo>> {
    topic::StreamList list{std::string(prefix)};
    return topic::wait_for_series(*link, list);
  });
}

Result<PendingPublish> Stream::publish_later(std::string_view topic, Bytes body, const PublishOptions& options) {
  const auto core = core_;
  auto call = WEFT_TRY(topic::prepare_later(core, topic, body, options));
  topic::HubLink& link = *core->link();
  WEFT_TRY(link.wait(link.place(), call->deadline, [&] { return link.in_lock(), link.start(call); }));
  return PendingPublish(core->link(), std::move(call));
}
Result<Published> Stream::publish(std::string_view topic, Bytes body, const PublishOptions& options) {
  return options.order == Order::strict ? publish_strict(topic, body, options)
                                        : topic::publish(core_, topic, body, options).wait();
}

Result<Published> Stream::publish_all(std::span<const BatchMessage> messages, const BatchOptions& options) {
  return topic::publish_all(core_, messages, options).wait();
}

Result<Published> Stream::publish_strict(std::string_view topic, Bytes body, PublishOptions options) {
  const auto core = WEFT_TRY(topic::share(core_));
  topic::HubLink& link = *core->link();
  const std::string name = WEFT_TRY(or_no_memory([&] { return Result<std::string>(std::string(topic)); }));
  options.deadline = core->answer_by(options.deadline);
  const auto turn = WEFT_TRY(link.wait(core->strict_change(), options.deadline, [&] { return core->take_turn(name); }));
  topic::StrictPublish series(core, name, body, options, turn);
  return topic::wait_for_series(link, series);
}

Result<Consumer> Stream::consumer(std::string_view name, const ConsumerOptions& options) {
  const auto core = WEFT_TRY(topic::share(core_));
  return topic::wait_for_channel<Consumer>(core->link(), core->consumer(name, options));
}
Result<Reader> Stream::read(const ReadOptions& options) {
  const auto core = WEFT_TRY(topic::share(core_));
  return topic::wait_for_channel<Reader>(core->link(), core->reader(options));
}

Result<KeptMessage> Stream::message(std::uint64_t sequence) { return topic::message(core_, sequence).wait(); }
Result<KeptMessage> Stream::newest(std::string_view topic) { return topic::newest(core_, topic).wait(); }
Result<StreamInfo> Stream::info() { return topic::info(core_).wait(); }
Result<void> Stream::purge(std::uint64_t before) { return topic::purge(core_, before).wait(); }
Result<void> Stream::purge_topic(std::string_view topic) { return topic::purge_topic(core_, topic).wait(); }
Result<void> Stream::remove() { return topic::remove(core_).wait(); }
Result<void> Stream::remove_consumer(std::string_view name) { return topic::remove_consumer(core_, name).wait(); }

Survives Stream::survives() const noexcept { return core_ == nullptr ? Survives::nothing : core_->survives(); }
std::string_view Stream::name() const noexcept { return core_ == nullptr ? std::string_view() : core_->wire(); }

}  // namespace weft
