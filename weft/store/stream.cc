// SPDX-License-Identifier: MIT
#include "weft/store/stream.h"

#include <algorithm>
#include <utility>

#include "weft/base/assert.h"

namespace weft::store {
namespace {

constexpr std::size_t kScanPage = 1024;
constexpr std::uint64_t kAny = ~std::uint64_t{0};
constexpr Error kTakesAll(Errc::not_supported, "the consumer of a work stream takes all of it");

Result<void> check_consumer_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > StoredStream::kConsumerNameMax) {
    return Error(Errc::invalid_argument, "a name of 1 to 255 bytes");
  }
  return {};
}

}  // namespace

Result<std::optional<Filter>> parse_optional_filter(std::string_view text) noexcept {
  if (text.empty()) {
    return std::optional<Filter>();
  }
  return std::optional(WEFT_TRY(Filter::parse(text)));
}

Result<std::vector<Filter>> parse_filters(const std::vector<std::string>& texts) {
  std::vector<Filter> filters;
  filters.reserve(texts.size());
  for (const std::string& text : texts) {
    filters.push_back(WEFT_TRY(Filter::parse(text)));
  }
  return filters;
}

TopicPredicate StoredConsumer::wants() const {
  if (!filter) {
    return {};
  }
  return [this](std::string_view topic) { return filter->matches(topic); };
}

void StoredConsumer::count_delivery() noexcept {
  // With a bound of tries the deliveries are on the disk before the messages leave: a message that kills its receiver,
  // and the hub with it, is counted too.
  if (settings.tries_max != 0) {
    change();
  }
  moved = true;
}

void StoredConsumer::change() noexcept {
  changed = true;
  if (stream != nullptr) {
    stream->add_work();
  }
}

StoredStream::StoredStream(std::uint32_t id, std::string name, StreamSettings settings, std::vector<Filter> topics,
                           std::variant<MessageLog, Latest> messages, DelayedMessages delayed, IdSql& id_sql,
                           List<StoredStream>& work)
    : id_(id),
      name_(std::move(name)),
      settings_(std::move(settings)),
      topics_(std::move(topics)),
      messages_(std::move(messages)),
      delayed_(std::move(delayed)),
      id_sql_(&id_sql),
      work_(&work) {
  if (auto* log = std::get_if<MessageLog>(&messages_)) {
    log->set_bytes_max(settings_.bytes_max);
  }
}

bool StoredStream::takes(std::string_view topic) const noexcept {
  return topics_.empty() ||
         std::any_of(topics_.begin(), topics_.end(), [topic](const Filter& filter) { return filter.matches(topic); });
}

std::uint64_t StoredStream::first() const noexcept {
  return std::visit([](const auto& messages) { return messages.first(); }, messages_);
}
std::uint64_t StoredStream::next() const noexcept {
  return std::visit([](const auto& messages) { return messages.next(); }, messages_);
}
std::uint64_t StoredStream::bytes() const noexcept {
  return std::visit([](const auto& messages) { return messages.bytes(); }, messages_);
}
WallTime StoredStream::oldest() const noexcept {
  return std::visit([](const auto& messages) { return messages.oldest(); }, messages_);
}
std::uint64_t StoredStream::staged_count() const noexcept {
  return std::visit([](const auto& messages) { return messages.next_staged() - messages.next(); }, messages_);
}
std::size_t StoredStream::staged_bytes() const noexcept {
  return std::visit([](const auto& messages) { return messages.staged_bytes(); }, messages_);
}

Result<void> StoredStream::open(std::uint64_t next, std::uint64_t purged, WallTime now) {
  WEFT_TRY(std::visit([next, purged](auto& messages) { return messages.open(next, purged); }, messages_));
  newest_ = std::visit([](const auto& messages) { return messages.newest(); }, messages_);
  std::optional<WallTime> since;
  if (settings_.same_id_window > Duration::zero()) {
    // A clock that went back finds more of them. The newest message may be gone, and its id is not.
    since = std::min(now, newest_ == WallTime() ? now : newest_) - settings_.same_id_window;
    const ReadIds read = WEFT_TRY(read_ids(*id_sql_, id_, *since, ids_));
    damaged_ += read.damaged;
    newest_ = std::max(newest_, read.newest);
  }
  damaged_ += WEFT_TRY(delayed_.open(since));
  newest_kept_ = newest_;
  return {};
}

Result<void> StoredStream::make_id_rows() {
  if (settings_.same_id_window == Duration::zero()) {
    return {};
  }
  const WallTime since = newest_ - settings_.same_id_window;
  StoredReader reader;
  reader.cursor.next = WEFT_TRY(std::visit([since](auto& messages) { return messages.first_at(since); }, messages_));
  for (;;) {
    const auto message = read(reader, WallTime::min());
    if (!message && message.error() != Errc::corrupt) {
      return message.error();
    }
    if (!message) {  // the ids of a damaged block are unknown
      const std::uint64_t at = reader.cursor.next;
      auto* log = std::get_if<MessageLog>(&messages_);
      reader.cursor.next = log == nullptr ? at + 1 : WEFT_TRY(log->skip_block(at));
    } else if (*message) {
      ids_.add((*message)->message.id, (*message)->message.sequence, (*message)->message.time);
    } else {
      return write_ids(*id_sql_, id_, ids_, 0);
    }
  }
}

void StoredStream::count_damage(const Error& error, std::uint64_t sequence) {
  if (error == Errc::corrupt && damaged_at_.size() < kDamagedMax && damaged_at_.insert(sequence).second) {
    ++damaged_;
  }
}

Result<TopicLast> StoredStream::last_of(std::string_view topic, WallTime now) {
  const TopicLast last = WEFT_TRY(std::visit([topic](auto& messages) { return messages.last_of(topic); }, messages_));
  return last.expires <= time_of(now) ? TopicLast() : last;
}

Result<std::uint64_t> StoredStream::resolve(const From& from, const std::optional<Filter>& filter, WallTime now) {
  switch (from.kind) {
    case From::Kind::first:
    case From::Kind::last_per_topic: return first();
    case From::Kind::next: return next();
    case From::Kind::sequence: return std::max(from.value, first());
    case From::Kind::time: {
      const WallTime time(Duration(static_cast<Duration::rep>(std::min(from.value, kAny >> 1U))));
      return std::visit([time](auto& messages) { return messages.first_at(time); }, messages_);
    }
    case From::Kind::last: break;
  }
  if (!filter) {
    return std::max(first(), next() - 1);
  }
  LastScan scan;
  while (!WEFT_TRY(scan_last(scan, *filter, kScanPage, now))) {
  }
  return position_of(scan);
}

Result<bool> StoredStream::scan_last(LastScan& scan, const Filter& filter, std::size_t rows, WallTime now) {
  const TopicPage page = WEFT_TRY(topics_after(scan.after, rows, now));
  for (const TopicPage::Entry& entry : page.topics) {
    if (filter.matches(entry.topic)) {
      scan.newest = std::max(scan.newest, entry.last);
    }
  }
  scan.after = page.after;
  return !page.more;
}

std::uint64_t StoredStream::position_of(const LastScan& scan) const noexcept {
  return scan.newest == 0 ? next() : std::max(scan.newest, first());
}

Result<StoredReader> StoredStream::open_reader(std::string_view filter, const From& from, WallTime now) {
  if (settings_.keep == Keep::work) {
    return Error(Errc::not_supported, "a work stream is read by its consumer");
  }
  StoredReader reader;
  reader.filter = WEFT_TRY(parse_optional_filter(filter));
  reader.cursor.next = WEFT_TRY(resolve(from, reader.filter, now));
  reader.newest_until = from.kind == From::Kind::last_per_topic ? next() : 0;
  return reader;
}

Result<std::optional<ReadMessage>> StoredStream::read(StoredReader& reader, WallTime now) {
  TopicPredicate wants;
  if (reader.filter) {
    wants = [&reader](std::string_view topic) { return reader.filter->matches(topic); };
  }
  reader.cursor.passed = 0;
  do {
    auto result =
        std::visit([&](auto& messages) { return messages.read(reader.cursor, wants, time_of(now)); }, messages_);
    count_damage(result.error(), reader.cursor.next);
    auto found = WEFT_TRY(std::move(result));
    if (!found || found->message.sequence >= reader.newest_until) {
      return found;
    }
    reader.cursor.passed += kLookUpCost;
    if (WEFT_TRY(last_of(found->message.topic, now)).sequence == found->message.sequence) {
      return found;
    }
  } while (!reader.cursor.passed_enough());
  return std::optional<ReadMessage>();
}

Result<std::optional<ReadMessage>> StoredStream::message_at(std::uint64_t sequence, WallTime now) {
  Cursor cursor;
  return message_at(sequence, cursor, now);
}

Result<std::optional<ReadMessage>> StoredStream::message_at(std::uint64_t sequence, Cursor& cursor, WallTime now) {
  if (sequence < first() || sequence >= next()) {
    return std::optional<ReadMessage>();
  }
  if (auto* latest = std::get_if<Latest>(&messages_)) {
    auto value = WEFT_TRY(latest->value_at(sequence));
    return value && value->message.is_over(time_of(now)) ? std::optional<ReadMessage>() : std::move(value);
  }
  cursor.next = sequence;
  auto found = WEFT_TRY(std::get<MessageLog>(messages_).read(cursor, {}, time_of(now)));
  if (found && found->message.sequence != sequence) {
    found.reset();
  }
  return found;
}

Result<std::optional<ReadMessage>> StoredStream::newest_of(std::string_view topic, WallTime now) {
  const TopicLast last = WEFT_TRY(last_of(topic, now));
  return message_at(last.sequence, now);
}

Result<TopicPage> StoredStream::topics_after(std::string_view after, std::size_t rows, WallTime now) {
  auto page =
      WEFT_TRY(std::visit([&](auto& messages) { return messages.topics_after(after, rows, time_of(now)); }, messages_));
  for (const std::uint64_t sequence : page.damaged) {
    count_damage(Errc::corrupt, sequence);
  }
  return page;
}

StoredConsumer* StoredStream::find_consumer(std::string_view name) noexcept {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : found->second.get();
}

Result<std::uint64_t> StoredStream::begin_of(const ConsumerSettings& settings, const std::optional<Filter>& filter,
                                             std::uint64_t next) {
  if (settings.from.kind == From::Kind::last_per_topic) {
    return Error(Errc::not_supported, "a consumer from the newest of each topic: only a reader does so");
  }
  if (settings_.keep == Keep::work && settings.from.kind != From::Kind::first) {
    return kTakesAll;
  }
  return next != 0 ? next : resolve(settings.from, filter, WallTime::min());
}

Result<std::unique_ptr<StoredConsumer>> StoredStream::make_consumer(std::string_view name,
                                                                    const ConsumerSettings& settings,
                                                                    std::uint64_t next) {
  WEFT_TRY(check_consumer_name(name));
  WEFT_TRY(check_settings(settings));
  if (consumers_.size() >= kConsumersMax) {
    return Error(Errc::resource_exhausted, "a stream has 1,024 consumers");
  }
  auto filter = WEFT_TRY(parse_optional_filter(settings.filter));
  if (settings_.keep == Keep::work) {
    if (!consumers_.empty()) {
      return Error(Errc::conflict, "a work stream has one consumer, whose members share its messages");
    }
    if (filter) {
      return kTakesAll;
    }
  }
  next = WEFT_TRY(begin_of(settings, filter, next));
  return std::unique_ptr<StoredConsumer>(
      new StoredConsumer{std::string(name), settings, filter, ConsumerState(settings, next), {}, true});
}

Result<void> StoredStream::change_consumer(StoredConsumer& consumer, const ConsumerSettings& settings,
                                           std::uint64_t next) {
  WEFT_TRY(check_settings(settings));
  if (consumer.settings.filter != settings.filter) {
    return Error(Errc::not_supported, "the filter of a consumer cannot be changed");
  }
  if (consumer.settings.from == settings.from) {
    consumer.state.set_settings(settings);
  } else {
    consumer.state = ConsumerState(settings, WEFT_TRY(begin_of(settings, consumer.filter, next)));
    consumer.cursor.block.reset();
    consumer.again.block.reset();
  }
  consumer.settings = settings;
  return {};
}

StoredConsumer& StoredStream::add_consumer(std::unique_ptr<StoredConsumer> consumer) {
  StoredConsumer& added = *consumer;
  added.stream = this;
  if (added.changed) {
    add_work();
  }
  consumers_.insert_or_assign(added.name, std::move(consumer));
  return added;
}

void StoredStream::remove_consumer(std::string_view name) {
  if (const auto found = consumers_.find(name); found != consumers_.end()) {
    consumers_.erase(found);
  }
}

bool StoredStream::update_work() noexcept {
  const bool has_work =
      has_staged() || must_drop(WallTime()) ||  // by age: see ages_at()
      std::any_of(consumers_.begin(), consumers_.end(), [](const auto& named) { return named.second->changed; });
  has_work ? add_work() : unhook();
  return has_work;
}

WallTime StoredStream::ages_at() const noexcept {
  const bool has_rows = std::visit([](const auto& messages) { return messages.has_rows(); }, messages_);
  const bool ages = settings_.age_max != Duration::zero() && has_rows && oldest() < WallTime::max() - settings_.age_max;
  const WallTime ends = std::visit([](const auto& messages) { return messages.ends(); }, messages_);
  const WallTime due = delayed_.next_due();  // the store has work after this time: a ns is taken from it
  return std::min(
      {ends, ages ? oldest() + settings_.age_max : WallTime::max(), due == WallTime::max() ? due : due - Duration(1)});
}

Result<std::optional<StoredDelivery>> StoredStream::next_delivery(StoredConsumer& consumer, Instant now, WallTime wall,
                                                                  Holder holder) {
  ConsumerState& state = consumer.state;
  const auto count = [&] { holder == kNoHolder ? consumer.count_delivery() : void(consumer.moved = true); };
  std::size_t& passed = consumer.cursor.passed;
  while (const auto due = state.due(now)) {
    if (state.exhausted(*due) || consumer.cursor.passed_enough()) {
      return std::optional<StoredDelivery>();
    }
    auto at = message_at(due->sequence, consumer.again, wall);
    passed += kLookUpCost + std::exchange(consumer.again.passed, 0);
    if (!at && at.error() != Errc::corrupt) {
      return at.error();
    }
    auto found = at ? *std::move(at) : std::optional<ReadMessage>();
    if (!found) {  // it is over; retention, or a newer value of the topic, took it; or it is damaged
      state.ack(due->sequence);
      consumer.change();
      ++dropped_unread_;
      continue;
    }
    state.deliver_again(due->sequence, now, holder);
    count();
    return std::optional(StoredDelivery{*std::move(found), due->tries + 1});
  }
  consumer.again.block.reset();
  if (!state.may_take_new()) {
    return std::optional<StoredDelivery>();
  }
  consumer.cursor.next = state.next();
  const auto read_next = [&] {
    return std::visit([&](auto& messages) { return messages.read(consumer.cursor, consumer.wants(), time_of(wall)); },
                      messages_);
  };
  auto next = read_next();
  count_damage(next.error(), consumer.cursor.next);
  while (!next && next.error() == Errc::corrupt && !consumer.cursor.passed_enough()) {  // those after it are whole
    passed += kLookUpCost;
    const std::uint64_t at = consumer.cursor.next;
    consumer.cursor.next = WEFT_TRY(std::visit([at](auto& messages) { return messages.skip_block(at); }, messages_));
    consumer.cursor.block.reset();
    state.skip_to(consumer.cursor.next);
    consumer.change();
    next = read_next();
  }
  auto found = WEFT_TRY(std::move(next));
  if (!found) {
    state.skip_to(consumer.cursor.next);
    return std::optional<StoredDelivery>();
  }
  state.deliver_new(found->message.sequence, now, holder);
  count();
  return std::optional(StoredDelivery{*std::move(found), 1});
}

std::optional<StoredStream::Exhausted> StoredStream::exhausted(StoredConsumer& consumer, Instant now) {
  const auto due = consumer.state.due(now);
  if (!due || !consumer.state.exhausted(*due)) {
    return std::nullopt;
  }
  return Exhausted{due->sequence, due->tries};
}

void StoredStream::set_settings(StreamSettings settings, std::vector<Filter> topics) {
  settings_ = std::move(settings);
  topics_ = std::move(topics);
  if (auto* latest = std::get_if<Latest>(&messages_)) {
    latest->set_history(settings_.history);
  }
  if (auto* log = std::get_if<MessageLog>(&messages_)) {
    log->set_bytes_max(settings_.bytes_max);
  }
}

Result<void> StoredStream::write_staged() {
  const std::uint64_t oldest = ids_.first_sequence().value_or(next());
  if (oldest != ids_from_ || (ids_.last_sequence() && *ids_.last_sequence() >= next())) {
    WEFT_TRY(write_ids(*id_sql_, id_, ids_, next()));
    ids_from_ = oldest;
  }
  if (delayed_.has_staged()) {
    WEFT_TRY(delayed_.write_staged());
  }
  return std::visit([](auto& messages) { return messages.write_staged(); }, messages_);
}

void StoredStream::keep_staged() {
  std::visit([](auto& messages) { messages.keep_staged(); }, messages_);
  delayed_.keep_staged();
  for (const MessageLog::Dropped& dropped : std::exchange(drops_, {})) {
    std::visit([&dropped](auto& messages) { messages.keep_dropped(dropped); }, messages_);
  }
  newest_kept_ = newest_;
  sweep_ = sweeping_;
  evicted_ += std::exchange(evicting_, 0);
  ids_.forget_before(ids_since(), kIdsPerCommit);
  delayed_.forget_ids(delayed_ids_since(), kIdsPerCommit);
  for (auto& [name, consumer] : consumers_) {
    // Without a filter, undelivered messages were unread, too.
    const std::uint64_t unseen = consumer->filter ? 0 : first() - std::min(first(), consumer->state.next());
    const std::uint64_t dropped = unseen + consumer->state.drop_before(first());
    dropped_unread_ += dropped;
    if (dropped != 0) {
      consumer->change();
    }
  }
}

void StoredStream::drop_staged() {
  drops_.clear();
  sweeping_ = sweep_;
  evicting_ = 0;
  delayed_.drop_staged();
  std::visit([](auto& messages) { messages.drop_staged(); }, messages_);
  newest_ = newest_kept_;
  ids_.forget_from(next());
}

}  // namespace weft::store
