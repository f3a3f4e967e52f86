// SPDX-License-Identifier: MIT
// How the members of a consumer share its messages.
#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "weft/topic/hub/session.h"

namespace weft::topic {
namespace {

// A queue that stands still for so long belongs to a program that is busy. Work that takes less is not worth the two
// messages of a recall.
constexpr Duration kRecallAfter = std::chrono::milliseconds(5);

}  // namespace

void HubSession::give_back_queue(const HubChannel& channel, const store::Now& now) {
  store::StoredStream* stream = channel.holder == store::kNoHolder ? nullptr : stream_of(channel);
  if (store::StoredConsumer* consumer = stream == nullptr ? nullptr : stream->find_consumer(channel.consumer)) {
    (void)consumer->state.give_back_queue(channel.holder, now.steady);
  }
}

void HubSession::gather_groups() {
  groups_.clear();
  std::map<store::StoredConsumer*, std::size_t> places;
  for (auto& [name, client] : clients_) {
    const bool takes = client.queue.empty() && client.unheard_bytes <= HubClient::kUnheardBytesMax;
    for (auto& [id, channel] : client.channels) {
      if (channel.kind != HubChannel::Kind::consumer) {
        continue;
      }
      store::StoredStream* stream = stream_of(channel);
      store::StoredConsumer* consumer = stream == nullptr ? nullptr : stream->find_consumer(channel.consumer);
      // Those of a consumer that is gone are one group, which ends when it is served.
      const auto [at, added] = places.try_emplace(consumer, groups_.size());
      if (added) {
        groups_.push_back({consumer});
      }
      channel.group = at->second;
      groups_[at->second].members.push_back({&name, id, &channel, takes});
    }
  }
}

// One of the lowest number: the one that has the least to do; of several the one that waits longest.
HubSession::Member* HubSession::next_member(Group& group) {
  Member* best = nullptr;
  const auto rank = [&group](const Member& member) {
    const HubChannel& channel = *member.channel;
    return std::tuple(channel.stands_still, channel.priority, group.consumer->state.load(channel.holder),
                      channel.served);
  };
  for (Member& member : group.members) {
    if (member.takes && member.channel->credit != 0 && (best == nullptr || rank(member) < rank(*best))) {
      best = &member;
    }
  }
  return best;
}

bool HubSession::deliver_consumer(const std::string& name, std::uint32_t id, HubChannel& channel,
                                  const store::Now& now) {
  Group& group = groups_[channel.group];
  if (group.consumer == nullptr) {
    for (const Member& member : std::exchange(group.members, {})) {
      end_channel(*member.client, member.id, Error(Errc::not_found, "the stream or the consumer is gone"), 0);
    }
    return false;
  }
  Member* const member = next_member(group);
  if (member == nullptr || scanned_enough()) {
    return false;
  }
  HubChannel& chosen = *member->channel;
  store::StoredConsumer& consumer = *group.consumer;
  const auto delivery = store_->next_delivery(*stream_of(chosen), consumer, now, chosen.holder);
  if (!delivery) {
    const Member ended = *member;
    std::erase_if(group.members, [&](const Member& each) { return each.channel == ended.channel; });
    give_back_queue(chosen, now);
    end_channel(*ended.client, ended.id, delivery.error(), consumer.state.next());
    return false;
  }
  const bool far = !*delivery && consumer.state.may_take_new() && consumer.state.next() < stream_of(chosen)->next();
  count_scan(name, id, consumer.cursor.passed, far);
  if (!*delivery) {
    return false;
  }
  --chosen.credit;
  chosen.served = ++deliveries_;
  if (consumer.state.queued(chosen.holder) <= 1) {
    chosen.took = now.steady;
  }
  const std::uint64_t sequence = (*delivery)->read.message.sequence;
  if (!send_message(*member->client, member->id, (*delivery)->read, (*delivery)->tries - 1)) {
    (void)store_->give_back(consumer, sequence, chosen.holder, now);
    return false;
  }
  member->takes = clients_.find(*member->client)->second.unheard_bytes <= HubClient::kUnheardBytesMax;
  return true;
}

void HubSession::recall(const store::Now& now) {
  recall_at_ = kNever;
  for (Group& group : groups_) {
    if (group.consumer != nullptr && group.members.size() > 1) {
      recall(group, now);
    }
  }
}

void HubSession::note_taken(const std::string& client, std::uint32_t id, const store::Now& now) {
  auto& channels = clients_[client].channels;
  if (const auto at = channels.find(id); at != channels.end()) {
    at->second.took = now.steady;
    at->second.stands_still = false;
  }
}

// Idle members of a lower or the same number get messages of a queue that stands still for kRecallAfter; those of a
// higher number when its program has taken none for ack_wait.
void HubSession::recall(Group& group, const store::Now& now) {
  store::ConsumerState& state = group.consumer->state;
  const Duration ack_wait = group.consumer->settings.ack_wait;
  std::array<std::size_t, kPriorityMax + 1> idle{};  // of this number; then also of lower ones
  for (const Member& member : group.members) {
    const HubChannel& channel = *member.channel;
    const bool waits = member.takes && channel.credit != 0 && channel.holder != store::kNoHolder &&
                       !channel.stands_still && state.load(channel.holder) == 0;
    idle[channel.priority] += waits ? 1 : 0;
  }
  std::partial_sum(idle.begin(), idle.end(), idle.begin());
  Member* most = nullptr;
  std::size_t takers = 0;
  bool asked = false;
  for (Member& member : group.members) {
    HubChannel& channel = *member.channel;
    const std::size_t queued = state.queued(channel.holder);
    if (std::exchange(channel.queued_before, queued) != queued) {
      channel.moved = now.steady;
    }
    if (channel.recalled) {
      // A member that does not answer has ended its queue as one that does not acknowledge ends a delivery.
      const Instant until = deadline_after(*channel.recalled, ack_wait);
      if (until <= now.steady) {
        (void)state.give_back_queue(channel.holder, now.steady);
        channel.recalled.reset();
        recall_at_ = now.steady;
      } else {
        recall_at_ = std::min(recall_at_, until);
        asked = true;
      }
    } else if (queued != 0 && idle.back() != 0) {
      const Instant late = deadline_after(channel.took, ack_wait);
      const std::size_t of_it = idle[channel.stands_still || late <= now.steady ? kPriorityMax : channel.priority];
      if (of_it == 0) {
        recall_at_ = std::min(recall_at_, late);
      } else if (most == nullptr || queued > state.queued(most->channel->holder)) {
        most = &member;
        takers = of_it;
      }
    }
  }
  if (most == nullptr || asked) {
    return;
  }
  HubChannel& channel = *most->channel;
  if (const Instant at = deadline_after(channel.moved, kRecallAfter); at > now.steady) {
    recall_at_ = std::min(recall_at_, at);
    return;
  }
  Op op;
  op.kind = OpKind::recall;
  op.id = most->id;
  op.number = channel.queued_before - channel.queued_before / (takers + 1);
  if (queue_delivery(*most->client, op)) {
    channel.recalled = now.steady;
    channel.stands_still = channel.stands_still || idle[channel.priority] == 0;
    recall_at_ = std::min(recall_at_, deadline_after(now.steady, ack_wait));
  }
}

}  // namespace weft::topic
