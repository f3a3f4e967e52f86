// SPDX-License-Identifier: MIT
// The second half of a turn: commit, answers, deliveries.
#include <algorithm>
#include <span>
#include <utility>

#include "weft/topic/hub/session.h"

namespace weft::topic {
namespace {

constexpr Duration kRetryCommit = std::chrono::milliseconds(100);
constexpr Duration kRetrySend = std::chrono::milliseconds(10);
constexpr std::size_t kDeliveriesInARow = 64;  // of one channel, before the next one

std::uint64_t ns_of(WallTime time) noexcept {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(0, time.time_since_epoch().count()));
}

Result<Message> encoded(const Op& op) {
  auto message = Message::with_size(encoded_size(op));
  if (message) {
    encode_op(op, message->mutable_bytes());
  }
  return message;
}

// How many answers from the first one on are one.
std::size_t run_of(std::span<const PendingAnswer> answers) noexcept {
  std::size_t count = 1;
  for (; count < answers.size() && answers[count - 1].in_run && answers[count].in_run; ++count) {
    const PendingAnswer& last = answers[count - 1];
    const PendingAnswer& next = answers[count];
    if (last.error != Errc::ok || next.error != Errc::ok || next.id != last.id + 1 || next.number != last.number + 1 ||
        next.client != last.client) {
      break;
    }
  }
  return count;
}

}  // namespace

store::Store::Committed HubSession::commit(const store::Now& now) {
  store::Store::Committed committed;
  // After a failure the store tries again later, unless a member waits for an answer.
  if (store_->has_work(now) && (!answers_.empty() || now.steady >= retry_at_)) {
    committed = store_->commit(now);
    tell_stored(now);
    const bool failed = committed.disk != Errc::ok || committed.memory != Errc::ok;
    retry_at_ = failed ? deadline_after(now.steady, kRetryCommit) : Instant();
  }
  const store::StoreCounts& counts = store_->counts();
  counters_.appended.store(counts.appended, std::memory_order_relaxed);
  counters_.delayed.store(counts.delayed, std::memory_order_relaxed);
  counters_.duplicates.store(counts.duplicates, std::memory_order_relaxed);
  counters_.refused.store(counts.refused, std::memory_order_relaxed);
  counters_.dead_letters.store(counts.dead_letters, std::memory_order_relaxed);
  counters_.dead_dropped.store(counts.dead_dropped, std::memory_order_relaxed);
  counters_.evicted.store(counts.evicted, std::memory_order_relaxed);
  counters_.turns.store(counts.commits, std::memory_order_relaxed);
  return committed;
}

void HubSession::tell_stored(const store::Now& now) {
  if (!options_.on_stored) {
    return;
  }
  std::vector<store::ReadMessage> messages;
  for (store::StoredStream* const stream : store_->stored()) {
    std::uint64_t& told = told_.try_emplace(stream->name(), stream->next()).first->second;
    const std::uint64_t next = stream->next();
    store::StoredReader reader;
    reader.cursor.next = told;
    while (reader.cursor.next < next) {
      auto read = stream->read(reader, now.wall);
      if (!read) {  // damaged just now: whoever reads the stream learns it
        counters_.untold.fetch_add(next - reader.cursor.next, std::memory_order_relaxed);
        break;
      }
      if (*read && !(*read)->message.erased) {
        messages.push_back(**std::move(read));
      }
    }
    told = std::max(told, next);
  }
  if (const std::size_t count = messages.size(); count != 0) {
    const std::size_t taken = options_.on_stored(std::move(messages));
    counters_.told.fetch_add(taken, std::memory_order_relaxed);
    counters_.untold.fetch_add(count - taken, std::memory_order_relaxed);
  }
}

void HubSession::send_answers(const store::Store::Committed& committed) {
  std::vector<PendingAnswer> answers = std::exchange(answers_, {});
  for (PendingAnswer& pending : answers) {
    if (pending.needs != PendingAnswer::Needs::nothing && pending.error == Errc::ok) {
      switch (pending.needs) {
        case PendingAnswer::Needs::disk: pending.error = committed.disk; break;
        case PendingAnswer::Needs::positions: pending.error = committed.positions; break;
        default: pending.error = committed.memory;
      }
    }
  }
  for (std::size_t i = 0; i < answers.size();) {
    const std::size_t count = run_of(std::span(answers).subspan(i));
    if (!answers[i].quiet || answers[i].error != Errc::ok) {
      send_answer(answers[i], count);
    }
    i += count;
  }
  turn_bytes_ = 0;
}

// `appends`: how many one answer is for.
void HubSession::send_answer(const PendingAnswer& pending, std::size_t appends) {
  Op op;
  op.kind = OpKind::answer;
  op.id = pending.id;
  op.code = static_cast<std::uint16_t>(pending.error.code());
  op.number = pending.error == Errc::ok || pending.error == Errc::conflict ? pending.number : 0;
  op.second = pending.second;
  op.flags = pending.flags;
  if (appends > 1) {
    op.second = appends;
    op.flags |= OpFlags::run;
  }
  op.name = pending.name;
  op.key = pending.key;
  op.message_id = pending.message_id;
  op.headers = as_bytes(pending.headers);
  op.body = as_bytes(pending.body);
  const std::string reason = pending.error.text();
  if (pending.error != Errc::ok && pending.body.empty()) {
    op.body = as_bytes(reason);
  }
  send(pending.client, op);
}

void HubSession::send(const std::string& name, const Op& op) {
  const auto at = clients_.find(name);
  auto message = at == clients_.end() ? Result<Message>(Errc::not_found) : encoded(op);
  if (!message) {
    counters_.answers_dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  HubClient& client = at->second;
  if (client.queue.empty()) {
    const Sent sent = send_(name, *message);
    if (sent == Sent::yes) {
      return;
    }
    if (sent == Sent::gone) {
      counters_.answers_dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  if (client.queue.size() >= HubClient::kQueueMessagesMax ||
      client.queue_bytes + message->size() > HubClient::kQueueBytesMax) {
    counters_.answers_dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  client.queue_bytes += message->size();
  client.queue.push_back(*std::move(message));
}

bool HubSession::flush(const std::string& name, HubClient& client) {
  while (!client.queue.empty()) {
    const std::size_t size = client.queue.front().size();
    const Sent sent = send_(name, client.queue.front());
    if (sent == Sent::full) {
      return false;
    }
    counters_.answers_dropped.fetch_add(sent == Sent::gone ? 1 : 0, std::memory_order_relaxed);
    client.queue_bytes -= size;
    client.queue.pop_front();
  }
  return true;
}

bool HubSession::finish_turn(const store::Now& now) {
  wrote_alone_ = false;
  leases_.expire(now.steady);
  for (auto& [name, client] : clients_) {
    (void)flush(name, client);
  }
  go_on_with_slow_ops(now);
  send_answers(commit(now));
  bool more = deliver(now);
  // Deliveries of consumers with a bound of tries are counted on the disk before they leave.
  if (store_->has_work(now) && now.steady >= retry_at_) {
    (void)commit(now);
    more = more || !store_->stored().empty();  // dead letters, and messages that are due
  }
  outgoing_bytes_ = 0;
  for (Outgoing& outgoing : std::exchange(outgoing_, {})) {
    const auto at = clients_.find(outgoing.client);
    if (at == clients_.end()) {
      continue;
    }
    HubClient& client = at->second;
    if (!client.queue.empty() || send_(outgoing.client, outgoing.message) == Sent::full) {
      client.queue_bytes += outgoing.message.size();
      client.queue.push_back(std::move(outgoing.message));
    }
  }
  return more || slow_ops_may_go_on();
}

bool HubSession::deliver(const store::Now& now) {
  gather_groups();
  passed_ = 0;
  scans_on_ = false;
  bool any = true;
  while (any) {
    any = false;
    // Begins after the client that was served last, so that the bound of a turn starves no client.
    std::vector<std::string> order;
    for (auto at = clients_.upper_bound(last_served_); at != clients_.end(); ++at) {
      order.push_back(at->first);
    }
    for (auto at = clients_.begin(); at != clients_.end() && at->first <= last_served_; ++at) {
      order.push_back(at->first);
    }
    for (const std::string& name : order) {
      HubClient& client = clients_.find(name)->second;
      if (!client.queue.empty() || client.unheard_bytes > HubClient::kUnheardBytesMax) {
        continue;
      }
      std::vector<std::uint32_t> ids;
      for (auto at_channel = client.channels.upper_bound(client.scanned_last); at_channel != client.channels.end();
           ++at_channel) {
        ids.push_back(at_channel->first);
      }
      for (auto at_channel = client.channels.begin();
           at_channel != client.channels.end() && at_channel->first <= client.scanned_last; ++at_channel) {
        ids.push_back(at_channel->first);
      }
      for (const std::uint32_t id : ids) {
        for (std::size_t i = 0; i < kDeliveriesInARow; ++i) {
          const auto found = client.channels.find(id);
          if (found == client.channels.end() || !deliver_one(name, id, found->second, now)) {
            break;
          }
          any = true;
          if (outgoing_.size() >= kDeliveriesMax || outgoing_bytes_ >= kDeliveryBytesMax) {
            last_served_ = name;
            return true;
          }
        }
      }
    }
  }
  recall(now);
  return scans_on_;
}

bool HubSession::deliver_one(const std::string& name, std::uint32_t id, HubChannel& channel, const store::Now& now) {
  switch (channel.kind) {
    case HubChannel::Kind::consumer: return deliver_consumer(name, id, channel, now);
    case HubChannel::Kind::reader: return deliver_reader(name, id, channel, now);
    case HubChannel::Kind::leases: return channel.credit != 0 && deliver_lease(name, id, channel);
  }
  return false;
}

bool HubSession::scanned_enough() noexcept {
  scans_on_ = scans_on_ || passed_ >= kScansMax * kScanMax;
  return passed_ >= kScansMax * kScanMax;
}

// The channel that uses up the scans of a turn is the last one of the next turn.
void HubSession::count_scan(const std::string& name, std::uint32_t id, std::size_t passed, bool far) {
  passed_ += passed;
  scans_on_ = scans_on_ || far;
  if (passed != 0 && scanned_enough()) {
    last_served_ = name;
    clients_.find(name)->second.scanned_last = id;
  }
}

bool HubSession::deliver_reader(const std::string& name, std::uint32_t id, HubChannel& channel, const store::Now& now) {
  store::StoredStream* stream = stream_of(channel);
  if (stream == nullptr) {
    end_channel(name, id, Error(Errc::not_found, "the stream is gone"), 0);
    return false;
  }
  std::optional<store::ReadMessage> found;
  if (channel.credit != 0 && !scanned_enough()) {
    auto read = stream->read(channel.reader, now.wall);
    if (!read) {
      end_channel(name, id, read.error(), channel.reader.cursor.next);
      return false;
    }
    found = *std::move(read);
    count_scan(name, id, channel.reader.cursor.passed, !found && channel.reader.cursor.next < stream->next());
  }
  const bool behind =
      channel.reader.cursor.next >= channel.caught_up && (!found || found->message.sequence >= channel.caught_up);
  if (behind && !channel.told_caught_up) {
    channel.told_caught_up = true;
    Op op;
    op.kind = OpKind::caught_up;
    op.id = id;
    op.number = channel.caught_up;
    queue_delivery(name, op);
  }
  if (!found) {
    return false;
  }
  --channel.credit;
  if (!send_message(name, id, *found, 0)) {
    channel.reader.cursor.next = found->message.sequence;  // no gap: the next turn tries again
    ++channel.credit;
    return false;
  }
  return true;
}

bool HubSession::deliver_lease(const std::string& name, std::uint32_t id, HubChannel& channel) {
  Op op;
  op.id = id;
  std::string lease_name;
  if (!channel.told_caught_up) {
    const auto next = leases_.next_name(channel.prefix, channel.after, !channel.listed_one);
    if (next) {
      lease_name = channel.after = *next;
      channel.listed_one = true;
    } else {
      channel.told_caught_up = true;
      op.kind = OpKind::caught_up;
      queue_delivery(name, op);
      if (!channel.follow) {
        end_channel(name, id, {}, 0);
        return false;
      }
      return true;
    }
  } else if (!channel.changed.empty()) {
    lease_name = std::move(channel.changed.extract(channel.changed.begin()).value());
  } else {
    return false;
  }
  const Lease* lease = leases_.find(lease_name);
  op.kind = OpKind::lease_changed;
  op.flags = lease == nullptr ? OpFlags::gone : 0;
  op.name = lease_name;
  if (lease != nullptr) {
    op.number = lease->epoch;
    op.body = as_bytes(lease->data);
  }
  --channel.credit;
  queue_delivery(name, op);
  return true;
}

bool HubSession::send_message(const std::string& name, std::uint32_t id, const store::ReadMessage& read,
                              std::uint32_t before) {
  Op op;
  op.kind = OpKind::delivery;
  op.id = id;
  op.number = read.message.sequence;
  op.second = ns_of(read.message.time);
  op.code = static_cast<std::uint16_t>(std::min<std::uint32_t>(before, 0xFFFF));
  op.flags = read.message.erased ? OpFlags::erased : 0;
  op.key = read.message.topic;
  op.message_id = read.message.id;
  op.headers = read.message.headers;
  op.body = read.message.body;
  const bool queued = queue_delivery(name, op);
  counters_.delivered.fetch_add(queued ? 1 : 0, std::memory_order_relaxed);
  return queued;
}

bool HubSession::queue_delivery(const std::string& name, const Op& op) {
  auto message = encoded(op);
  if (!message) {  // no memory: a consumer's message comes again after ack_wait
    counters_.answers_dropped.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  outgoing_bytes_ += message->size();
  clients_.find(name)->second.unheard_bytes += message->size();
  outgoing_.push_back({name, *std::move(message)});
  return true;
}

void HubSession::end_channel(const std::string& name, std::uint32_t id, const Error& error, std::uint64_t number) {
  Op op;
  op.kind = OpKind::ended;
  op.id = id;
  op.code = static_cast<std::uint16_t>(error.code());
  op.number = number;
  const std::string reason = error.text();
  op.body = as_bytes(reason);
  queue_delivery(name, op);
  clients_.find(name)->second.channels.erase(id);
}

Instant HubSession::next_deadline(const store::Now& now) const {
  Instant next = slow_ops_may_go_on() ? now.steady : std::min(leases_.next_expiry(), recall_at_);
  if (store_->has_work(now)) {
    next = std::min(next, std::max(retry_at_, now.steady));
  }
  if (const WallTime age = store_->next_age(); age != WallTime::max()) {
    // A nanosecond after it, because a message goes when it is older than its age.
    const Instant due = deadline_after(now.steady, std::max(age - now.wall, Duration::zero()) + Duration(1));
    next = std::min(next, std::max(due, retry_at_));
  }
  for (const auto& [name, client] : clients_) {
    if (!client.queue.empty()) {
      next = std::min(next, now.steady + kRetrySend);
      continue;
    }
    if (client.unheard_bytes > HubClient::kUnheardBytesMax) {
      continue;
    }
    for (const auto& [id, channel] : client.channels) {
      if (channel.kind == HubChannel::Kind::consumer && channel.credit != 0) {
        store::StoredStream* stream = stream_of(channel);
        const store::StoredConsumer* consumer = stream == nullptr ? nullptr : stream->find_consumer(channel.consumer);
        if (consumer != nullptr) {
          next = std::min(next, consumer->state.next_due());
        }
      }
    }
  }
  return next;
}

}  // namespace weft::topic
