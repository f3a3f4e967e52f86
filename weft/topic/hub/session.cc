// SPDX-License-Identifier: MIT
#include "weft/topic/hub/session.h"

#include <algorithm>
#include <utility>

namespace weft::topic {
namespace {

constexpr std::size_t kNamesPage = 256;       // of info and list
constexpr std::size_t kTopicsScanned = 4096;  // rows, by one list
constexpr std::size_t kTopicCost = 1024;      // bytes of a turn that a row of a list counts for
constexpr std::uint64_t kLongestDelay = 365ULL * 24 * 3600 * 1'000'000'000;

Duration duration_of(std::uint64_t ns) noexcept {
  return Duration(static_cast<Duration::rep>(std::min(ns, kLongestDelay)));
}

std::uint64_t ns_since_epoch(WallTime time) noexcept {
  return static_cast<std::uint64_t>(std::max<Duration::rep>(0, time.time_since_epoch().count()));
}

constexpr Error kNoConsumer(Errc::not_found, "no such consumer");

}  // namespace

HubSession::HubSession(std::unique_ptr<store::Store> store, const HubOptions& options, const store::Now& now, Send send,
                       HubCounters& counters)
    : store_(std::move(store)),
      options_(options),
      send_(std::move(send)),
      counters_(counters),
      leases_(store_->incarnation(), deadline_after(now.steady, options.quiet)) {
  for (const auto& [name, stream] : store_->streams()) {
    told_.emplace(name, stream->next());
  }
  leases_.set_observer([this](const std::string& name) {
    for (auto& [client, state] : clients_) {
      for (auto& [id, channel] : state.channels) {
        if (channel.kind == HubChannel::Kind::leases && channel.follow && name.starts_with(channel.prefix)) {
          channel.changed.insert(name);
        }
      }
    }
  });
}

void HubSession::handle(const std::string& client, Bytes bytes, const store::Now& now) {
  counters_.ops.fetch_add(1, std::memory_order_relaxed);
  turn_bytes_ += bytes.size();
  const auto op = parse_op(bytes);
  if (!op) {
    if (op.error() == Errc::not_supported) {
      Op unknown;
      unknown.id = op_id(bytes);
      answer(client, unknown, op.error());
    } else {
      counters_.malformed.fetch_add(1, std::memory_order_relaxed);
    }
    return;
  }
  const auto [sender, is_new] = clients_.try_emplace(client);
  sender->second.unheard_bytes = 0;
  if (is_new) {
    counters_.clients.store(clients_.size(), std::memory_order_relaxed);
  }
  switch (op->kind) {
    case OpKind::declare: return declare(client, *op, now);
    case OpKind::info: return info(client, *op);
    case OpKind::remove: return remove(client, *op, now);
    case OpKind::purge: return purge(client, *op, now);
    case OpKind::append: return append(client, *op, now);
    case OpKind::append_all: return append_all(client, *op, now);
    case OpKind::get: return get(client, *op, now);
    case OpKind::list: return list(client, *op, now);
    case OpKind::consume: return consume(client, *op);
    case OpKind::read: return read(client, *op, now);
    case OpKind::credit: return credit(client, *op, now);
    case OpKind::end: return end(client, *op, now);
    case OpKind::begin:
    case OpKind::ack:
    case OpKind::nak:
    case OpKind::work:
    case OpKind::reject: return settle(client, *op, now);
    case OpKind::lease: return lease(client, *op, now);
    case OpKind::release: return release(client, *op);
    case OpKind::leases: return leases(client, *op);
    case OpKind::probe: {
      PendingAnswer& reply = answer(client, *op);
      reply.number = store_->incarnation();
      reply.second = clients_.size();
      return;
    }
    case OpKind::answer:
    case OpKind::delivery:
    case OpKind::caught_up:
    case OpKind::ended:
    case OpKind::recall:
    case OpKind::lease_changed: break;
  }
  answer(client, *op, Error(Errc::invalid_argument, "an op that only a hub sends"));
}

void HubSession::drop_client(const std::string& client, const store::Now& now) {
  leases_.drop_holder(client);
  if (const auto found = clients_.find(client); found != clients_.end()) {
    for (const auto& [id, channel] : found->second.channels) {
      give_back_queue(channel, now);
    }
  }
  drop_slow_ops(client, std::nullopt);
  clients_.erase(client);
  std::erase_if(answers_, [&client](const PendingAnswer& pending) { return pending.client == client; });
  counters_.clients.store(clients_.size(), std::memory_order_relaxed);
}

PendingAnswer& HubSession::answer(const std::string& client, const Op& op, const Error& error) {
  PendingAnswer pending;
  pending.client = client;
  pending.id = op.id;
  pending.error = error;
  pending.quiet = op.has(OpFlags::quiet);
  answers_.push_back(std::move(pending));
  turn_bytes_ += sizeof(PendingAnswer);
  return answers_.back();
}

void HubSession::declare(const std::string& client, const Op& op, const store::Now& now) {
  wrote_alone_ = true;
  const auto settings = parse_stream_settings(as_text(op.body));
  const auto stream = settings ? store_->declare(op.name, *settings, op.has(OpFlags::redeclare), now)
                               : Result<store::StoredStream*>(settings.error());
  PendingAnswer& reply = answer(client, op, stream.error());
  if (stream) {
    told_.try_emplace((*stream)->name(), (*stream)->next());
    reply.number = (*stream)->first();
    reply.second = (*stream)->next();
    reply.body = write_settings(kept_settings(**stream));
    reply.message_id = std::to_string(store_->instance_of(**stream));
    // The next hub of the fleet opens the same store, whichever process hosts it.
    reply.key = options_.store.size() <= kOpNameMax ? options_.store : std::string();
  }
}

StreamSettings HubSession::kept_settings(const store::StoredStream& stream) const {
  StreamSettings settings = stream.settings();
  if (options_.store_in_memory && settings.survives == Survives::power) {
    settings.survives = Survives::process;
  }
  return settings;
}

std::string HubSession::describe(const store::StoredStream& stream) const {
  std::string text = write_settings(kept_settings(stream));
  const auto add = [&text](std::string_view name, std::uint64_t value) {
    text.append(name).append("=").append(std::to_string(value)).append("\n");
  };
  add("first", stream.first());
  add("next", stream.next());
  add("bytes", stream.bytes() + stream.delayed().bytes());
  add("delayed", stream.delayed().count());
  add("evicted", stream.evicted());
  add("dropped_unread", stream.dropped_unread());
  add("damaged", stream.damaged());
  for (const auto& [name, consumer] : stream.consumers()) {
    text.append("consumer=").append(name).append("\n");
    add("floor", consumer->state.floor());
    add("waiting", consumer->state.delivered());
  }
  return text;
}

void HubSession::info(const std::string& client, const Op& op) {
  if (!op.name.empty()) {
    const store::StoredStream* stream = store_->find(op.name);
    PendingAnswer& reply = answer(client, op, stream == nullptr ? store_->absence_of(op.name) : Error());
    if (stream != nullptr) {
      reply.number = stream->first();
      reply.second = stream->next();
      reply.message_id = std::to_string(store_->instance_of(*stream));
      reply.body = describe(*stream).substr(0, kOpBodyMax);
      turn_bytes_ += reply.body.size();
    }
    return;
  }
  PendingAnswer& reply = answer(client, op);
  for (const std::string& name : store_->names_after(op.key, kNamesPage + 1)) {
    if (reply.number == kNamesPage) {
      reply.flags |= OpFlags::more;
      break;
    }
    reply.body.append(name).append("\n");
    reply.key = name;
    ++reply.number;
  }
  turn_bytes_ += reply.body.size();
}

void HubSession::remove(const std::string& client, const Op& op, const store::Now& now) {
  wrote_alone_ = true;
  send_answers(commit(now));  // the turn's messages of the stream are answered before it goes
  store::StoredStream* stream = store_->find(op.name);
  if (stream == nullptr && !op.key.empty()) {
    answer(client, op, store_->absence_of(op.name));
    return;
  }
  const Result<void> done = op.key.empty() ? store_->remove(op.name) : store_->remove_consumer(*stream, op.key);
  if (const auto told = told_.find(op.name); done && op.key.empty() && told != told_.end()) {
    told_.erase(told);
  }
  answer(client, op, done.error());
}

void HubSession::append(const std::string& client, const Op& op, const store::Now& now) {
  store::StoredStream* stream = store_->find(op.name);
  if (stream == nullptr) {
    answer(client, op, store_->absence_of(op.name));
    return;
  }
  store::NewMessage message;
  message.topic = op.key;
  message.id = op.message_id;
  message.headers = op.headers;
  message.body = op.body;
  message.erased = op.has(OpFlags::erased);
  message.time_to_live = op.time_to_live();
  message.delay = op.delay();
  store::Expect expect;
  if (op.has(OpFlags::expect_last)) {
    expect.last = op.number;
  }
  expect.absent = op.has(OpFlags::expect_absent);
  expect.instance = op.second;
  const auto appended = store_->append(*stream, message, expect, now);
  PendingAnswer& reply = answer(client, op, appended.error());
  if (appended) {
    reply.number = appended->sequence;
    reply.flags = appended->duplicate ? OpFlags::duplicate : 0;
    reply.needs = stream->in_memory() ? PendingAnswer::Needs::memory : PendingAnswer::Needs::disk;
    reply.message_id = news_of_instance(op, *stream);
    reply.in_run = op.has(OpFlags::run) && appended->sequence != 0 && !appended->duplicate && reply.message_id.empty();
  }
}

namespace {

// Whether the message of a work stream was acknowledged. Its block stays until all of it was.
bool is_finished(const store::StoredStream& stream, std::uint64_t sequence) {
  return stream.settings().keep == Keep::work &&
         std::any_of(stream.consumers().begin(), stream.consumers().end(),
                     [&](const auto& each) { return each.second->state.done_with(sequence, sequence); });
}

}  // namespace

void HubSession::get(const std::string& client, const Op& op, const store::Now& now) {
  store::StoredStream* stream = store_->find(op.name);
  if (stream == nullptr) {
    answer(client, op, store_->absence_of(op.name));
    return;
  }
  if (op.has(OpFlags::by_sequence) && is_finished(*stream, op.number)) {
    answer(client, op, Error(Errc::not_found, "no such message"));
    return;
  }
  const auto found =
      op.has(OpFlags::by_sequence) ? stream->message_at(op.number, now.wall) : stream->newest_of(op.key, now.wall);
  if (!found || !*found) {
    answer(client, op, found ? Error(Errc::not_found, "no such message") : found.error());
    return;
  }
  const store::StoredMessage& message = (*found)->message;
  PendingAnswer& reply = answer(client, op);
  reply.number = message.sequence;
  reply.second = ns_since_epoch(message.time);
  reply.flags = message.erased ? OpFlags::erased : 0;
  reply.name = news_of_instance(op, *stream);
  reply.key = message.topic;
  reply.message_id = message.id;
  reply.headers = as_text(message.headers);
  reply.body = as_text(message.body);
  turn_bytes_ += reply.headers.size() + reply.body.size();
}

void HubSession::list(const std::string& client, const Op& op, const store::Now& now) {
  store::StoredStream* stream = store_->find(op.name);
  const auto filter = store::parse_optional_filter(as_text(op.body));
  if (stream == nullptr || !filter) {
    answer(client, op, stream == nullptr ? store_->absence_of(op.name) : filter.error());
    return;
  }
  std::string after(op.key);
  std::string body;
  std::uint64_t count = 0;
  bool more = true;
  std::size_t scanned = 0;
  for (; more && count < kNamesPage && scanned < kTopicsScanned; scanned += kNamesPage) {
    const auto page = stream->topics_after(after, kNamesPage, now.wall);
    if (!page) {
      answer(client, op, page.error());
      return;
    }
    more = page->more;
    after = page->after;
    for (const store::TopicPage::Entry& entry : page->topics) {
      if (!*filter || (*filter)->matches(entry.topic)) {
        body.append(entry.topic).append("\n");
        if (++count == kNamesPage) {
          more = more || &entry != &page->topics.back() || after != entry.topic;
          after = entry.topic;
          break;
        }
      }
    }
  }
  turn_bytes_ += scanned * kTopicCost;
  PendingAnswer& reply = answer(client, op);
  reply.number = count;
  reply.flags = more ? OpFlags::more : 0;
  reply.key = std::move(after);
  reply.body = std::move(body);
  turn_bytes_ += reply.body.size();
}

bool HubSession::is_of(const Op& op, const store::StoredStream& stream) const {
  return op.message_id.empty() || op.message_id == std::to_string(store_->instance_of(stream));
}

std::string HubSession::news_of_instance(const Op& op, const store::StoredStream& stream) const {
  const std::uint64_t instance = store_->instance_of(stream);
  return op.second == 0 || op.second == instance ? std::string() : std::to_string(instance);
}

store::StoredStream* HubSession::stream_of(const HubChannel& channel) const noexcept {
  store::StoredStream* stream = store_->find(channel.stream);
  const bool same = stream != nullptr && stream->id() == channel.stream_id && stream->in_memory() == channel.in_memory;
  return same ? stream : nullptr;
}

Result<HubChannel*> HubSession::open_channel(const std::string& client, const Op& op) {
  auto& channels = clients_[client].channels;
  if (op.number > HubChannel::kCreditMax) {
    return Error(Errc::invalid_argument, "more credit than 1,048,576");
  }
  if (channels.size() >= HubClient::kChannelsMax) {
    return Error(Errc::resource_exhausted, "a connection has 1,024 channels");
  }
  const auto [at, added] = channels.try_emplace(op.id);
  if (!added) {
    return Error(Errc::invalid_state, "the id is an open channel's");
  }
  at->second.credit = op.number;
  return &at->second;
}

void HubSession::consume(const std::string& client, const Op& op, std::uint64_t next) {
  store::StoredStream* stream = store_->find(op.name);
  if (stream == nullptr) {
    answer(client, op, store_->absence_of(op.name));
    return;
  }
  const auto priority = op.has(OpFlags::prioritized) ? priority_of(op.second) : Result<std::uint8_t>(std::uint8_t{0});
  if (!priority) {
    answer(client, op, priority.error());
    return;
  }
  if (next == 0 && !op.body.empty()) {
    const auto settings = parse_consumer_settings(as_text(op.body));
    const store::StoredConsumer* there = stream->find_consumer(op.key);
    const bool begins =
        there == nullptr || (op.has(OpFlags::redeclare) && settings && !(there->settings.from == settings->from));
    if (begins && settings && stream->settings().keep != Keep::work && begin_scan(client, op, *stream, *settings)) {
      return;
    }
  }
  const auto make = [&]() -> Result<store::StoredConsumer*> {
    if (op.body.empty()) {
      store::StoredConsumer* there = stream->find_consumer(op.key);
      return there != nullptr ? Result<store::StoredConsumer*>(there) : Result<store::StoredConsumer*>(kNoConsumer);
    }
    const auto settings = WEFT_TRY(parse_consumer_settings(as_text(op.body)));
    return store_->consumer(*stream, op.key, settings, op.has(OpFlags::redeclare), next);
  };
  const auto consumer = make();
  const auto channel = consumer ? open_channel(client, op) : Result<HubChannel*>(consumer.error());
  PendingAnswer& reply = answer(client, op, channel.error());
  if (channel) {
    (*channel)->kind = HubChannel::Kind::consumer;
    (*channel)->stream = stream->name();
    (*channel)->stream_id = stream->id();
    (*channel)->in_memory = stream->in_memory();
    (*channel)->consumer = (*consumer)->name;
    (*channel)->priority = *priority;
    (*consumer)->cursor.scan_max = kScanMax;
    (*channel)->holder = op.has(OpFlags::begins) ? ++last_holder_ : store::kNoHolder;
    reply.message_id = std::to_string(store_->instance_of(*stream));
    reply.number = (*consumer)->state.floor();
    reply.second = stream->next();
    reply.body = write_settings((*consumer)->settings);
    reply.needs = stream->in_memory() ? PendingAnswer::Needs::memory : PendingAnswer::Needs::positions;
  }
}

void HubSession::read(const std::string& client, const Op& op, const store::Now& now, std::uint64_t next) {
  store::StoredStream* stream = store_->find(op.name);
  const auto settings = parse_consumer_settings(as_text(op.body));
  if (stream == nullptr || !settings) {
    answer(client, op, stream == nullptr ? store_->absence_of(op.name) : settings.error());
    return;
  }
  if (next == 0 && stream->settings().keep != Keep::work && begin_scan(client, op, *stream, *settings)) {
    return;
  }
  // A sequence of another life of the stream has no meaning: all that this one has is new to the reader.
  const bool strange = !is_of(op, *stream) && settings->from.kind == From::Kind::sequence;
  const From from = strange ? From::first() : next != 0 ? From::sequence(next) : settings->from;
  auto reader = stream->open_reader(settings->filter, from, now.wall);
  const auto channel = reader ? open_channel(client, op) : Result<HubChannel*>(reader.error());
  PendingAnswer& reply = answer(client, op, channel.error());
  if (channel) {
    (*channel)->kind = HubChannel::Kind::reader;
    (*channel)->stream = stream->name();
    (*channel)->stream_id = stream->id();
    (*channel)->in_memory = stream->in_memory();
    (*channel)->reader = *std::move(reader);
    (*channel)->reader.cursor.scan_max = kScanMax;
    (*channel)->caught_up = stream->next();
    reply.message_id = std::to_string(store_->instance_of(*stream));
    reply.number = (*channel)->reader.cursor.next;
    reply.second = stream->next();
  }
}

void HubSession::credit(const std::string& client, const Op& op, const store::Now& now) {
  auto& channels = clients_[client].channels;
  const auto at = channels.find(op.id);
  if (at == channels.end()) {
    // A channel that the hub ended meanwhile: the member is about to read so.
    answer(client, op, op.has(OpFlags::quiet) ? Error() : Error(Errc::not_found, "no such channel"));
    return;
  }
  if (op.number > HubChannel::kCreditMax - std::min(at->second.credit, HubChannel::kCreditMax)) {
    answer(client, op, Error(Errc::invalid_argument, "more credit than 1,048,576"));
    return;
  }
  at->second.credit += op.number;
  if (op.number == 0) {  // a member that gave messages back: its program waits for the next one
    note_taken(client, op.id, now);
  }
  answer(client, op).number = at->second.credit;
}

void HubSession::end(const std::string& client, const Op& op, const store::Now& now) {
  auto& channels = clients_[client].channels;
  const auto at = channels.find(op.id);
  drop_slow_ops(client, op.id);
  answer(client, op, at != channels.end() ? Error() : Error(Errc::not_found, "no such channel"));
  if (at != channels.end()) {
    give_back_queue(at->second, now);
    channels.erase(at);
  }
}

std::uint64_t HubSession::begin_or_give_back(const std::string& client, const Op& op, store::StoredConsumer& consumer,
                                             const store::Now& now) {
  auto& channels = clients_[client].channels;
  const auto at = channels.find(op.id);
  if (at == channels.end() || at->second.holder == store::kNoHolder || at->second.consumer != op.key) {
    return 0;  // its messages returned when the channel ended
  }
  const store::Holder holder = at->second.holder;
  const auto settle_one = [&](std::uint64_t sequence) -> std::uint64_t {
    const bool held = op.kind == OpKind::begin ? store_->begin(consumer, sequence, holder, now)
                                               : store_->give_back(consumer, sequence, holder, now);
    return held ? 1 : 0;
  };
  if (op.kind == OpKind::begin) {
    note_taken(client, op.id, now);
  }
  std::uint64_t count = settle_one(op.number);
  for (std::size_t i = 0; i < sequence_count(op.body); ++i) {
    count += settle_one(sequence_at(op.body, i));
  }
  if (op.kind == OpKind::nak) {
    at->second.recalled.reset();
  }
  return count;
}

void HubSession::settle(const std::string& client, const Op& op, const store::Now& now) {
  store::StoredStream* stream = store_->find(op.name);
  store::StoredConsumer* consumer = stream == nullptr ? nullptr : stream->find_consumer(op.key);
  if (consumer == nullptr || !is_of(op, *stream)) {
    const Error absent = stream == nullptr     ? store_->absence_of(op.name)
                         : consumer == nullptr ? kNoConsumer
                                               : kNoStream;
    answer(client, op, absent);
    return;
  }
  std::uint64_t waited = 0;
  const bool quiet = op.has(OpFlags::quiet);
  PendingAnswer& reply = answer(client, op);
  if (sequence_count(op.body) > kOpSequencesMax && op.kind != OpKind::reject) {
    reply.error = Error(Errc::invalid_argument, "more than 4,096 sequences of one ack");
    return;
  }
  if (op.kind == OpKind::begin || op.has(OpFlags::unseen)) {
    reply.number = begin_or_give_back(client, op, *consumer, now);
    reply.second = op.number;
    return;
  }
  switch (op.kind) {
    case OpKind::ack: {
      note_taken(client, op.id, now);
      waited += store_->ack(*consumer, op.number, !quiet) ? 1 : 0;
      for (std::size_t i = 0; i < sequence_count(op.body); ++i) {
        waited += store_->ack(*consumer, sequence_at(op.body, i), !quiet) ? 1 : 0;
      }
      break;
    }
    case OpKind::nak:
      // All ones: the wait of the consumer's settings.
      waited =
          consumer->state.nak(op.number, ~op.second == 0 ? Duration(-1) : duration_of(op.second), now.steady) ? 1 : 0;
      break;
    case OpKind::work: waited = consumer->state.work(op.number, now.steady) ? 1 : 0; break;
    default: waited = store_->ack(*consumer, op.number, !quiet) ? 1 : 0; break;
  }
  reply.number = waited;
  reply.needs = quiet                 ? PendingAnswer::Needs::nothing
                : stream->in_memory() ? PendingAnswer::Needs::memory
                                      : PendingAnswer::Needs::positions;
}

void HubSession::lease(const std::string& client, const Op& op, const store::Now& now) {
  const auto epoch = leases_.take(op.name, client, op.second, duration_of(op.number), as_text(op.body), now.steady);
  PendingAnswer& reply = answer(client, op, epoch.error());
  if (epoch) {
    reply.number = *epoch;
  } else if (const Lease* held = leases_.find(op.name); epoch.error() == Errc::conflict && held != nullptr) {
    reply.number = held->epoch;
    reply.body = held->data;
  }
}

void HubSession::release(const std::string& client, const Op& op) {
  const bool held = leases_.release(op.name, client);
  answer(client, op, held ? Error() : Error(Errc::not_found, "the member does not hold the lease"));
}

void HubSession::leases(const std::string& client, const Op& op) {
  const auto channel = open_channel(client, op);
  answer(client, op, channel.error()).number = leases_.size();
  if (channel) {
    (*channel)->kind = HubChannel::Kind::leases;
    (*channel)->prefix = op.name;
    (*channel)->follow = op.has(OpFlags::follow);
  }
}

}  // namespace weft::topic
