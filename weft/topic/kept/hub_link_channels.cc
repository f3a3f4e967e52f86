// SPDX-License-Identifier: MIT
// HubLink: channels.
#include <array>
#include <new>
#include <utility>

#include "weft/base/endian.h"
#include "weft/base/no_memory.h"
#include "weft/topic/kept/hub_link.h"

namespace weft::topic {

Result<void> HubLink::open(KeptChannel& channel) {
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return kClosed;
  }
  if (channels_.size() >= kChannelsMax) {
    return Error(Errc::resource_exhausted, "4,096 consumers and readers of a handle");
  }
  return or_no_memory([&]() -> Result<void> {
    sync::assume_locked(mutex_);
    channel.id = fresh_id();
    want_timer(channel.open_until);
    if (state_ != Link::up) {
      want_connection();
      channels_.emplace(channel.id, IntrusivePtr<KeptChannel>::retain(&channel));
      return {};
    }
    KeptChannel::OpenTexts texts;
    const Message opening = WEFT_TRY(encoded(channel.open_op(texts)));
    channels_.emplace(channel.id, IntrusivePtr<KeptChannel>::retain(&channel));
    (void)send(opening);  // refused: the connection is about to end, and the next one opens the channel
    return {};
  });
}

void HubLink::end(KeptChannel& channel) noexcept {
  const sync::LockGuard lock(mutex_);
  if (channel.state == KeptChannel::State::ended) {
    return;
  }
  give_back_begun(channel);
  send_settled(channel, channel.id);
  const bool waits = !channel.reads() && state_ == Link::up && channel.state == KeptChannel::State::open;
  send_op({.kind = OpKind::end, .flags = waits ? std::uint16_t{0} : OpFlags::quiet, .id = channel.id});
  channel.drop_queue();  // the hub gives these messages to another member at once
  const auto held = IntrusivePtr<KeptChannel>::retain(&channel);
  end_channel(channel, Error(Errc::closed, "the consumer or reader was closed"));
  if (waits) {
    try {
      channels_.emplace(channel.id, held);
      channel.closing = true;
    } catch (const std::bad_alloc&) {
      return;  // messages on their way are delivered again after ack_wait
    }
  }
}

// Takes the channel out of the table; the caller holds a reference.
void HubLink::end_channel(KeptChannel& channel, const Error& error) noexcept {
  const auto held = IntrusivePtr<KeptChannel>::retain(&channel);
  channel.state = KeptChannel::State::ended;
  channel.end = error;
  channels_.erase(channel.id);
  channel.changed.notify();
}

Result<KeptMessage> HubLink::try_next(KeptChannel& channel, Count count) {
  const bool counted = channel.counted() && !channel.queue.empty();
  if (counted && count == Count::answered && !head_counted(channel)) {
    return Errc::would_block;
  }
  const bool asked = channel.head.asked;
  Result<KeptMessage> message = channel.pop();
  counts_.delivered += message ? 1 : 0;
  if (message && channel.seen != nullptr) {
    channel.seen->set(message->stream_instance());
  }
  if (message && !channel.reads() && !asked) {
    begin(channel, message->sequence());
  }
  if (counted && count == Count::sent) {
    send_settled(channel, channel.id);
  }
  give_credit(channel);  // also without a message: memory may have been short for an earlier credit
  if (channel.unsent.next) {
    channel.unsent.next = !send_op({.kind = OpKind::credit, .flags = OpFlags::quiet, .id = channel.id});
  }
  return message;
}

bool HubLink::head_counted(KeptChannel& channel) noexcept {
  KeptChannel::Head& head = channel.head;
  const Instant now = sys::now();
  // The program left it for long: another member may have it, and the hub decides.
  if (head.counted && now > deadline_after(head.at, channel.settings.ack_wait / 2)) {
    head = {};
  }
  if (!head.asked) {
    const InstanceText instance(channel.instance);
    const Op op{.kind = OpKind::begin,
                .id = channel.id,
                .number = channel.queue.front().sequence(),
                .name = channel.stream,
                .key = channel.consumer,
                .message_id = instance};
    head.asked = send_op(op);
    head.at = now;
    return !head.asked;  // no memory: it is sent later
  }
  return head.counted;
}

Result<KeptMessage> HubLink::take_begun(KeptChannel& channel) {
  return channel.head.asked ? try_next(channel, Count::sent) : Result<KeptMessage>(Errc::would_block);
}

void HubLink::give_back_begun(KeptChannel& channel) noexcept {
  if (!channel.head.asked) {
    return;
  }
  const auto message = channel.pop();
  if (message) {
    send_op({.kind = OpKind::nak,
             .flags = OpFlags::quiet | OpFlags::unseen,
             .id = channel.id,
             .number = message->sequence(),
             .name = channel.stream,
             .key = channel.consumer,
             .message_id = InstanceText(channel.instance)});
  }
  channel.changed.notify();
}

Result<std::optional<KeptMessage>> HubLink::try_next_stored(KeptChannel& channel) {
  if (channel.live()) {
    return std::optional<KeptMessage>();
  }
  return std::optional<KeptMessage>(WEFT_TRY(try_next(channel)));
}

void HubLink::give_credit(KeptChannel& channel) noexcept {
  if (channel.state != KeptChannel::State::open || state_ != Link::up) {
    return;
  }
  const std::uint32_t more = channel.credit_due();
  // A program took a message: the queue moves, though the hub has credit enough.
  const bool word = unanswered_bytes_ >= kUnansweredBytesMax;
  if ((more != 0 || word) &&
      send_op({.kind = OpKind::credit, .flags = OpFlags::quiet, .id = channel.id, .number = more})) {
    channel.credit += more;
  }
}

void HubLink::begin(KeptChannel& channel, std::uint64_t sequence) noexcept {
  try {
    channel.unsent.begins.push_back(sequence);
    post_settled(channel);
  } catch (const std::bad_alloc&) {
    send_settled(channel, channel.id);  // an acknowledgement includes it
  }
}

void HubLink::acknowledge(KeptChannel& channel, std::uint64_t instance, std::uint64_t sequence) noexcept {
  const sync::LockGuard lock(mutex_);
  if (closed_) {
    return;
  }
  if (instance != channel.instance) {
    ++counts_.late_acks;  // the message went with its stream
    return;
  }
  if (!channel.unsent.begins.empty() && channel.unsent.begins.back() == sequence) {
    channel.unsent.begins.pop_back();  // an acknowledgement includes it
  }
  try {
    channel.unsent.acks.push_back(sequence);
    post_settled(channel);
  } catch (const std::bad_alloc&) {
    send_settled(channel, channel.id);  // the hub delivers unacknowledged messages again
  }
}

void HubLink::settle(KeptChannel& channel, const Op& op) noexcept {
  const sync::LockGuard lock(mutex_);
  send_settled(channel, channel.id);
  send_op(op);
}

void HubLink::post_settled(KeptChannel& channel) {
  if (channel.unsent.acks.size() >= KeptChannel::kAcksMax || channel.unsent.begins.size() >= KeptChannel::kAcksMax) {
    send_settled(channel, channel.id);
  } else if (!channel.unsent.posted) {
    loop_.post([weak = weak_from_this(), kept = IntrusivePtr<KeptChannel>::retain(&channel)] {
      if (const auto link = weak.lock()) {
        {
          const sync::LockGuard inner(link->mutex_);
          kept->unsent.posted = false;
          link->send_settled(*kept, kept->id);
        }
        link->flush();
      }
    });
    channel.unsent.posted = true;
  }
}

// `id`: the id in the answer to a failed acknowledgement.
void HubLink::send_settled(KeptChannel& channel, std::uint32_t id) noexcept {
  if (state_ == Link::up) {
    send_sequences(channel, OpKind::begin, channel.id, channel.unsent.begins);
    send_sequences(channel, OpKind::ack, id, channel.unsent.acks);
  }
}

void HubLink::send_sequences(KeptChannel& channel, OpKind kind, std::uint32_t id,
                             std::vector<std::uint64_t>& sequences) noexcept {
  std::array<std::uint8_t, 8 * KeptChannel::kAcksMax> body;
  while (!sequences.empty()) {
    const std::uint64_t first = sequences.back();
    sequences.pop_back();
    std::size_t size = 0;
    for (; !sequences.empty() && size < body.size(); size += 8, sequences.pop_back()) {
      store_big_endian(body.data() + size, sequences.back());
    }
    send_op({.kind = kind,
             .flags = OpFlags::quiet,
             .id = id,
             .number = first,
             .name = channel.stream,
             .key = channel.consumer,
             .message_id = InstanceText(channel.instance),
             .body = Bytes(body.data(), size)});
  }
}

// --- ops of the hub about a channel ---

void HubLink::handle_channel(KeptChannel& channel, Message&& message, const Op& op) {
  if (channel.closing) {
    if (op.kind == OpKind::answer || op.kind == OpKind::ended) {
      channels_.erase(channel.id);
    }
    return;
  }
  switch (op.kind) {
    case OpKind::answer:
      if (channel.state != KeptChannel::State::opening && op.error() == Errc::ok) {
        handle_begun(channel, op);
      } else if (channel.state != KeptChannel::State::opening) {
        ++counts_.late_acks;  // a quiet acknowledgement failed: the message is another member's, or gone
      } else if (op.error() != Errc::ok) {
        end_channel(channel, error_of(op));
      } else {
        channel.handle_open(op);
        channel.changed.notify();
        give_credit(channel);
      }
      return;
    case OpKind::delivery: {
      unanswered_bytes_ += message.size();
      auto kept = KeptMessage::of(std::move(message), settings_.names, channel.instance);
      const std::uint32_t credit = channel.credit;
      if (!kept) {
        ++counts_.malformed;
      } else if (channel.take(*std::move(kept))) {
        channel.changed.notify();
      } else if (credit == 0) {
        ++counts_.dropped_unasked;
      } else {
        ++counts_.dropped_doubles;
        give_credit(channel);
      }
      return;
    }
    case OpKind::recall: handle_recall(channel, op.number); return;
    case OpKind::caught_up:
      channel.caught_up = true;
      channel.changed.notify();
      return;
    case OpKind::ended:
      if (!channel.reads()) {
        channel.drop_queue();  // the hub has taken these messages back
      }
      end_channel(channel,
                  op.error() == Errc::ok ? Error(Errc::closed, "the consumer or reader was ended") : error_of(op));
      return;
    default: ++counts_.malformed; return;
  }
}

// The answer to `begin` of the first message of the queue: 1, or 0 when another member has the message.
void HubLink::handle_begun(KeptChannel& channel, const Op& op) noexcept {
  if (channel.head.asked && !channel.queue.empty() && channel.queue.front().sequence() == op.second) {
    if (op.number == 0) {
      (void)channel.pop();
      ++counts_.dropped_doubles;
    } else {
      channel.head.counted = true;
    }
  }
  channel.changed.notify();
  give_credit(channel);
}

void HubLink::handle_recall(KeptChannel& channel, std::uint64_t count) noexcept {
  send_settled(channel, channel.id);
  std::array<std::uint8_t, 8 * KeptChannel::kAcksMax> body;
  std::size_t size = 0;
  std::uint64_t first = 0;  // 0: the answer gives nothing back
  for (; count != 0 && size < body.size(); --count) {
    const auto sequence = channel.take_last();
    if (!sequence) {
      break;
    }
    if (first == 0) {
      first = *sequence;
    } else {
      store_big_endian(body.data() + size, *sequence);
      size += 8;
    }
  }
  send_op({.kind = OpKind::nak,
           .flags = OpFlags::quiet | OpFlags::unseen,
           .id = channel.id,
           .number = first,
           .name = channel.stream,
           .key = channel.consumer,
           .message_id = InstanceText(channel.instance),
           .body = Bytes(body.data(), size)});
  flush_sent();
  give_credit(channel);
  channel.unsent.next = channel.unsent.next || first != 0;
}

}  // namespace weft::topic
