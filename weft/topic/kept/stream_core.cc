// SPDX-License-Identifier: MIT
#include "weft/topic/kept/stream_core.h"

#include <algorithm>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/topic/wire/batch.h"

namespace weft::topic {

namespace {

Result<ConsumerSettings> settings_of(const Names& names, const ConsumerOptions& options) {
  ConsumerSettings settings;
  if (!options.filter.empty()) {
    settings.filter = WEFT_TRY(names.filter(options.filter)).text();
  }
  settings.from = options.from;
  settings.unacked_max = options.unacked_max;
  settings.ack_wait = options.ack_wait;
  settings.tries_max = options.tries_max;
  settings.retry_waits = options.retry_waits;
  if (!options.dead_letters.empty()) {
    settings.dead_letters = WEFT_TRY(names.encode(options.dead_letters));
  }
  WEFT_TRY(check_settings(settings));
  return settings;
}

Result<void> check_queue(std::uint32_t messages, std::size_t bytes) {
  if (messages == 0 || messages > KeptChannel::kWindowMax || bytes == 0) {
    return Error(Errc::invalid_argument, "a queue has 1 to 65,536 messages, and room for bytes");
  }
  return {};
}

Result<std::uint32_t> seconds_of(Duration time_to_live) {
  if (time_to_live == Duration::zero()) {
    return std::uint32_t{0};
  }
  if (time_to_live < kTimeToLiveMin || time_to_live > kTimeToLiveMax) {
    return Error(Errc::invalid_argument, "a time to live: 1 s to 100 years");
  }
  return static_cast<std::uint32_t>(std::chrono::ceil<std::chrono::seconds>(time_to_live).count());
}

}  // namespace

Result<std::shared_ptr<StreamCore>> StreamCore::make(std::shared_ptr<HubLink> link, const StreamOptions& options) {
  return or_no_memory([&]() -> Result<std::shared_ptr<StreamCore>> {
    // Every member by its place, so that a new option is not a setting that is forgotten here.
    const auto& [name, topics, keep, survives, age_max, bytes_max, when_full, same_id_window, redeclare] = options;
    const Names& names = link->names();
    std::string wire = WEFT_TRY(names.encode(name));
    StreamSettings settings{.keep = keep,
                            .survives = survives,
                            .age_max = age_max,
                            .bytes_max = bytes_max,
                            .when_full = when_full.value_or(default_when_full(keep)),
                            .same_id_window = same_id_window};
    for (const std::string& topic : topics) {
      settings.topics.emplace_back(WEFT_TRY(names.filter(topic)).text());
    }
    WEFT_TRY(check_settings(settings));
    return std::make_shared<StreamCore>(std::move(link), std::move(wire), std::move(settings));
  });
}

StreamCore::~StreamCore() {
  if (kept_declared_) {
    link_->stop_declaring(wire_);
  }
}

Instant StreamCore::answer_by(Instant deadline) const noexcept {
  const Duration longest = settings_.same_id_window == Duration::zero() ? kAnswerWait : settings_.same_id_window / 2;
  return std::min(deadline, sys::now() + longest);
}

Result<IntrusivePtr<HubCall>> StreamCore::declare(bool redeclare) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    const std::string body = write_settings(settings_);
    return HubLink::prepare({.kind = OpKind::declare,
                             .flags = redeclare ? OpFlags::redeclare : std::uint16_t{0},
                             .name = wire_,
                             .body = as_bytes(body)},
                            OnLoss::resend_change, sys::now() + kAnswerWait);
  });
}

Result<void> StreamCore::declared(const HubCall& call) {
  return or_no_memory([&]() -> Result<void> {
    seen_->set(number_of(call.answer.message_id));
    if (const auto told = parse_stream_settings(as_text(call.answer.body)); told && !call.answer.body.empty()) {
      survives_.store(told->survives, std::memory_order_relaxed);
    }
    if (settings_.survives == Survives::nothing && !kept_declared_) {
      const std::string body = write_settings(settings_);
      WEFT_TRY(link_->keep_declaring(wire_, {.kind = OpKind::declare, .name = wire_, .body = as_bytes(body)}));
      kept_declared_ = true;
    }
    return {};
  });
}

Result<void> StreamCore::check_delay(const PublishOptions& options) {
  if (options.delay < Duration::zero() || options.delay > kDelayMax) {
    return Error(Errc::invalid_argument, "a delay: 0 to 100 years");
  }
  if (options.delay != Duration::zero() && (options.expect_last || options.order == Order::strict)) {
    return Error(Errc::invalid_argument, "a message with a delay has no expected last sequence and no strict order");
  }
  return {};
}

Result<IntrusivePtr<HubCall>> StreamCore::append(std::string_view topic, Bytes body, const PublishOptions& options,
                                                 Flags flags) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    return append_wire(WEFT_TRY(link_->names().encode(topic)), body, options, flags);
  });
}

Result<IntrusivePtr<HubCall>> StreamCore::append_wire(std::string_view wire, Bytes body, const PublishOptions& options,
                                                      Flags flags) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    if (!options.headers.empty() && !is_header_block(options.headers)) {
      return Error(Errc::invalid_argument, "the headers are no block of Headers");
    }
    const bool remembered = settings_.same_id_window != Duration::zero();
    const std::string own = options.id.empty() && remembered ? link_->next_message_id() : std::string();
    Op op{.kind = OpKind::append, .flags = OpFlags::run, .name = wire_, .key = wire};
    op.message_id = options.id.empty() ? std::string_view(own) : options.id;
    op.headers = as_bytes(options.headers);
    op.body = body;
    if (options.expect_last) {
      op.flags |= OpFlags::expect_last;
      op.number = *options.expect_last;
    }
    op.second = options.expect_instance != 0 ? options.expect_instance : seen_->last();
    op.expires_after = WEFT_TRY(seconds_of(options.time_to_live));
    op.flags |= op.expires_after != 0 ? OpFlags::expires : std::uint16_t{0};
    WEFT_TRY(check_delay(options));
    op.delay_ns = static_cast<std::uint64_t>(options.delay.count());
    op.flags |= op.delay_ns != 0 ? OpFlags::delayed : std::uint16_t{0};
    op.flags |= flags.expect_absent ? OpFlags::expect_absent : std::uint16_t{0};
    op.flags |= flags.erased ? OpFlags::erased : std::uint16_t{0};
    return seeing(
        HubLink::prepare(op, remembered ? OnLoss::resend_same_id : OnLoss::give_up, answer_by(options.deadline)),
        op.second);
  });
}

Result<IntrusivePtr<HubCall>> StreamCore::append_all(std::span<const BatchMessage> messages,
                                                     const BatchOptions& options) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    if (messages.empty()) {
      return Error(Errc::invalid_argument, "a batch has 1 to 1,000 messages");
    }
    // The ids of a batch that comes again tell the hub so.
    const bool remembered = settings_.same_id_window != Duration::zero();
    const bool lacks_id =
        std::any_of(messages.begin(), messages.end(), [](const auto& each) { return each.id.empty(); });
    const std::string own = remembered && lacks_id ? link_->next_message_id() : std::string();
    std::vector<std::uint8_t> body;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const BatchMessage& message = messages[i];
      if (!message.headers.empty() && !is_header_block(message.headers)) {
        return Error(Errc::invalid_argument, "the headers are no block of Headers");
      }
      const std::string wire = WEFT_TRY(link_->names().encode(message.topic));
      Op op{.kind = OpKind::append, .key = wire, .message_id = message.id};
      op.headers = as_bytes(message.headers);
      op.body = message.body;
      if (message.expect_last) {
        op.flags |= OpFlags::expect_last;
        op.number = *message.expect_last;
      }
      op.expires_after = WEFT_TRY(seconds_of(message.time_to_live));
      op.flags |= op.expires_after != 0 ? OpFlags::expires : std::uint16_t{0};
      WEFT_TRY(add_to_batch(op, i, body));
    }
    Op op{.kind = OpKind::append_all, .name = wire_, .message_id = own, .body = body};
    op.second = options.expect_instance != 0 ? options.expect_instance : seen_->last();
    return seeing(
        HubLink::prepare(op, remembered ? OnLoss::resend_same_id : OnLoss::give_up, answer_by(options.deadline)),
        op.second);
  });
}

Result<IntrusivePtr<HubCall>> StreamCore::get(std::string_view topic, std::uint64_t sequence) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    if (sequence == 0) {
      return get_wire(WEFT_TRY(link_->names().encode(topic)));
    }
    const std::uint64_t instance = seen_->last();
    return seeing(
        HubLink::prepare(
            {.kind = OpKind::get, .flags = OpFlags::by_sequence, .number = sequence, .second = instance, .name = wire_},
            OnLoss::resend, sys::now() + kAnswerWait),
        instance);
  });
}
Result<IntrusivePtr<HubCall>> StreamCore::get_wire(std::string_view wire) const {
  const std::uint64_t instance = seen_->last();
  return seeing(HubLink::prepare({.kind = OpKind::get, .second = instance, .name = wire_, .key = wire}, OnLoss::resend,
                                 sys::now() + kAnswerWait),
                instance);
}

Result<IntrusivePtr<HubCall>> StreamCore::list(std::string_view behind) const {
  return HubLink::prepare({.kind = OpKind::list, .name = wire_, .key = behind}, OnLoss::resend,
                          sys::now() + kAnswerWait);
}
Result<IntrusivePtr<HubCall>> StreamCore::info_of(std::string_view wire) {
  return HubLink::prepare({.kind = OpKind::info, .name = wire}, OnLoss::resend, sys::now() + kAnswerWait);
}
Result<IntrusivePtr<HubCall>> StreamCore::names(std::string_view behind) {
  return HubLink::prepare({.kind = OpKind::info, .key = behind}, OnLoss::resend, sys::now() + kAnswerWait);
}
Result<IntrusivePtr<HubCall>> StreamCore::purge(std::uint64_t before) const {
  return HubLink::prepare({.kind = OpKind::purge, .number = before, .second = seen_->last(), .name = wire_},
                          OnLoss::resend_change, sys::now() + kAnswerWait);
}
Result<IntrusivePtr<HubCall>> StreamCore::purge_topic(std::string_view topic) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<HubCall>> {
    const std::string wire = WEFT_TRY(link_->names().encode(topic));
    return HubLink::prepare({.kind = OpKind::purge, .name = wire_, .key = wire}, OnLoss::give_up,
                            sys::now() + kAnswerWait);
  });
}
Result<IntrusivePtr<HubCall>> StreamCore::remove() const {
  return HubLink::prepare({.kind = OpKind::remove, .name = wire_}, OnLoss::resend_change, sys::now() + kAnswerWait);
}
Result<IntrusivePtr<HubCall>> StreamCore::remove_consumer(std::string_view consumer) const {
  if (consumer.empty()) {
    return Error(Errc::invalid_argument, "a consumer has a name");
  }
  return HubLink::prepare({.kind = OpKind::remove, .name = wire_, .key = consumer}, OnLoss::resend_change,
                          sys::now() + kAnswerWait);
}

Result<IntrusivePtr<HubCall>> StreamCore::seeing(Result<IntrusivePtr<HubCall>> call,
                                                 std::uint64_t instance) const noexcept {
  if (call) {
    (*call)->instance = instance;
    (*call)->seen = seen_;
  }
  return call;
}

namespace {

// `told`: by the answer, if its instance is not the one of the request.
std::uint64_t seen_in(const HubCall& call, std::string_view told) noexcept {
  const std::uint64_t instance = told.empty() ? call.instance : number_of(told);
  if (call.seen != nullptr) {
    call.seen->set(instance);
  }
  return instance;
}

}  // namespace

Published StreamCore::published(const HubCall& call) noexcept {
  return {call.answer.number, call.answer.has(OpFlags::duplicate), seen_in(call, call.answer.message_id)};
}
Result<KeptMessage> StreamCore::message(HubCall& call, const Names& names) {
  const std::uint64_t instance = seen_in(call, call.answer.name);
  return KeptMessage::of(std::move(call.bytes), names, instance);
}

Result<std::optional<std::string>> StreamCore::add_names(const HubCall& call, std::string_view prefix,
                                                         std::vector<std::string>& names) {
  return or_no_memory([&]() -> Result<std::optional<std::string>> {
    std::string_view text = as_text(call.answer.body);
    std::string_view last;
    while (!text.empty()) {
      const std::string_view name = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), name.size() + 1));
      if (name <= last) {
        return Error(Errc::protocol_error, "the answer has names of streams in a wrong order");
      }
      last = name;
      if (!name.starts_with(prefix)) {
        continue;
      }
      if (names.size() >= kStreamsMax) {
        return Error(Errc::resource_exhausted, "more than 65,536 streams");
      }
      names.emplace_back(name);
    }
    return call.answer.has(OpFlags::more) && !last.empty() ? std::optional<std::string>(last) : std::nullopt;
  });
}

Result<StreamInfo> StreamCore::read_info(const HubCall& call) const {
  auto info = read_info(call, wire_);
  if (info) {
    seen_->set(info->instance);
  }
  return info;
}
Result<StreamInfo> StreamCore::read_info(const HubCall& call, std::string_view wire) {
  return or_no_memory([&]() -> Result<StreamInfo> {
    StreamInfo info;
    info.name = wire;
    info.instance = number_of(call.answer.message_id);
    std::string settings;
    bool counts = false;  // they stand behind the settings
    std::string_view text = as_text(call.answer.body);
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      const std::size_t equals = std::min(line.find('='), line.size());
      const std::string_view name = line.substr(0, equals);
      const std::uint64_t number = number_of(line.substr(std::min(line.size(), equals + 1)));
      if (name == "first") {
        info.first = number;
        counts = true;
      } else if (!counts) {
        settings.append(line).append("\n");
      } else if (name == "next") {
        info.next = number;
      } else if (name == "bytes") {
        info.bytes = number;
      } else if (name == "delayed") {
        info.delayed = number;
      } else if (name == "evicted") {
        info.evicted = number;
      } else if (name == "dropped_unread") {
        info.dropped_unread = number;
      } else if (name == "damaged") {
        info.damaged = number;
      } else if (name == "consumer") {
        info.consumers.push_back({std::string(line.substr(equals + 1)), 0, 0});
      } else if (name == "floor" && !info.consumers.empty()) {
        info.consumers.back().floor = number;
      } else if (name == "waiting" && !info.consumers.empty()) {
        info.consumers.back().waiting = number;
      }
    }
    info.settings = WEFT_TRY(parse_stream_settings(settings));
    return info;
  });
}

Result<void> StreamCore::removed(const HubCall& call, const Result<void>& result) noexcept {
  return !result && result.error() == Errc::not_found && call.resent ? Result<void>() : result;
}

Result<IntrusivePtr<KeptChannel>> StreamCore::open(KeptChannel* made) const {
  auto channel = IntrusivePtr<KeptChannel>::adopt(made);
  channel->open_until = sys::now() + kAnswerWait;
  channel->seen = seen_;
  WEFT_TRY(link_->open(*channel));
  return channel;
}

Result<IntrusivePtr<KeptChannel>> StreamCore::consumer(std::string_view name, const ConsumerOptions& options) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<KeptChannel>> {
    if (name.empty() || name.size() > kOpNameMax) {
      return Error(Errc::invalid_argument, "a consumer has a name of up to 255 bytes");
    }
    WEFT_TRY(check_queue(options.queue_messages_max, options.queue_bytes_max));
    ConsumerSettings settings = WEFT_TRY(settings_of(link_->names(), options));
    std::optional<std::uint8_t> priority;
    if (options.priority) {
      priority = WEFT_TRY(priority_of(*options.priority));
    }
    return open(new KeptChannel(wire_, std::string(name), std::move(settings), options.queue_messages_max,
                                options.queue_bytes_max, options.redeclare, priority));
  });
}

Result<IntrusivePtr<KeptChannel>> StreamCore::reader(const ReadOptions& options) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<KeptChannel>> {
    ConsumerOptions as;
    as.filter = options.filter;
    as.from = options.from;
    return reader_wire(WEFT_TRY(settings_of(link_->names(), as)), options.queue_messages_max, options.queue_bytes_max);
  });
}
Result<IntrusivePtr<KeptChannel>> StreamCore::reader_wire(ConsumerSettings settings, std::uint32_t messages,
                                                          std::size_t bytes) const {
  return or_no_memory([&]() -> Result<IntrusivePtr<KeptChannel>> {
    WEFT_TRY(check_queue(messages, bytes));
    return open(new KeptChannel(wire_, {}, std::move(settings), messages, bytes));
  });
}

Result<StreamCore::Turn> StreamCore::take_turn(const std::string& topic) {
  return or_no_memory([&]() -> Result<Turn> {
    auto found = strict_.find(topic);
    if (found == strict_.end()) {
      if (strict_.size() >= kStrictTopicsMax) {
        // The hub has the last sequence of a topic without a publisher.
        const auto idle =
            std::find_if(strict_.begin(), strict_.end(), [](const auto& each) { return !each.second.busy; });
        if (idle != strict_.end()) {
          strict_.erase(idle);
        }
      }
      if (strict_.size() >= kStrictTopicsMax) {
        return Error(Errc::resource_exhausted, "65,536 topics with a strict order have a message under way");
      }
      found = strict_.emplace(topic, Strict{}).first;
    }
    if (found->second.busy) {
      return Errc::would_block;
    }
    found->second.busy = true;
    return found->second.turn;
  });
}

void StreamCore::end_turn(std::string_view topic, const Turn& next) noexcept {
  if (const auto found = strict_.find(topic); found != strict_.end()) {
    found->second = {next, false};
    if (!next.known) {
      strict_.erase(found);
    }
  }
  strict_change_.notify();
}

}  // namespace weft::topic
