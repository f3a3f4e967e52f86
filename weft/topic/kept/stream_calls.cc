// SPDX-License-Identifier: MIT
#include "weft/topic/kept/stream_calls.h"

#include <utility>

#include "weft/base/no_memory.h"
#include "weft/sync/lock.h"
#include "weft/topic/kept/moved_from.h"

namespace weft::topic {

namespace {

using CallPtr = IntrusivePtr<HubCall>;

Result<void> read_end(StreamCore& /*stream*/, HubCall& /*call*/, const Result<void>& ran) { return ran; }
Result<void> read_removal(StreamCore& /*stream*/, HubCall& call, const Result<void>& ran) {
  return StreamCore::removed(call, ran);
}
Result<KeptMessage> read_message(StreamCore& stream, HubCall& call, const Result<void>& ran) {
  WEFT_TRY(ran);
  return StreamCore::message(call, stream.link()->names());
}

}  // namespace

StreamOperation<void> declare(const StreamPtr& stream, bool redeclare) {
  return {stream, [&](const StreamCore& core) { return core.declare(redeclare); },
          [](StreamCore& core, HubCall& call, const Result<void>& ran) { return ran ? core.declared(call) : ran; }};
}
StreamOperation<Published> publish(const StreamPtr& stream, std::string_view topic, Bytes body,
                                   const PublishOptions& options) {
  return {stream, [&](const StreamCore& core) { return core.append(topic, body, options, {}); },
          [](StreamCore& /*core*/, HubCall& call, const Result<void>& ran) {
            return ran ? Result<Published>(StreamCore::published(call)) : ran.error();
          }};
}
StreamOperation<Published> publish_all(const StreamPtr& stream, std::span<const BatchMessage> messages,
                                       const BatchOptions& options) {
  return {stream, [&](const StreamCore& core) { return core.append_all(messages, options); },
          [](StreamCore& /*core*/, HubCall& call, const Result<void>& ran) {
            return ran ? Result<Published>(StreamCore::published(call)) : ran.error();
          }};
}
StreamOperation<KeptMessage> message(const StreamPtr& stream, std::uint64_t sequence) {
  return {stream,
          [&](const StreamCore& core) {
            return sequence == 0 ? Result<CallPtr>(Error(Errc::not_found, "sequences begin at 1"))
                                 : core.get({}, sequence);
          },
          read_message};
}
StreamOperation<KeptMessage> newest(const StreamPtr& stream, std::string_view topic) {
  return {stream, [&](const StreamCore& core) { return core.get(topic, 0); }, read_message};
}
StreamOperation<StreamInfo> info(const StreamPtr& stream) {
  return {stream, [](const StreamCore& core) { return core.info(); },
          [](StreamCore& core, HubCall& call, const Result<void>& ran) {
            return ran ? core.read_info(call) : Result<StreamInfo>(ran.error());
          }};
}
StreamOperation<void> purge(const StreamPtr& stream, std::uint64_t before) {
  return {stream, [&](const StreamCore& core) { return core.purge(before); }, read_end};
}
StreamOperation<void> purge_topic(const StreamPtr& stream, std::string_view topic) {
  return {stream, [&](const StreamCore& core) { return core.purge_topic(topic); }, read_end};
}
StreamOperation<void> remove(const StreamPtr& stream) {
  return {stream, [](const StreamCore& core) { return core.remove(); }, read_removal};
}
StreamOperation<void> remove_consumer(const StreamPtr& stream, std::string_view name) {
  return {stream, [&](const StreamCore& core) { return core.remove_consumer(name); }, read_removal};
}

Result<CallPtr> prepare_later(const StreamPtr& stream, std::string_view topic, Bytes body,
                              const PublishOptions& options) {
  const auto* const core = WEFT_TRY(borrow(stream));
  if (options.order == Order::strict) {
    return Error(Errc::invalid_argument, "a strict order has one message of a topic under way: publish()");
  }
  return core->append(topic, body, options, {});
}
Result<Published> pending_result(const HubCall& call) {
  WEFT_TRY(HubLink::outcome(call));
  return StreamCore::published(call);
}

// --- StreamList ---

Result<CallPtr> StreamList::next() {
  if (behind_) {
    return StreamCore::names(*behind_);
  }
  return asked_ < names_.size() ? StreamCore::info_of(names_[asked_++]) : CallPtr();
}
Result<void> StreamList::take(const HubCall& call, const Result<void>& ran) {
  return or_no_memory([&]() -> Result<void> {
    if (behind_) {
      WEFT_TRY(ran);
      behind_ = WEFT_TRY(StreamCore::add_names(call, prefix_, names_));
    } else if (ran) {
      all_.push_back(WEFT_TRY(StreamCore::read_info(call, names_[asked_ - 1])));
    } else if (ran.error() != Errc::not_found) {  // the stream was removed meanwhile
      return ran.error();
    }
    return {};
  });
}

// --- StrictPublish ---

StrictPublish::~StrictPublish() {
  const sync::LockGuard lock(stream_->link()->mutex());
  stream_->end_turn(topic_, next_);
}
Result<CallPtr> StrictPublish::next() {
  if (step_ == Step::appended) {
    return CallPtr();
  }
  WEFT_TRY(StreamCore::check_delay(options_));
  if (step_ == Step::begun && !options_.expect_last && !turn_.known) {
    step_ = Step::asked;
    return stream_->get(topic_, 0);
  }
  if (!options_.expect_last) {
    options_.expect_last = turn_.last;
    options_.expect_instance = turn_.instance;
  }
  step_ = Step::appended;
  return stream_->append(topic_, body_, options_, {});
}
Result<void> StrictPublish::take(HubCall& call, const Result<void>& ran) {
  if (step_ == Step::asked && !ran && ran.error() == Errc::not_found) {
    return {};  // the topic has no message: its last sequence is 0
  }
  WEFT_TRY(ran);
  if (step_ == Step::asked) {
    const KeptMessage message = WEFT_TRY(StreamCore::message(call, stream_->link()->names()));
    turn_ = {message.sequence(), message.stream_instance(), true};
    return {};
  }
  published_ = StreamCore::published(call);
  if (!published_.duplicate && options_.time_to_live == Duration::zero()) {
    next_ = {published_.sequence, published_.instance, true};
  }
  return {};
}

}  // namespace weft::topic
