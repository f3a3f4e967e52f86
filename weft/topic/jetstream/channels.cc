// SPDX-License-Identifier: MIT
// Channels: the ops of a handle, and the requests for messages.
#include "weft/topic/jetstream/channels.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "weft/base/no_memory.h"
#include "weft/nats/jetstream/message.h"
#include "weft/rt/task/task_time.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Duration kPullExpires = std::chrono::seconds(30);
constexpr Duration kHeartbeat = std::chrono::seconds(5);
constexpr Duration kPullSilent = 2 * kHeartbeat + std::chrono::seconds(2);  // then the requests are lost
constexpr Duration kPlaceSilent = 2 * kHeartbeat;  // then a reader checks whether messages were forgotten
constexpr Duration kRenewMin = std::chrono::milliseconds(10);
constexpr Duration kPullAgain = std::chrono::milliseconds(100);  // after a refusal
constexpr Duration kStandsStill = std::chrono::seconds(1);       // a queue from which no program takes
constexpr int kRenewals = 3;                                     // of a message within its ack_wait

// The time after which other members get messages of the channel's queue. Of a prioritized consumer members of other
// numbers may get them.
Duration still_after(const PullChannel& channel) noexcept {
  return channel.prioritized() && !channel.request.stands_still ? std::max(kStandsStill, channel.settings.ack_wait)
                                                                : kStandsStill;
}

}  // namespace

std::string Channels::key_of(std::string_view stream, std::string_view consumer) {
  return std::string(stream).append(1, '\0').append(consumer);
}

void Channels::close() noexcept {
  engine_.loop().timers().cancel(std::exchange(timer_, {}));
  for (auto& [key, channel] : channels_) {
    channel->ended = true;
    for (const auto& [sequence, held] : channel->queue) {
      publish(held.reply, js::kNak);
    }
  }
  channels_.clear();
}

void Channels::publish(std::string_view reply, std::string_view body) {
  (void)engine_.client().publish(reply, as_bytes(body));
}

// --- ops ---

void Channels::open(std::unique_ptr<Asked> asked) {
  auto channel = make(*asked);
  if (!channel) {
    return engine_.refuse(*asked, channel.error());
  }
  channels_.emplace(Key(asked->client, asked->op.id), *channel);
  arm();
  engine_.spawn(begin(this, *channel, std::move(asked)));
}

Result<std::shared_ptr<PullChannel>> Channels::make(const Asked& asked) {
  const Op& op = asked.op;
  if (op.number > kCreditMax) {
    return Error(Errc::invalid_argument, "more credit than 1,048,576");
  }
  if (channels_.size() >= kChannelsMax) {
    return Error(Errc::resource_exhausted, "4,096 consumers and readers of a handle");
  }
  if (channels_.contains(Key(asked.client, op.id))) {
    return Error(Errc::invalid_state, "the id is an open channel's");
  }
  auto channel = std::make_shared<PullChannel>();
  channel->client = asked.client;
  channel->id = op.id;
  channel->stream = WEFT_TRY(streams_.find(op.name));
  channel->settings = WEFT_TRY(parse_consumer_settings(as_text(op.body)));
  channel->credit = op.number;
  if (op.kind == OpKind::consume) {
    channel->consumer = op.key;
    channel->joins = op.body.empty();
    channel->config = WEFT_TRY(consumer_config(channel->stream->names, op.key, channel->settings));
    channel->name = channel->config.name;
    if (op.has(OpFlags::prioritized)) {
      channel->request.priority = WEFT_TRY(priority_of(op.second));
    }
  }
  return channel;
}

void Channels::credit(const Asked& asked) {
  const Op& op = asked.op;
  const auto found = channels_.find(Key(asked.client, op.id));
  if (found == channels_.end()) {
    if (!op.has(OpFlags::quiet)) {
      engine_.refuse(asked, Error(Errc::not_found, "no such channel"));
    }
    return;  // a channel that ended meanwhile: the handle is about to read so
  }
  PullChannel& channel = *found->second;
  if (op.number > kCreditMax - std::min(channel.credit, kCreditMax)) {
    return engine_.refuse(asked, Error(Errc::invalid_argument, "more credit than 1,048,576"));
  }
  channel.credit += op.number;
  engine_.answer(asked, {.number = channel.credit});
  if (op.number == 0) {  // a member that gave messages back: its program waits for the next one
    note_taken(asked);
  }
  pull(channel);
}

void Channels::end(std::unique_ptr<Asked> asked) {
  const auto found = channels_.find(Key(asked->client, asked->op.id));
  if (found == channels_.end()) {
    if (!asked->op.has(OpFlags::quiet)) {
      engine_.refuse(*asked, Error(Errc::not_found, "no such channel"));
    }
    return;
  }
  const std::shared_ptr<PullChannel> channel = found->second;
  shut(*channel);
  engine_.answer(*asked, {});
}

void Channels::drop_client(const std::string& client) {
  for (auto at = channels_.begin(); at != channels_.end();) {
    const std::shared_ptr<PullChannel> channel = (at++)->second;
    if (channel->client == client) {
      shut(*channel);
    }
  }
}

// --- requests for messages ---

Result<void> Channels::subscribe(PullChannel& channel) {
  channel.request.inbox = engine_.fresh_inbox();
  channel.request.outstanding = 0;
  channel.heard = engine_.now();
  const Key key(channel.client, channel.id);
  const auto found = channels_.find(key);
  if (found == channels_.end()) {
    return Error(Errc::closed, "the channel has ended");
  }
  if (channel.subscription.value != 0) {
    engine_.client().drain(std::exchange(channel.subscription, {}));
  }
  const std::shared_ptr<PullChannel> to = found->second;
  const std::string& inbox = channel.request.inbox;
  channel.subscription = WEFT_TRY(engine_.client().subscribe(
      inbox + "*", [this, to, inbox](const nats::Message& message) { handle_message(to, inbox, message); },
      {.group = {}, .on_ended = [this, to, inbox](const Error& why) {
         if (why == Errc::not_permitted && to->request.inbox == inbox) {
           finish(*to, why, text_of_refusal(inbox + "*", why));
         }
       }}));
  return {};
}

void Channels::pull(PullChannel& channel) {
  const std::uint64_t outstanding = channel.request.outstanding;
  const bool enough = channel.prioritized() ? 2 * outstanding > channel.credit : outstanding != 0;
  if (!channel.open || channel.ended || channel.request.stands_still || enough || channel.credit == 0 ||
      !engine_.client().is_connected()) {
    return;
  }
  js::PullRequest request;
  request.batch = static_cast<std::uint32_t>(channel.credit - outstanding);
  request.expires = kPullExpires;
  request.idle_heartbeat = kHeartbeat;
  if (!channel.config.priority_groups.empty()) {  // then a server refuses a request without a group
    request.group = channel.config.priority_groups.front();
    request.priority = channel.request.priority.value_or(0);
  }
  const auto made = js::pull(channel.stream->names.stream(), channel.name, request);
  if (!made) {
    return;
  }
  channel.request.subject = made->subject;
  const std::uint64_t number = ++channel.request.number;
  const std::string reply = channel.request.inbox + std::to_string(number);
  if (engine_.client().publish(made->subject, as_bytes(made->body), {.reply = reply})) {
    channel.request.outstanding = channel.credit;  // with those of the requests before
    channel.request.checked = false;
    channel.heard = channel.request.since = engine_.now();
  }
}

// The program of the channel has got a message, or waits for one.
void Channels::note_taken(const Asked& asked) {
  const auto found = channels_.find(Key(asked.client, asked.op.id));
  if (found != channels_.end() && found->second->prioritized()) {
    found->second->moved = engine_.now();
    found->second->request.stands_still = false;
    pull(*found->second);
  }
}

rt::Task<void> Channels::pull_later(Channels* self, std::shared_ptr<PullChannel> channel, Duration wait) {
  const auto slept = co_await rt::sleep(wait);
  if (slept) {
    self->pull(*channel);
  }
}

void Channels::handle_message(const std::shared_ptr<PullChannel>& channel, const std::string& inbox,
                              const nats::Message& message) {
  const bool own = channel->request.inbox == inbox;  // no: of requests that were given up
  const auto delivery = js::read_delivery(message.reply);
  if (!delivery) {  // a message may have a status of its publisher's
    const js::PullStatus status = js::read_pull_status(message.headers);
    if (own && !channel->ended && status.kind != js::PullStatus::Kind::message) {
      handle_status(channel, message, status);
    }
    return;
  }
  if (!own || channel->ended || channel->credit == 0 || !channel->open) {
    if (!channel->reads()) {
      publish(message.reply, js::kNak);
    }
    return;
  }
  engine_.handle_answer();
  channel->heard = channel->request.since = engine_.now();
  channel->request.checked = false;
  channel->request.outstanding -= std::min<std::uint64_t>(channel->request.outstanding, 1);
  if (channel->reads()) {
    if (delivery->consumer_sequence != channel->consumer_sequence + 1) {
      return reconnect(channel);  // a message was lost on its way
    }
    channel->consumer_sequence = delivery->consumer_sequence;
  }
  deliver(*channel, message, *delivery);
  if (!channel->ended) {
    pull(*channel);
  }
}

void Channels::deliver(PullChannel& channel, const nats::Message& message, const js::Delivery& delivery) {
  const StoredHeaders headers = stored_headers(message.headers);
  std::string topic;
  channel.stream->names.append_topic(message.subject, topic);
  const auto ns = std::max<Duration::rep>(0, delivery.time.time_since_epoch().count());
  const auto before = std::max<std::uint64_t>(delivery.deliveries, 1) - 1;
  const Op op{.kind = OpKind::delivery,
              .flags = headers.erased ? OpFlags::erased : std::uint16_t{0},
              .id = channel.id,
              .number = delivery.stream_sequence,
              .second = static_cast<std::uint64_t>(ns),
              .code = static_cast<std::uint16_t>(std::min<std::uint64_t>(before, 0xFFFF)),
              .key = topic,
              .message_id = headers.message_id,
              .headers = as_bytes(headers.block),
              .body = message.body};
  if (const auto fits = check_op(op); !fits) {
    return finish(channel, fits.error());
  }
  if (channel.reads()) {
    channel.to_catch_up -= std::min<std::uint64_t>(channel.to_catch_up, 1);
    if (delivery.pending == 0) {
      channel.to_catch_up = 0;
    }
    if (delivery.stream_sequence < channel.next) {  // the newest of each topic begins anew
      return catch_up(channel);
    }
    channel.next = delivery.stream_sequence + 1;
  } else {
    const bool first = channel.queue.empty();
    channel.queue.insert_or_assign(delivery.stream_sequence,
                                   HeldMessage{std::string(message.reply), delivery.deliveries, channel.instance});
    if (first) {
      channel.renewed = channel.moved = engine_.now();
      arm();
    }
  }
  --channel.credit;
  engine_.send(channel.client, op);
  catch_up(channel);
}

void Channels::catch_up(PullChannel& channel) {
  if (channel.reads() && !channel.caught_up && channel.to_catch_up == 0) {
    channel.caught_up = true;
    engine_.send(channel.client, {.kind = OpKind::caught_up, .id = channel.id, .number = channel.next});
  }
}

void Channels::handle_status(const std::shared_ptr<PullChannel>& channel, const nats::Message& message,
                             const js::PullStatus& status) {
  using Kind = js::PullStatus::Kind;
  channel->heard = engine_.now();
  if (!status.ends()) {
    // Messages before the heartbeat came before it, or are lost.
    if (channel->reads() && status.last_consumer_sequence > channel->consumer_sequence) {
      return reconnect(channel);
    }
    // The server has no message. A reader that waits for stored ones asks the stream at once: a purge took them, or the
    // server forgot them.
    const bool silent =
        channel->to_catch_up != 0 || deadline_after(channel->request.since, kPlaceSilent) <= engine_.now();
    if (channel->reads() && silent && !channel->request.checked) {
      channel->request.checked = engine_.spawn(check_place(this, channel));
    }
    return;
  }
  std::uint64_t number = 0;
  (void)std::from_chars(message.subject.data() + channel->request.inbox.size(),
                        message.subject.data() + message.subject.size(), number);
  const bool last = number == channel->request.number;
  if (!last && !channel->prioritized()) {
    return;
  }
  std::uint64_t& outstanding = channel->request.outstanding;
  const bool counts = channel->prioritized() && status.pending_messages != 0;
  outstanding -= counts ? std::min(outstanding, status.pending_messages) : outstanding;
  switch (status.kind) {
    case Kind::consumer_deleted:
    case Kind::no_responders: return reconnect(channel);
    case Kind::refused:
      if (!channel->reads() && takes_priorities(engine_.client().server_version())) {
        return reconnect(channel);  // another member or program gave the consumer groups
      }
      [[fallthrough]];
    case Kind::limit_exceeded:
    case Kind::leadership_change:
    case Kind::too_large: (void)engine_.spawn(pull_later(this, channel, kPullAgain)); return;
    default: pull(*channel);
  }
}

// A consumer of a server may report that no message is left, and have some: seen on 2.9.10 after a network was cut.
rt::Task<void> Channels::check_place(Channels* self, std::shared_ptr<PullChannel> channel) {
  const std::uint64_t next = channel->next;
  const std::vector<std::string>& filters = channel->config.filters;
  if (channel->may_check && next != 0 && (!channel->by_topic() || channel->caught_up)) {
    const js::Which which = js::Which::next_of(filters.empty() ? std::string_view(">") : filters.front(), next);
    auto request = js::get_message(channel->stream->names.stream(), which);
    const auto left = co_await Engine::call(&self->engine_, std::move(request), js::read_message);
    channel->may_check = error_of(left) != Errc::not_permitted;
    if (!channel->open || channel->next != next || (!left && channel->may_check)) {
      co_return;
    }
    if (left && left->ok()) {
      co_return self->reconnect(channel);
    }
  }
  channel->to_catch_up = 0;
  self->catch_up(*channel);
}

// A member that waits gets half of a queue that stands still. The servers give it to the lowest number: that of the
// channel itself, unless its requests end, with their inbox.
rt::Task<void> Channels::recall(Channels* self, std::shared_ptr<PullChannel> channel) {
  channel->moved = self->engine_.now();
  if (channel->prioritized() && !channel->request.stands_still) {
    channel->request.stands_still = true;
    (void)self->subscribe(*channel);  // if it fails, the next request stays silent, and the channel opens again
  }
  const auto info = co_await Engine::call(
      &self->engine_, js::consumer_info(channel->stream->names.stream(), channel->name), js::read_consumer_info);
  channel->looking = false;
  if (!info || !info->ok() || channel->ended || !channel->open) {
    co_return;
  }
  const js::ConsumerInfo& now = info->value;
  const bool others_wait = now.pulls_waiting > (channel->request.outstanding != 0 ? 1U : 0U);
  const bool none_left =
      now.pending == 0 || static_cast<std::int64_t>(now.ack_pending) >= channel->config.ack_pending_max;
  if (others_wait && none_left && !channel->queue.empty()) {
    self->engine_.send(channel->client,
                       {.kind = OpKind::recall, .id = channel->id, .number = (channel->queue.size() + 1) / 2});
  }
}

// --- the end, and the connection ---

void Channels::shut(PullChannel& channel) {
  channel.ended = true;
  channel.open = false;
  if (channel.subscription.value != 0) {
    engine_.client().drain(std::exchange(channel.subscription, {}));
  }
  for (const auto& [sequence, held] : channel.queue) {
    publish(held.reply, js::kNak);
  }
  channel.queue.clear();
  if (channel.reads() && !channel.name.empty()) {
    engine_.post(js::delete_consumer(channel.stream->names.stream(), channel.name));
  }
  channels_.erase(Key(channel.client, channel.id));
}

void Channels::finish(PullChannel& channel, const Error& error, std::string_view text) {
  if (channel.ended) {
    return;
  }
  const std::string reason(text.empty() ? error.text() : text);
  engine_.send(channel.client, {.kind = OpKind::ended,
                                .id = channel.id,
                                .number = channel.next,
                                .code = static_cast<std::uint16_t>(error.code()),
                                .body = as_bytes(reason)});
  if (error == Errc::not_found) {
    holdings_.erase(key_of(channel.stream->names.wire(), channel.consumer));
  }
  shut(channel);
}

void Channels::reconnect(const std::shared_ptr<PullChannel>& channel) {
  if (channel->ended || channel->opening) {
    return;
  }
  channel->opening = true;
  channel->open = false;
  if (!engine_.spawn(begin_again(this, channel))) {
    channel->opening = false;
  }
}

void Channels::handle_lost() noexcept {
  for (auto& [key, channel] : channels_) {
    channel->request.outstanding = 0;
  }
}

void Channels::handle_refused(std::string_view subject, const Error& why) {
  const auto acknowledged = js::read_delivery(subject);
  std::vector<std::shared_ptr<PullChannel>> refused;
  for (const auto& [key, channel] : channels_) {
    const bool acknowledges = acknowledged && !channel->reads() && acknowledged->consumer == channel->name &&
                              acknowledged->stream == channel->stream->names.stream();
    if (acknowledges || channel->request.subject == subject) {
      refused.push_back(channel);
    }
  }
  for (const auto& channel : refused) {
    finish(*channel, why, text_of_refusal(subject, why));
  }
}

// The requests of the connection before may still wait at the servers: their inbox gets no more messages.
void Channels::handle_connected() {
  std::vector<std::shared_ptr<PullChannel>> all;
  all.reserve(channels_.size());
  for (const auto& [key, channel] : channels_) {
    all.push_back(channel);
  }
  for (const auto& channel : all) {
    reconnect(channel);
  }
}

void Channels::arm() {
  if (channels_.empty()) {
    return;
  }
  Duration wait = kHeartbeat;
  for (const auto& [key, channel] : channels_) {
    if (!channel->queue.empty()) {
      wait = std::min({wait, kStandsStill, std::max(channel->settings.ack_wait / (kRenewals + 1), kRenewMin)});
    }
  }
  const Instant due = deadline_after(engine_.now(), wait);
  if (timer_ && timer_at_ <= due) {
    return;
  }
  timer_at_ = due;
  if (!timer_ || !engine_.loop().timers().reschedule(timer_, due)) {
    timer_ = engine_.loop().timers().schedule(due, {&Channels::timer_fired, this});
  }
}

void Channels::renew(PullChannel& channel) {
  if (!channel.queue.empty() &&
      engine_.now() >= deadline_after(channel.renewed, channel.settings.ack_wait / kRenewals)) {
    channel.renewed = engine_.now();
    for (const auto& [sequence, held] : channel.queue) {
      publish(held.reply, js::kInProgress);
    }
  }
}

void Channels::handle_timer() {
  timer_ = {};
  (void)or_no_memory([this]() -> Result<void> {
    std::vector<std::shared_ptr<PullChannel>> silent;
    std::vector<std::shared_ptr<PullChannel>> still;
    for (const auto& [key, channel] : channels_) {
      renew(*channel);
      if (!channel->queue.empty() && !channel->looking && channel->open &&
          deadline_after(channel->moved, still_after(*channel)) <= engine_.now()) {
        still.push_back(channel);
      }
      if (channel->request.outstanding != 0 && engine_.client().is_connected() &&
          deadline_after(channel->heard, kPullSilent) <= engine_.now()) {
        silent.push_back(channel);
      }
    }
    for (const auto& channel : silent) {
      reconnect(channel);
    }
    for (const auto& channel : still) {
      channel->looking = true;  // recall() may end within spawn()
      if (!engine_.spawn(recall(this, channel))) {
        channel->looking = false;
      }
    }
    return {};
  });
  arm();
}

}  // namespace weft::topic
