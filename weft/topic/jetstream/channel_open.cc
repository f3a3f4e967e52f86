// SPDX-License-Identifier: MIT
// Channels: the consumers of JetStream.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "weft/rt/task/task_time.h"
#include "weft/topic/jetstream/channels.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Duration kOpenAgainMost = std::chrono::seconds(1);  // between two attempts
constexpr Duration kOthersLook = std::chrono::milliseconds(100);
constexpr Duration kOthersMost = std::chrono::seconds(1);  // for another member, which creates or moves the consumer
// Refusals because another member has created, changed or removed the consumer since the look at it.
constexpr std::uint32_t kOfOthers[] = {10012, 10013, js::kConsumerNotFound, 10148, 10149};
constexpr std::uint32_t kWorkHasConsumer = 10099;  // a work stream has a consumer without a filter
constexpr std::uint32_t kWorkHasTopics = 10100;    // a work stream has a consumer of these topics
constexpr Error kStreamGone(Errc::not_found, "the stream is gone");
constexpr Error kOtherFilter(Errc::not_supported, "the filter of a consumer cannot be changed");
constexpr Error kReadsWork(Errc::not_supported, "a work stream is read by its consumer");
constexpr Error kOtherConsumer(Errc::conflict, "the consumer is there with other settings");
constexpr Error kNoPriorities(Errc::not_supported, "a priority on NATS: servers since 2.12");
constexpr Error kWithoutPriorities(
    Errc::conflict, "the consumer has no priorities, since its first member named none: redeclare changes that");

}  // namespace

rt::Task<void> Channels::begin(Channels* self, std::shared_ptr<PullChannel> channel, std::unique_ptr<Asked> asked) {
  channel->opening = true;
  const Opened opened = co_await connect(self, channel, asked->op.has(OpFlags::redeclare));
  channel->opening = false;
  if (channel->ended) {
    co_return;
  }
  if (opened.error != Errc::ok) {
    self->engine_.refuse(*asked, opened.error, opened.text);
    self->shut(*channel);
    co_return;
  }
  const std::string instance = std::to_string(channel->instance);
  const std::string found = channel->joins ? write_settings(channel->settings) : std::string();
  self->engine_.answer(*asked, {.number = channel->reads() ? opened.first : opened.floor,
                                .second = opened.next,
                                .message_id = instance,
                                .body = channel->reads() ? Bytes()
                                        : channel->joins ? as_bytes(found)
                                                         : asked->op.body});
  channel->open = true;
  self->catch_up(*channel);
  self->pull(*channel);
}

// After a change of the connection, of a leader, or of the consumer. Only an answer about the stream or the consumer,
// and a refusal of the user, end the channel. All others may pass: a login that expired, servers without room, a
// server whose JetStream is off.
rt::Task<void> Channels::begin_again(Channels* self, std::shared_ptr<PullChannel> channel) {
  for (Duration pause = Engine::kPause;; pause = std::min(2 * pause, kOpenAgainMost)) {
    const auto slept = co_await rt::sleep(pause);
    if (!slept || channel->ended) {
      co_return;
    }
    const Opened opened = co_await connect(self, channel, false);
    if (channel->ended) {
      co_return;
    }
    if (opened.error == Errc::ok) {
      break;
    }
    if (opened.error == Errc::cancelled || opened.error == Errc::closed) {
      co_return;
    }
    if (opened.error == Errc::not_found || opened.error == Errc::conflict || opened.error == Errc::not_permitted ||
        opened.error == Errc::invalid_argument) {
      self->finish(*channel, opened.error, opened.text);
      co_return;
    }
  }
  channel->opening = false;
  channel->open = true;
  self->catch_up(*channel);
  self->pull(*channel);
}

rt::Task<Channels::Opened> Channels::connect(Channels* self, std::shared_ptr<PullChannel> channel, bool redeclare) {
  Opened opened;
  const KeptStreams::Look found = co_await KeptStreams::look(&self->streams_, channel->stream);
  if (!found || !found->ok()) {
    opened.error = error_of(found);
    opened.text = text_of(found);
    co_return opened;
  }
  const std::uint64_t instance = instance_of(found->value);
  if (channel->instance != 0 && channel->instance != instance) {
    opened.error = kStreamGone;
    co_return opened;
  }
  const js::StreamReport& info = found->value;
  const std::uint64_t next = info.state.last_sequence + 1;
  if (channel->reads() && info.config.retention == js::Retention::work_queue) {
    opened.error = kReadsWork;
    co_return opened;
  }
  if (channel->reads()) {
    const bool goes_on = channel->next != 0 && (!channel->by_topic() || channel->caught_up);
    const From from = goes_on ? From::sequence(channel->next) : channel->settings.from;
    auto config = reader_config(channel->stream->names, from, channel->settings.filter);
    if (!config) {
      opened.error = config.error();
      co_return opened;
    }
    channel->config = *std::move(config);
    opened = co_await connect_reader(self, channel);
    opened.first = channel->next;
  } else {
    opened = co_await connect_consumer(self, channel, redeclare);
  }
  opened.next = next;
  if (opened.error != Errc::ok || channel->ended) {
    co_return opened;
  }
  channel->instance = instance;
  if (const auto subscribed = self->subscribe(*channel); !subscribed) {
    opened.error = subscribed.error();
  }
  co_return opened;
}

rt::Task<Channels::Opened> Channels::connect_reader(Channels* self, std::shared_ptr<PullChannel> channel) {
  Opened opened;
  channel->name = self->engine_.fresh_name();
  channel->config.name = channel->name;
  const auto made = co_await Engine::call(
      &self->engine_, js::create_consumer(channel->stream->names.stream(), channel->config), js::read_consumer_info);
  if (!made || !made->ok()) {
    opened.error = error_of(made);
    opened.text = text_of(made);
    co_return opened;
  }
  channel->consumer_sequence = 0;
  channel->to_catch_up = made->value.pending;
  if (channel->next == 0 && !channel->by_topic()) {
    channel->next = made->value.delivered.stream + 1;  // the place stays if the connection ends before a message
  }
  co_return opened;
}

// Repeats attempt_consumer() while another member creates, changes or moves the consumer.
rt::Task<Channels::Opened> Channels::connect_consumer(Channels* self, std::shared_ptr<PullChannel> channel,
                                                      bool redeclare) {
  const Instant end = deadline_after(self->engine_.now(), kOthersMost);
  for (;;) {
    Opened opened = co_await attempt_consumer(self, channel, redeclare);
    if (!opened.again || self->engine_.now() >= end) {
      co_return opened;
    }
    const auto slept = co_await rt::sleep(kOthersLook);
    if (!slept) {
      opened.error = slept.error();
      co_return opened;
    }
  }
}

rt::Task<Channels::Opened> Channels::attempt_consumer(Channels* self, std::shared_ptr<PullChannel> channel,
                                                      bool redeclare) {
  Opened opened;
  const auto fail = [&opened](const auto& reply) {
    opened.error = error_of(reply);
    opened.text = text_of(reply);
  };
  const std::string& stream = channel->stream->names.stream();
  const js::ConsumerConfig& own = channel->config;
  const bool was_open = channel->instance != 0;
  if (channel->request.priority && !takes_priorities(self->engine_.client().server_version())) {
    opened.error = kNoPriorities;
    co_return opened;
  }
  const auto info =
      co_await Engine::call(&self->engine_, js::consumer_info(stream, channel->name), js::read_consumer_info);
  const bool there = info && info->ok();
  const bool absent = info && info->failure.number == js::kConsumerNotFound;
  if (!there && (!absent || was_open || channel->joins)) {
    fail(info);
    opened.again = absent && was_open;  // the member that moves it makes it anew
    co_return opened;
  }
  bool moves = false;  // a consumer that begins elsewhere is another one
  if (there) {
    const js::ConsumerConfig& found = info->value.config;
    opened.floor = info->value.ack_floor.stream + 1;
    if (channel->joins && !was_open) {
      channel->settings = settings_of(channel->stream->names, found);
      channel->config = found;
    }
    channel->config.priority_policy = found.priority_policy;
    channel->config.priority_groups = found.priority_groups;
    const bool same = was_open || same_consumer(found, own);
    const bool lacks = channel->request.priority && !channel->prioritized();
    if (same && !lacks) {
      co_return opened;
    }
    if (!redeclare || found.filters != own.filters) {
      opened.error = redeclare ? kOtherFilter : same ? kWithoutPriorities : kOtherConsumer;
      co_return opened;
    }
    moves = found.deliver != own.deliver || found.start_sequence != own.start_sequence ||
            found.start_time != own.start_time;
  }
  if (moves) {
    const auto removed =
        co_await Engine::call(&self->engine_, js::delete_consumer(stream, channel->name), js::read_done);
    if (!removed || (!removed->ok() && removed->failure.number != js::kConsumerNotFound)) {
      fail(removed);
      co_return opened;
    }
  }
  if (channel->request.priority && !channel->prioritized()) {
    channel->config.priority_policy = kPrioritized;
    channel->config.priority_groups.assign(1, std::string(kPriorityGroup));
  }
  auto request =
      js::create_consumer(stream, own, there && !moves ? js::ConsumerAction::update : js::ConsumerAction::create);
  const auto made = co_await Engine::call(&self->engine_, std::move(request), js::read_consumer_info);
  if (made && made->ok()) {
    if (channel->request.priority && made->value.config.priority_policy != kPrioritized) {
      opened.error = kNoPriorities;  // the servers of the cluster have several versions
      co_return opened;
    }
    opened.floor = made->value.ack_floor.stream + 1;
    co_return opened;
  }
  fail(made);
  if (made && (made->failure.number == kWorkHasConsumer || made->failure.number == kWorkHasTopics)) {
    opened.error = Error(Errc::conflict, "another consumer of the work stream has these topics");
  }
  opened.again =
      made && std::find(std::begin(kOfOthers), std::end(kOfOthers), made->failure.number) != std::end(kOfOthers);
  co_return opened;
}

}  // namespace weft::topic
