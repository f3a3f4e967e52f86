// SPDX-License-Identifier: MIT
// Channels: the acknowledgements of messages.
#include <algorithm>
#include <utility>

#include "weft/nats/jetstream/names.h"
#include "weft/topic/jetstream/channels.h"

namespace weft::topic {

namespace {

namespace js = nats::jetstream;

constexpr Error kNoConsumer(Errc::not_found, "no such consumer");
constexpr Error kAckUnknown(Errc::outcome_unknown, "no server took the acknowledgement in time");

}  // namespace

HeldMessage Channels::take(const Asked& asked, std::uint64_t sequence) {
  const Op& op = asked.op;
  HeldMessage held;
  const auto take_from = [&](auto& messages) {
    if (const auto at = messages.find(sequence); at != messages.end()) {
      held = std::move(at->second);
      messages.erase(at);
    }
    return !held.reply.empty();
  };
  const auto holding = holdings_.find(key_of(op.name, op.key));
  if (holding != holdings_.end() && take_from(holding->second)) {
    if (holding->second.empty()) {
      holdings_.erase(holding);
    }
  } else if (const auto own = channels_.find(Key(asked.client, op.id)); own != channels_.end()) {
    own->second->moved = engine_.now();
    (void)take_from(own->second->queue);
  } else {
    for (auto& [key, channel] : channels_) {
      if (channel->consumer == op.key && channel->stream->names.wire() == op.name && take_from(channel->queue)) {
        channel->moved = engine_.now();
        break;
      }
    }
  }
  if (!op.message_id.empty() && held.instance != 0 && op.message_id != std::to_string(held.instance)) {
    return {};  // of another life of the stream
  }
  return held;
}

void Channels::hold(const std::string& key, std::uint64_t sequence, HeldMessage held) {
  Holding& holding = holdings_[key];
  holding.insert_or_assign(sequence, std::move(held));
  if (holding.size() > kHeldMax) {  // other members have the oldest ones since
    holding.erase(holding.begin());
  }
}

void Channels::settle(std::unique_ptr<Asked> asked) {
  const Op& op = asked->op;
  if (sequence_count(op.body) > kOpSequencesMax && op.kind != OpKind::reject) {
    return engine_.refuse(*asked, Error(Errc::invalid_argument, "more than 4,096 sequences of one ack"));
  }
  const std::size_t more = op.kind == OpKind::reject ? 0 : sequence_count(op.body);
  const std::string key = key_of(op.name, op.key);
  std::vector<std::string> replies;  // of acknowledgements that the program waits for
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= more; ++i) {
    const std::uint64_t sequence = i == 0 ? op.number : sequence_at(op.body, i - 1);
    HeldMessage held = take(*asked, sequence);
    if (held.reply.empty()) {
      continue;
    }
    ++count;
    switch (op.kind) {
      case OpKind::begin:
      case OpKind::work:
        publish(held.reply, js::kInProgress);
        hold(key, sequence, std::move(held));
        break;
      case OpKind::ack:
        if (op.has(OpFlags::quiet)) {
          publish(held.reply, js::kAck);
        } else {
          replies.push_back(std::move(held.reply));
        }
        break;
      case OpKind::nak: {
        std::string body;
        js::append_nak(op.has(OpFlags::unseen) ? Duration::zero() : retry_wait(*asked, held.deliveries), body);
        publish(held.reply, body);
        break;
      }
      // A server of 2.9 takes the word without a reason only.
      default: publish(held.reply, js::kTerminate); break;
    }
  }
  if (op.kind == OpKind::begin || op.kind == OpKind::ack) {
    note_taken(*asked);
  }
  if (!replies.empty()) {
    engine_.spawn(confirm(this, std::move(asked), std::move(replies)));
    return;
  }
  engine_.answer(*asked, {.number = count, .second = op.kind == OpKind::begin ? op.number : 0});
}

// All ones: the wait of the consumer's settings.
Duration Channels::retry_wait(const Asked& asked, std::uint64_t deliveries) const {
  if (~asked.op.second != 0) {
    constexpr std::uint64_t kLongest = 365ULL * 24 * 3600 * 1'000'000'000;
    return Duration(static_cast<Duration::rep>(std::min(asked.op.second, kLongest)));
  }
  for (const auto& [key, channel] : channels_) {
    if (channel->consumer == asked.op.key && channel->stream->names.wire() == asked.op.name &&
        !channel->settings.retry_waits.empty()) {
      const std::vector<Duration>& waits = channel->settings.retry_waits;
      return waits[std::min<std::size_t>(std::max<std::uint64_t>(deliveries, 1) - 1, waits.size() - 1)];
    }
  }
  return Duration::zero();
}

rt::Task<void> Channels::confirm(Channels* self, std::unique_ptr<Asked> asked, std::vector<std::string> replies) {
  std::uint64_t count = 0;
  Error failed;
  for (const std::string& reply : replies) {
    const auto done = co_await acknowledge(self, asked.get(), &reply);
    count += done ? 1 : 0;
    if (!done) {
      failed = done.error();
    }
  }
  if (count == 0 && failed != Errc::ok) {
    self->engine_.refuse(*asked,
                         failed == Errc::timed_out ? Error(Errc::outcome_unknown, failed.static_text()) : failed);
    co_return;
  }
  self->engine_.answer(*asked, {.number = count});
}

// No server takes an acknowledgement while the consumer has no leader, and after the consumer's end.
rt::Task<Result<void>> Channels::acknowledge(Channels* self, const Asked* asked, const std::string* reply) {
  const Instant deadline = deadline_after(self->engine_.now(), Engine::kAskMost);
  std::string consumer;
  const auto stream = self->streams_.find(asked->op.name);
  const auto named = js::append_name(asked->op.key, consumer);
  if (!stream || !named) {
    co_return stream ? named.error() : stream.error();
  }
  for (;;) {
    js::ApiRequest request;
    request.subject = *reply;
    request.body = js::kAck;
    const auto done = co_await Engine::ask(&self->engine_, std::move(request));
    if (done) {
      co_return Result<void>();
    }
    if (done.error() != Errc::unreachable) {
      co_return done.error();
    }
    auto look = js::consumer_info((*stream)->names.stream(), consumer);
    const auto info = co_await Engine::call(&self->engine_, std::move(look), js::read_consumer_info);
    const bool told = info && error_of(info) != Errc::not_permitted;
    if (told && !info->ok()) {
      co_return error_of(info) == Errc::not_found ? kNoConsumer : error_of(info);
    }
    if (!told || self->engine_.now() >= deadline) {
      co_return kAckUnknown;
    }
  }
}

}  // namespace weft::topic
