// SPDX-License-Identifier: MIT
#include "weft/store/store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/store/rows.h"
#include "weft/store/schema.h"
#include "weft/store/side.h"

namespace weft::store {
namespace {

constexpr Error kPurgeInTurn(Errc::invalid_state, "a purge within a turn that has messages of the stream");
constexpr Error kOtherLife(Errc::conflict, "the sequence counts another life of the stream");
constexpr Duration kBuryAgain = std::chrono::seconds(1);  // while the stream of dead letters refuses one

}  // namespace

Result<void> check_stream_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > Store::kStreamNameMax ||
      std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x21; })) {
    return Error(Errc::invalid_argument, "the name of a stream: 1 to 255 bytes without spaces");
  }
  return {};
}

Store::~Store() = default;

std::unique_ptr<StoredStream> Store::make_stream(Side& side, std::uint32_t id, std::string_view name,
                                                 const StreamSettings& settings, std::vector<Filter> topics) {
  auto messages = settings.keep == Keep::latest
                      ? std::variant<MessageLog, Latest>(Latest(side.latest, id, settings.history))
                      : std::variant<MessageLog, Latest>(MessageLog(side.log, id));
  return std::make_unique<StoredStream>(id, std::string(name), settings, std::move(topics), std::move(messages),
                                        DelayedMessages(side.delayed, id), side.ids, work_);
}

Error Store::absence_of(std::string_view name) const noexcept {
  return damaged_.find(name) == damaged_.end() ? Error(Errc::not_found, "no such stream") : kDamagedStream;
}

std::vector<std::string> Store::names_after(std::string_view after, std::size_t count) const {
  std::vector<std::string> names;
  auto whole = streams_.upper_bound(after);
  auto damaged = damaged_.upper_bound(after);
  while (names.size() < count && (whole != streams_.end() || damaged != damaged_.end())) {
    const bool first = damaged == damaged_.end() || (whole != streams_.end() && whole->first < damaged->first);
    names.push_back(first ? (whole++)->first : (damaged++)->first);
  }
  return names;
}

Store::Side* Store::side_of(const StoredStream& stream) noexcept {
  return stream.in_memory() ? memory_.get() : disk_.get();
}

StoredStream* Store::find(std::string_view name) noexcept {
  const auto found = streams_.find(name);
  return found == streams_.end() ? nullptr : found->second.get();
}

StoredStream* Store::find_topic(std::string_view topic) noexcept {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [topic](const auto& entry) {
    return !entry.second->settings().topics.empty() && entry.second->takes(topic);
  });
  return found == streams_.end() ? nullptr : found->second.get();
}

Result<void> Store::in_transaction(Side& side, const std::function<Result<void>()>& write) {
  const auto run = [&]() -> Result<void> {
    WEFT_TRY(side.database.begin(Flush::power));
    WEFT_TRY(write());
    return side.database.commit();
  };
  const Result<void> done = run();
  if (!done) {
    side.database.rollback();
  }
  return done;
}

Result<StoredStream*> Store::declare(std::string_view name, const StreamSettings& settings, bool redeclare,
                                     const Now& now) {
  WEFT_TRY(check_stream_name(name));
  WEFT_TRY(check_settings(settings));
  if (settings.survives == Survives::machine) {
    return Error(Errc::not_supported, "a store on one machine cannot survive the loss of the machine");
  }
  auto topics = WEFT_TRY(parse_filters(settings.topics));
  const std::string text = write_settings(settings);
  if (StoredStream* stream = find(name)) {
    if (stream->settings() == settings) {
      return stream;
    }
    if (!redeclare) {
      return Error(Errc::conflict, "the stream has other settings");
    }
    if (stream->settings().keep != settings.keep || stream->settings().survives != settings.survives) {
      return Error(Errc::not_supported, "what a stream keeps and survives cannot be changed");
    }
    Side& side = *side_of(*stream);
    WEFT_TRY(in_transaction(side, [&] {
      return side.change(stream->id(), side.update_stream.set(0, std::string_view(text)).set(1, stream->id()));
    }));
    stream->set_settings(settings, std::move(topics));
    update_work(*stream);
    return stream;
  }
  if (damaged_.find(name) != damaged_.end()) {
    return redeclare ? mend(name, settings, now) : Result<StoredStream*>(kDamagedStream);
  }
  if (streams_.size() + damaged_.size() >= kStreamsMax) {
    return Error(Errc::resource_exhausted, "a store has 1,024 streams");
  }
  Side* side = settings.survives == Survives::nothing ? memory_.get() : disk_.get();
  if (side == nullptr) {
    return Error(Errc::not_supported, "a store without a file keeps only what survives nothing");
  }
  std::int64_t id = 0;
  const bool births = unborn_ && side == disk_.get();
  const auto insert = [&]() -> Result<void> {
    if (births) {
      WEFT_TRY(write_birth(*side));
    }
    Statement& row = side->insert_stream.set(0, name).set(1, std::string_view(text));
    const Rows rows(row);
    if (!WEFT_TRY(row.step()) || row.number(0) > std::numeric_limits<std::uint32_t>::max()) {
      return Error(Errc::resource_exhausted, "no number for a stream");
    }
    id = row.number(0);
    return side->set_sum.set(0, id).run();
  };
  WEFT_TRY(in_transaction(*side, insert));
  if (births) {
    unborn_ = false;
    birth_ = incarnation_;
  }
  auto stream = make_stream(*side, static_cast<std::uint32_t>(id), name, settings, std::move(topics));
  WEFT_TRY(stream->open(1, 1, now.wall));
  return streams_.emplace(std::string(name), std::move(stream)).first->second.get();
}

Result<void> Store::remove(std::string_view name) {
  StoredStream* stream = find(name);
  const auto damaged = damaged_.find(name);
  if (stream == nullptr && damaged == damaged_.end()) {
    return Error(Errc::not_found, "no such stream");
  }
  Side& side = stream == nullptr ? *disk_ : *side_of(*stream);
  const std::uint32_t id = stream == nullptr ? damaged->second.id : stream->id();
  const std::string gone = kGoneMark + std::to_string(id);
  removed_.reserve(removed_.size() + 1);
  const auto erase = [&]() -> Result<void> {
    WEFT_TRY(side.remove_consumers.set(0, id).run());
    return side.change(id, side.set_name.set(0, std::string_view(gone)).set(1, id));
  };
  WEFT_TRY(in_transaction(side, erase));
  side.gone.push_back(id);
  if (stream == nullptr) {
    damaged_.erase(damaged);
    return {};
  }
  std::erase_if(dying_, [name](const Dying& dying) { return dying.stream == name; });
  std::erase(stored_, stream);
  ages_.erase({stream->listed_age(), stream});
  stream->unhook();
  const auto at = streams_.find(name);
  removed_.push_back(std::move(at->second));  // reserved
  streams_.erase(at);
  return {};
}

Result<void> Store::purge_before(StoredStream& stream, std::uint64_t sequence, std::uint64_t instance) {
  if (instance != 0 && instance != instance_of(stream)) {
    return kOtherLife;
  }
  if (stream.has_staged()) {
    return kPurgeInTurn;
  }
  Side& side = *side_of(stream);
  std::uint64_t before = 0;
  const Result<void> done = in_transaction(side, [&]() -> Result<void> {
    before = WEFT_TRY(stream.purge_before(sequence));
    return side.change(stream.id(), side.set_purged.set(0, before).set(1, stream.next()).set(2, stream.id()));
  });
  if (!done) {
    stream.drop_staged();
    return done;
  }
  stream.set_purged(before);
  stream.keep_staged();
  update_work(stream);
  return {};
}

Result<void> Store::purge_topic(StoredStream& stream, std::string_view topic) {
  if (stream.has_staged()) {
    return kPurgeInTurn;
  }
  const Result<void> done = in_transaction(*side_of(stream), [&] { return stream.purge_topic(topic); });
  done ? stream.keep_staged() : stream.drop_staged();
  update_work(stream);
  return done;
}

Result<Appended> Store::append(StoredStream& stream, const NewMessage& message, const Expect& expect, const Now& now) {
  // Without a sequence nothing is counted: a topic without a message has none in each life.
  const bool strange = expect.instance != 0 && expect.last.value_or(0) != 0 && expect.instance != instance_of(stream);
  const auto appended = strange ? Result<Appended>(kOtherLife) : stream.append(message, expect, now.wall);
  if (!appended) {
    ++counts_.refused;
  } else if (appended->duplicate) {
    ++counts_.duplicates;
  }
  return appended;
}

Result<Appended> Store::append_all(StoredStream& stream, std::span<const BatchEntry> entries, const Now& now) {
  const bool strange = std::any_of(entries.begin(), entries.end(), [&](const BatchEntry& entry) {
    const Expect& expect = entry.expect;
    return expect.instance != 0 && expect.last.value_or(0) != 0 && expect.instance != instance_of(stream);
  });
  const auto appended = strange ? Result<Appended>(kOtherLife) : stream.append_all(entries, now.wall);
  if (!appended) {
    counts_.refused += entries.size();
  } else if (appended->duplicate) {
    counts_.duplicates += entries.size();
  }
  return appended;
}

Result<StoredConsumer*> Store::consumer(StoredStream& stream, std::string_view name, const ConsumerSettings& settings,
                                        bool redeclare, std::uint64_t next) {
  if (StoredConsumer* there = stream.find_consumer(name)) {
    if (there->settings == settings) {
      return there;
    }
    if (!redeclare) {
      return Error(Errc::conflict, "the consumer has other settings");
    }
    WEFT_TRY(stream.change_consumer(*there, settings, next));
    there->waits_for_disk = true;
    there->change();
    return there;
  }
  auto made = WEFT_TRY(stream.make_consumer(name, settings, next));
  made->waits_for_disk = true;
  return &stream.add_consumer(std::move(made));
}

Result<void> Store::remove_consumer(StoredStream& stream, std::string_view name) {
  if (stream.find_consumer(name) == nullptr) {
    return Error(Errc::not_found, "no such consumer");
  }
  Side& side = *side_of(stream);
  WEFT_TRY(in_transaction(side, [&] { return side.remove_consumer.set(0, stream.id()).set(1, name).run(); }));
  stream.remove_consumer(name);
  return {};
}

bool Store::ack(StoredConsumer& consumer, std::uint64_t sequence, bool waits_for_disk) {
  const bool waited = consumer.state.ack(sequence);
  if (waited) {
    consumer.change();
  }
  consumer.waits_for_disk = consumer.waits_for_disk || waits_for_disk;
  return waited;
}

bool Store::begin(StoredConsumer& consumer, std::uint64_t sequence, Holder holder, const Now& now) {
  const bool held = consumer.state.begin(sequence, holder, now.steady);
  if (held) {
    consumer.count_delivery();
  }
  return held;
}

bool Store::give_back(StoredConsumer& consumer, std::uint64_t sequence, Holder holder, const Now& now) {
  const bool held = consumer.state.give_back(sequence, holder, now.steady);
  if (held) {
    consumer.count_delivery();  // a try less
  }
  return held;
}

Result<std::optional<StoredDelivery>> Store::next_delivery(StoredStream& stream, StoredConsumer& consumer,
                                                           const Now& now, Holder holder) {
  consumer.cursor.passed = 0;
  while (const auto dead = stream.exhausted(consumer, now.steady)) {
    if (consumer.cursor.passed_enough()) {
      return std::optional<StoredDelivery>();
    }
    if (!WEFT_TRY(bury(stream, consumer, *dead, now))) {
      consumer.state.postpone(dead->sequence, deadline_after(now.steady, kBuryAgain));
    }
  }
  return stream.next_delivery(consumer, now.steady, now.wall, holder);
}

// Returns true if the message does not wait any longer. Returns false if it waits until its dead letter is durable, or
// is tried again.
Result<bool> Store::bury(StoredStream& stream, StoredConsumer& consumer, const StoredStream::Exhausted& dead,
                         const Now& now) {
  auto at = stream.message_at(dead.sequence, consumer.again, now.wall);
  consumer.cursor.passed += StoredStream::kLookUpCost + std::exchange(consumer.again.passed, 0);
  if (!at && at.error() == Errc::corrupt) {
    ++counts_.dead_dropped;
    return ack(consumer, dead.sequence, false);
  }
  const auto message = WEFT_TRY(std::move(at));
  consumer.cursor.passed += message ? message->message.body.size() / Cursor::kMessageCost : 0;
  if (!message || consumer.settings.dead_letters.empty()) {
    counts_.dead_dropped += message ? 1 : 0;
    return ack(consumer, dead.sequence, false);
  }
  StoredStream* to = find_topic(consumer.settings.dead_letters);
  if (to == nullptr) {
    return false;
  }
  const std::string id = dead_letter_id(stream.name(), dead.sequence, consumer.name);
  NewMessage letter;
  letter.topic = consumer.settings.dead_letters;
  letter.id = id;
  letter.headers = message->message.headers;
  letter.body = message->message.body;
  const auto appended = append(*to, letter, {}, now);
  if (appended) {
    dying_.push_back({stream.name(), consumer.name, dead.sequence, to->in_memory()});
  }
  return false;
}

std::string dead_letter_id(std::string_view stream, std::uint64_t sequence, std::string_view consumer) {
  std::string id(stream);
  id.append(":").append(std::to_string(sequence)).append(":").append(consumer);
  if (id.size() > kIdMax) {  // two long names; the end of each is the part that differs most often
    id.erase(0, id.size() - kIdMax);
  }
  return id;
}

Result<void> Store::write_stream(Side& side, StoredStream& stream, StoredStream::DropBudget& drops, const Now& now) {
  if (stream.has_staged()) {
    WEFT_TRY(stream.write_staged());
  }
  WEFT_TRY(stream.write_drops(now.wall, drops));
  for (const auto& [name, consumer] : stream.consumers()) {
    if (consumer->changed || consumer->moved) {
      const std::string settings = write_settings(consumer->settings);
      const std::vector<std::uint8_t> waiting = consumer->state.write_waiting();
      Statement& write = side.write_consumer.set(0, stream.id()).set(1, std::string_view(name));
      write.set(2, std::string_view(settings)).set(3, consumer->state.next()).set(4, Bytes(waiting));
      WEFT_TRY(write.run());
    }
  }
  return {};
}

Store::SideCommitted Store::commit_side(Side& side, bool in_memory, const Now& now) {
  std::vector<StoredStream*> changed;
  Flush flush = Flush::process;
  std::uint64_t messages = 0;
  std::uint64_t delayed = 0;
  std::uint64_t moved = 0;
  for (StoredStream* stream = work_.first(); stream != nullptr; stream = work_.next(*stream)) {
    if (stream->in_memory() != in_memory) {
      continue;
    }
    bool must_flush = stream->has_staged();
    for (const auto& [consumer_name, consumer] : stream->consumers()) {
      must_flush = must_flush || consumer->waits_for_disk;
    }
    if (must_flush && stream->settings().survives == Survives::power) {
      flush = Flush::power;
    }
    changed.push_back(stream);
    messages += stream->staged_count();
    delayed += stream->delayed().staged_count();
    moved += stream->delayed().moving_count();
  }
  const bool has_messages = messages + delayed != 0;
  if (changed.empty() && side.gone.empty()) {
    return {};
  }
  stored_.reserve(stored_.size() + changed.size());
  bool cleared = false;
  const auto write = [&]() -> Result<void> {
    WEFT_TRY(side.database.begin(flush));
    StoredStream::DropBudget drops;
    for (StoredStream* stream : changed) {
      WEFT_TRY(write_stream(side, *stream, drops, now));
    }
    cleared = !side.gone.empty() && WEFT_TRY(clear_gone(side));
    return side.database.commit();
  };
  const auto try_to_write = [&] {
    const Result<void> done = write();
    if (!done) {
      side.database.rollback();
      std::for_each(changed.begin(), changed.end(), [](StoredStream* stream) { stream->drop_staged(); });
    }
    return done;
  };
  const Result<void> all = try_to_write();
  Result<void> done = all;
  if (!done && has_messages && done.error() == Errc::resource_exhausted) {
    done = try_to_write();  // without the messages
  }
  if (!done && !in_memory && done.error() == Errc::resource_exhausted) {
    done = side.database.spend_reserve();
    done = done ? try_to_write() : done;
  }
  if (done) {
    if (cleared) {
      side.gone.pop_back();
    }
    for (StoredStream* stream : changed) {
      for (const auto& [name, consumer] : stream->consumers()) {
        consumer->changed = consumer->moved = consumer->waits_for_disk = false;
      }
      if (stream->has_staged()) {
        stored_.push_back(stream);
      }
      const std::uint64_t evicted = stream->evicted();
      stream->keep_staged();
      counts_.evicted += stream->evicted() - evicted;
    }
    side.database.tend_reserve();
  }
  std::for_each(changed.begin(), changed.end(), [this](StoredStream* stream) { update_work(*stream); });
  ++(all ? counts_.commits : counts_.commits_failed);
  (all ? counts_.appended : counts_.refused) += all ? messages : messages - moved + delayed;
  counts_.delayed += all ? delayed : 0;
  // A turn without messages is done when its acknowledgements are.
  return {!has_messages ? done.error() : all.error(), done.error()};
}

Result<bool> Store::clear_gone(Side& side) {
  bool rows = false;
  for (Statement* part : {&side.clear_blocks, &side.clear_topics, &side.clear_values, &side.clear_ids,
                          &side.clear_delayed, &side.clear_delayed_ids}) {
    part->set(0, side.gone.back());
    const Rows reset(*part);
    while (WEFT_TRY(part->step())) {
      rows = true;
    }
  }
  if (!rows) {
    WEFT_TRY(side.remove_stream.set(0, side.gone.back()).run());
  }
  return !rows;
}

Store::Committed Store::commit(const Now& now) {
  stored_.clear();
  DelayedMessages::Budget moves;
  for (auto at = ages_.begin(); at != ages_.end() && at->first < now.wall; ++at) {
    at->second->add_work();
    at->second->stage_due(now.wall, moves);
  }
  if (!removed_.empty() && removed_.back()->free_some()) {
    removed_.pop_back();
  }
  if (StoredStream* const first = work_.first()) {  // another stream is the first one to remove messages
    first->unhook();
    first->add_work();
  }
  Committed committed;
  committed.memory = commit_side(*memory_, true, now).all;
  if (disk_ != nullptr) {
    const SideCommitted disk = commit_side(*disk_, false, now);
    committed.disk = disk.all;
    committed.positions = disk.positions;
  }
  for (const Dying& dying : std::exchange(dying_, {})) {
    StoredStream* stream = find(dying.stream);
    StoredConsumer* consumer = stream == nullptr ? nullptr : stream->find_consumer(dying.consumer);
    const Error& error = dying.to_memory ? committed.memory : committed.disk;
    if (consumer != nullptr && error == Errc::ok && ack(*consumer, dying.sequence, false)) {
      ++counts_.dead_letters;
    }
  }
  return committed;
}

bool Store::has_work(const Now& now) const noexcept {
  const bool has_gone = !memory_->gone.empty() || (disk_ != nullptr && !disk_->gone.empty());
  return has_gone || !removed_.empty() || !work_.empty() || next_age() < now.wall;
}

WallTime Store::next_age() const noexcept { return ages_.empty() ? WallTime::max() : ages_.begin()->first; }

void Store::update_work(StoredStream& stream) {
  (void)stream.update_work();
  const WallTime age = stream.ages_at();
  if (age == stream.listed_age()) {
    return;
  }
  auto listed = ages_.extract({stream.listed_age(), &stream});
  if (age != WallTime::max() && listed) {
    listed.value().first = age;  // without memory of its own
    ages_.insert(std::move(listed));
  } else if (age != WallTime::max()) {
    ages_.emplace(age, &stream);
  }
  stream.set_listed_age(age);
}

bool Store::failed() const noexcept { return disk_ != nullptr && disk_->database.failed(); }

}  // namespace weft::store
