// SPDX-License-Identifier: MIT
#include "weft/store/log.h"

#include <algorithm>
#include <utility>

#include "weft/base/assert.h"
#include "weft/store/row_sum.h"
#include "weft/store/rows.h"

namespace weft::store {
namespace {

constexpr Error kWrongRow(Errc::corrupt, "a block whose row says something else");
// To remove so many topics, or bytes, takes the time of a look at a row.
constexpr std::size_t kTopicsOfRow = 8;
constexpr std::size_t kBytesOfRow = 16 * 1024;

// Whether the block of these topics, one a line, may hold a wanted message.
bool may_hold(std::string_view topics, const TopicPredicate& wants) {
  if (topics.empty()) {
    return true;
  }
  while (!topics.empty()) {
    const std::size_t end = topics.find('\n');
    if (wants(topics.substr(0, end))) {
      return true;
    }
    topics.remove_prefix(end == std::string_view::npos ? topics.size() : end + 1);
  }
  return false;
}

}  // namespace

Result<LogSql> LogSql::prepare(Database& database) {
  LogSql sql;
  const Database::Prepared all[] = {
      {&sql.insert_block, "INSERT INTO block(stream, first, last, time, topics, bytes, expires) VALUES(?,?,?,?,?,?,?)"},
      {&sql.insert_topic,
       "INSERT INTO topic(stream, topic, last, expires, sum) VALUES(?1,?2,?3,?4,"
       "CASE WHEN ?4 IS NULL THEN weft_sum(?1,?2,?3) ELSE weft_sum(?1,?2,?3,?4) END) ON CONFLICT(stream, topic) "
       "DO UPDATE SET last=excluded.last, expires=excluded.expires, sum=excluded.sum"},
      {&sql.find_topic,
       "SELECT last, sum IS NULL OR sum=CASE WHEN expires IS NULL THEN weft_sum(stream, topic, last)"
       " ELSE weft_sum(stream, topic, last, expires) END, expires FROM topic WHERE stream=? AND topic=?"},
      {&sql.remove_topic, "DELETE FROM topic WHERE stream=? AND topic=? AND last<=?"},
      {&sql.read_from, "SELECT first, last, topics, bytes, time FROM block WHERE stream=? AND last>=? ORDER BY last"},
      {&sql.read_first, "SELECT first, time, last, topics FROM block WHERE stream=? ORDER BY last LIMIT 1"},
      {&sql.read_newest, "SELECT first, time, last, topics FROM block WHERE stream=? ORDER BY last DESC"},
      {&sql.read_size, "SELECT sum(length(bytes)) FROM block WHERE stream=?"},
      {&sql.drop_block, "DELETE FROM block WHERE stream=? AND last=?"},
      {&sql.set_next,
       "UPDATE stream SET next=max(next, ?1), sum=weft_sum(id, name, settings, max(next, ?1), has_ids, purged)"
       " WHERE id=?2"},
      {&sql.find_row, "SELECT first, time, last, topics FROM block WHERE stream=? AND last>=? ORDER BY last LIMIT 1"},
      {&sql.list_topics,
       "SELECT topic, last, sum IS NULL OR sum=CASE WHEN expires IS NULL THEN weft_sum(stream, topic, last)"
       " ELSE weft_sum(stream, topic, last, expires) END, expires FROM topic WHERE stream=? AND topic>?"
       " ORDER BY topic LIMIT ?"},
      {&sql.find_end, "SELECT expires FROM block WHERE stream=? AND expires IS NOT NULL ORDER BY expires LIMIT 1"},
      {&sql.find_over,
       "SELECT first, last, bytes, time FROM block WHERE stream=? AND expires<? ORDER BY expires LIMIT 1"},
      {&sql.set_end, "UPDATE block SET expires=NULL WHERE stream=? AND last=?"},
      {&sql.replace_block, "UPDATE block SET topics=?3, bytes=?4, expires=?5 WHERE stream=?1 AND last=?2"},
      {&sql.remove_over, "DELETE FROM topic WHERE stream=? AND topic=? AND last<=? AND expires<=?"},
  };
  WEFT_TRY(database.prepare_all(all));
  return sql;
}

Result<void> MessageLog::open(std::uint64_t next, std::uint64_t purged) {
  {
    Statement& size = sql_->read_size.set(0, stream_);
    const Rows rows(size);
    bytes_ = WEFT_TRY(size.step()) ? size.sequence(0) : 0;
  }
  std::uint64_t whole = 0;
  std::uint64_t damaged = 0;
  {
    Statement& newest = sql_->read_newest.set(0, stream_);
    const Rows rows(newest);
    while (whole == 0 && WEFT_TRY(newest.step())) {
      std::uint64_t& last = head_of(newest).whole ? whole : damaged;
      last = std::max(last, newest.sequence(2));
      newest_ = whole != 0 ? wall_time(newest.number(1)) : newest_;
    }
  }
  next_ = std::max(next, next_behind(whole, damaged));
  next_staged_ = builder_first_ = next_;
  purged_ = std::min(purged, next_);
  return refresh_first();
}

// Of a row `first, time, last, topics`.
MessageLog::RowHead MessageLog::head_of(Statement& row) const noexcept {
  RowHead head{row.sequence(0), row.sequence(2), wall_time(row.number(1)), true};
  head.whole = read_topics(row.text(3), {stream_, head.first, head.last, head.time}).whole;
  return head;
}

Result<void> MessageLog::refresh_first() {
  {
    Statement& end = sql_->find_end.set(0, stream_);
    const Rows rows(end);
    ends_ = WEFT_TRY(end.step()) ? expiry_at(end, 0) : WallTime::max();
  }
  Statement& oldest = sql_->read_first.set(0, stream_);
  const Rows rows(oldest);
  has_rows_ = WEFT_TRY(oldest.step());
  if (!has_rows_) {
    first_ = next_;
    oldest_ = newest_;
    return {};
  }
  const RowHead head = head_of(oldest);
  oldest_last_ = std::min(head.last, next_ - 1);
  // The age of a damaged row is unknown: it is not taken for old.
  oldest_ = head.whole ? head.time : std::max(head.time, newest_);
  first_ = std::max(purged_, std::min(head.whole ? head.first : oldest_last_, oldest_last_));
  return {};
}

void MessageLog::set_purged(std::uint64_t before) noexcept {
  purged_ = std::max(purged_, std::min(before, next_));
  first_ = std::max(first_, purged_);
}

void MessageLog::set_bytes_max(std::uint64_t bytes_max) noexcept {
  block_max_ = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max / 8, kBlockMax));
}

std::uint64_t MessageLog::stage(const NewMessage& message, WallTime time) {
  if (!builder_.takes(message, block_max_)) {
    close_block();
  }
  staged_bytes_ += BlockBuilder::size_of(message);
  if (builder_.count() == 0) {
    staged_bytes_ += kBlockHeader;
    builder_first_ = next_staged_;
  }
  builder_.add(message, time);
  builder_time_ = time;
  std::string topic(message.topic);
  const std::uint64_t sequence = next_staged_++;
  staged_topics_[topic] = {sequence, message.erased, 0, expiry_of(time, message.time_to_live)};
  builder_topics_.insert(std::move(topic));
  return sequence;
}

void MessageLog::close_block() {
  if (builder_.count() != 0) {
    const std::uint64_t last = builder_first_ + builder_.count() - 1;
    const WallTime ends = builder_.half_over();
    staged_.push_back({builder_.finish(stream_, builder_first_), builder_first_, last, builder_time_,
                       std::exchange(builder_topics_, {}), ends});
  }
}

std::string MessageLog::topics_text(const BlockRow& row, const std::set<std::string>& topics) {
  std::string text;
  for (const std::string& topic : topics) {
    text.append(topic).append("\n");
    if (text.size() > kTopicsTextMax || topic.find('\n') != std::string::npos) {
      text.clear();
      break;
    }
  }
  add_sum(text, row);
  return text;
}

Result<void> MessageLog::insert_block(const StagedBlock& block) {
  const std::string text = topics_text({stream_, block.first, block.last, block.time}, block.topics);
  Statement& insert = sql_->insert_block.set(0, stream_).set(1, block.first).set(2, block.last);
  insert.set(3, ns_of(block.time)).set(4, std::string_view(text)).set(5, Bytes(block.bytes));
  return set_expiry(insert, 6, block.ends).run();
}

Result<void> MessageLog::write_staged() {
  close_block();
  for (const StagedBlock& block : staged_) {
    WEFT_TRY(insert_block(block));
  }
  for (const auto& [topic, last] : staged_topics_) {
    Statement& insert = sql_->insert_topic.set(0, stream_).set(1, std::string_view(topic)).set(2, last.sequence);
    WEFT_TRY(set_expiry(insert, 3, last.expires).run());
  }
  return {};
}

void MessageLog::keep_staged() {
  if (!staged_.empty() && empty()) {
    first_ = staged_.front().first;
  }
  if (!staged_.empty() && !has_rows_) {
    has_rows_ = true;
    oldest_ = staged_.front().time;
    oldest_last_ = staged_.front().last;
  }
  for (StagedBlock& staged : staged_) {
    bytes_ += staged.bytes.size();
    newest_ = staged.time;
    ends_ = std::min(ends_, staged.ends);
    auto block = Block::parse(std::move(staged.bytes), stream_, staged.first);
    WEFT_ASSERT(block.has_value());  // just made
    cache_bytes_ += (*block)->size();
    cache_.push_back(*std::move(block));
  }
  while (cache_.size() > 1 && cache_bytes_ > kCacheMax) {
    cache_bytes_ -= cache_.front()->size();
    cache_.pop_front();
  }
  staged_.clear();
  staged_topics_.clear();
  staged_bytes_ = 0;
  next_ = next_staged_;
}

void MessageLog::drop_staged() noexcept {
  builder_ = {};
  builder_topics_.clear();
  staged_.clear();
  staged_topics_.clear();
  staged_bytes_ = 0;
  next_staged_ = next_;
}

Result<TopicLast> MessageLog::last_of(std::string_view topic) {
  if (!staged_topics_.empty()) {
    if (const auto found = staged_topics_.find(std::string(topic)); found != staged_topics_.end()) {
      return found->second;
    }
  }
  Statement& find = sql_->find_topic.set(0, stream_).set(1, topic);
  const Rows rows(find);
  if (!WEFT_TRY(find.step())) {
    return TopicLast();
  }
  if (find.number(1) == 0) {
    return Error(Errc::corrupt, "the row of a topic whose checksum is wrong");
  }
  return find.sequence(0) >= purged_ ? TopicLast{find.sequence(0), false, 0, expiry_at(find, 2)} : TopicLast();
}

std::shared_ptr<const Block> MessageLog::cached(std::uint64_t sequence) const noexcept {
  if (cache_.empty() || sequence < cache_.front()->first()) {
    return nullptr;
  }
  const auto after = std::upper_bound(cache_.begin(), cache_.end(), sequence,
                                      [](std::uint64_t value, const auto& block) { return value < block->first(); });
  const auto& found = *(after - 1);
  return sequence <= found->last() ? found : nullptr;
}

Result<std::shared_ptr<const Block>> MessageLog::load(Cursor& cursor, const TopicPredicate& wants) {
  Statement& read = sql_->read_from.set(0, stream_).set(1, cursor.next);
  const Rows rows(read);
  while (WEFT_TRY(read.step())) {
    const BlockRow row{stream_, read.sequence(0), read.sequence(1), wall_time(read.number(4))};
    if (wants && !may_hold(read_topics(read.text(2), row).listed, wants)) {
      cursor.next = read.sequence(1) + 1;
      cursor.passed += Cursor::kBlockCost;
      if (cursor.passed_enough()) {
        break;
      }
      continue;
    }
    const Bytes bytes = read.bytes(3);
    cursor.passed += bytes.size() / Cursor::kMessageCost;
    auto block =
        WEFT_TRY(Block::parse(std::vector<std::uint8_t>(bytes.begin(), bytes.end()), stream_, read.sequence(0)));
    if (block->last() != row.last || block->message(row.last).time != row.time) {
      return kWrongRow;
    }
    return block;
  }
  return std::shared_ptr<const Block>();
}

Result<std::optional<ReadMessage>> MessageLog::read(Cursor& cursor, const TopicPredicate& wants, WallTime now) {
  cursor.next = std::max(cursor.next, first_);
  while (cursor.next < next_) {
    if (cursor.block == nullptr || cursor.next < cursor.block->first() || cursor.next > cursor.block->last()) {
      cursor.block = cached(cursor.next);
      if (cursor.block == nullptr) {
        cursor.block = WEFT_TRY(load(cursor, wants));
      }
      if (cursor.block == nullptr && cursor.passed_enough()) {
        return std::optional<ReadMessage>();
      }
      if (cursor.block == nullptr) {
        cursor.next = next_;
        break;
      }
      cursor.next = std::max(cursor.next, cursor.block->first());
    }
    const std::uint64_t last = cursor.block->last();
    while (cursor.next <= last) {
      const StoredMessage message = cursor.block->message(cursor.next++);
      if (!message.is_over(now) && (!wants || wants(message.topic))) {
        return std::optional(ReadMessage{cursor.block, message});
      }
      ++cursor.passed;
      if (cursor.passed_enough()) {
        return std::optional<ReadMessage>();  // the block stays for the next call
      }
    }
  }
  cursor.block.reset();
  return std::optional<ReadMessage>();
}

Result<std::uint64_t> MessageLog::first_at(WallTime time) {
  const auto lookup = [this](std::uint64_t sequence) -> Result<std::optional<TimeRow>> {
    Statement& find = sql_->find_row.set(0, stream_).set(1, sequence);
    const Rows rows(find);
    if (!WEFT_TRY(find.step())) {
      return std::optional<TimeRow>();
    }
    const RowHead head = head_of(find);
    return std::optional(TimeRow{head.first, head.last, head.whole ? std::optional(head.time) : std::nullopt});
  };
  Cursor cursor{WEFT_TRY(find_time(first_, next_, time, lookup))};
  std::uint64_t before = cursor.next;
  for (;;) {  // within the block
    const auto message = read(cursor, {}, WallTime::min());
    if (!message || !*message || (*message)->message.time >= time) {  // the reader will meet the damage
      return message && *message ? (*message)->message.sequence : before;
    }
    before = cursor.next;
  }
}

Result<std::uint64_t> MessageLog::skip_block(std::uint64_t sequence) {
  Statement& read = sql_->read_from.set(0, stream_).set(1, sequence);
  const Rows rows(read);
  if (!WEFT_TRY(read.step())) {
    return next_;
  }
  // The numbers of the row may be damaged: at least this sequence is skipped, and no block after it.
  std::uint64_t behind = std::max(read.sequence(1), sequence) + 1;
  if (WEFT_TRY(read.step()) && read.sequence(0) > sequence) {
    behind = std::min(behind, read.sequence(0));
  }
  return std::min(behind, next_);
}

Result<TopicPage> MessageLog::topics_after(std::string_view after, std::size_t rows, WallTime now) {
  Statement& list = sql_->list_topics.set(0, stream_).set(1, after).set(2, rows);
  const Rows reset(list);
  TopicPage page;
  for (page.after = after; WEFT_TRY(list.step()); --rows) {
    page.after = list.text(0);
    if (list.number(2) == 0) {
      page.damaged.push_back(list.sequence(1));
    } else if (list.sequence(1) >= purged_ && expiry_at(list, 3) > now) {
      page.topics.push_back({page.after, list.sequence(1)});
    }
  }
  page.more = rows == 0;
  return page;
}

Result<std::optional<MessageLog::Dropped>> MessageLog::drop_oldest(std::uint64_t before, WallTime age) {
  std::optional<Dropped> dropped;
  std::set<std::string> topics;
  {
    Statement& read = sql_->read_from.set(0, stream_).set(1, 0);
    const Rows rows(read);
    if (!WEFT_TRY(read.step())) {
      return dropped;
    }
    BlockRow row{stream_, read.sequence(0), read.sequence(1), wall_time(read.number(4))};
    if (!read_topics(read.text(2), row).whole) {
      row.time = std::max(row.time, newest_);  // as in refresh_first()
    }
    if (row.last >= before || row.time >= age) {
      return dropped;
    }
    dropped = dropped_of(row, read.bytes(3), topics);
  }
  WEFT_TRY(drop_block(*dropped, topics));
  return dropped;
}

// A damaged block goes too; the rows of its topics stay, and give way to later ones.
MessageLog::Dropped MessageLog::dropped_of(const BlockRow& row, Bytes bytes, std::set<std::string>& topics) const {
  const auto block = Block::parse({bytes.begin(), bytes.end()}, stream_, row.first);
  for (std::uint64_t at = block ? (*block)->first() : 1; block && at <= (*block)->last(); ++at) {
    topics.emplace((*block)->message(at).topic);
  }
  return {block ? (*block)->count() : 1, bytes.size(), row.last, topics.size()};
}

Result<void> MessageLog::drop_block(const Dropped& dropped, const std::set<std::string>& topics) {
  for (const std::string& topic : topics) {
    WEFT_TRY(sql_->remove_topic.set(0, stream_).set(1, std::string_view(topic)).set(2, dropped.last).run());
  }
  WEFT_TRY(sql_->drop_block.set(0, stream_).set(1, dropped.last).run());
  return sql_->set_next.set(0, next_).set(1, stream_).run();
}

Result<void> MessageLog::drop_done(std::uint64_t& from, std::size_t rows, std::size_t drops_max,
                                   const DonePredicate& done, std::vector<Dropped>& dropped) {
  std::vector<std::pair<Dropped, std::set<std::string>>> found;
  {
    Statement& read = sql_->read_from.set(0, stream_).set(1, from);
    const Rows reset(read);
    from = 0;
    while (WEFT_TRY(read.step())) {
      const BlockRow row{stream_, read.sequence(0), read.sequence(1), wall_time(read.number(4))};
      if (row.first >= next_ || rows == 0 || found.size() == drops_max) {
        from = row.first >= next_ ? 0 : row.first;
        break;
      }
      std::size_t cost = 1;
      if (read_topics(read.text(2), row).whole && done(row.first, row.last)) {
        auto& [taken, topics] = found.emplace_back();
        taken = dropped_of(row, read.bytes(3), topics);
        taken.alone = true;
        cost += taken.topics / kTopicsOfRow + static_cast<std::size_t>(taken.bytes / kBytesOfRow);
      }
      rows -= std::min(rows, cost);
    }
  }
  for (const auto& [taken, topics] : found) {
    WEFT_TRY(drop_block(taken, topics));
    dropped.push_back(taken);
  }
  return {};
}

namespace {

// A message of a block that is written anew. Of one that is over at `now` the sequence and the time stay.
void add_again(BlockBuilder& builder, std::set<std::string>& topics, const StoredMessage& message, WallTime now) {
  if (message.is_over(now)) {
    return builder.add_gone(message.time);
  }
  const bool ends = message.expires != WallTime::max() && message.expires > message.time;
  const Duration lives = ends ? std::clamp(message.expires - message.time, kTimeToLiveMin, kTimeToLiveMax) : Duration();
  builder.add({message.topic, message.id, message.headers, message.body, message.erased, lives}, message.time);
  topics.emplace(message.topic);
}

}  // namespace

Result<std::optional<MessageLog::Dropped>> MessageLog::trim(std::uint64_t before) {
  std::shared_ptr<const Block> old;
  {
    Statement& read = sql_->read_from.set(0, stream_).set(1, before);
    const Rows rows(read);
    if (!WEFT_TRY(read.step()) || read.sequence(0) >= before) {
      return std::optional<Dropped>();
    }
    const Bytes bytes = read.bytes(3);
    old = WEFT_TRY(Block::parse({bytes.begin(), bytes.end()}, stream_, read.sequence(0)));
    if (old->last() != read.sequence(1)) {
      return kWrongRow;
    }
  }
  BlockBuilder builder;
  std::set<std::string> gone;
  std::set<std::string> topics;
  for (std::uint64_t at = old->first(); at < before; ++at) {
    gone.emplace(old->message(at).topic);
  }
  WallTime newest{};
  for (std::uint64_t at = before; at <= old->last(); ++at) {
    const StoredMessage kept = old->message(at);
    add_again(builder, topics, kept, WallTime::min());
    newest = kept.time;
  }
  for (const std::string& topic : gone) {
    WEFT_TRY(sql_->remove_topic.set(0, stream_).set(1, std::string_view(topic)).set(2, before - 1).run());
  }
  const WallTime ends = builder.half_over();
  const StagedBlock rest{builder.finish(stream_, before), before, old->last(), newest, std::move(topics), ends};
  WEFT_TRY(sql_->drop_block.set(0, stream_).set(1, old->last()).run());
  WEFT_TRY(insert_block(rest));
  return std::optional(Dropped{before - old->first(), old->size() - rest.bytes.size(), before - 1, gone.size()});
}

Result<std::optional<MessageLog::Dropped>> MessageLog::drop_over(std::uint64_t before, WallTime now) {
  BlockRow row{stream_, 0, 0, {}};
  std::shared_ptr<const Block> old;
  {
    Statement& find = sql_->find_over.set(0, stream_).set(1, ns_of(now));
    const Rows rows(find);
    const bool any = WEFT_TRY(find.step());
    const bool damaged = any && find.sequence(1) >= next_staged_;
    if (!any || (find.sequence(1) >= before && !damaged)) {
      return std::optional<Dropped>();
    }
    row = {stream_, find.sequence(0), find.sequence(1), wall_time(find.number(3))};
    const Bytes bytes = find.bytes(2);
    if (auto block = Block::parse({bytes.begin(), bytes.end()}, stream_, row.first); block && !damaged) {
      old = *std::move(block);
    }
  }
  if (old == nullptr || old->last() != row.last) {  // damaged: it goes by its age, or with a purge
    WEFT_TRY(sql_->set_end.set(0, stream_).set(1, row.last).run());
    return std::optional(Dropped{.last = row.last, .alone = true});
  }
  BlockBuilder builder;
  std::set<std::string> topics;
  std::set<std::string> over;
  std::uint64_t count = 0;
  for (std::uint64_t at = old->first(); at <= old->last(); ++at) {
    const StoredMessage message = old->message(at);
    if (message.is_over(now)) {
      ++count;
      over.emplace(message.topic);
    }
    add_again(builder, topics, message, now);
  }
  for (const std::string& topic : over) {
    Statement& remove = sql_->remove_over.set(0, stream_).set(1, std::string_view(topic)).set(2, row.last);
    WEFT_TRY(remove.set(3, ns_of(now)).run());
  }
  Dropped dropped{count, old->size(), row.last, over.size()};
  dropped.alone = true;
  if (count == old->count()) {
    WEFT_TRY(drop_block(dropped, {}));
    return std::optional(dropped);
  }
  const WallTime ends = builder.half_over();
  const std::vector<std::uint8_t> rest = builder.finish(stream_, row.first);
  const std::string text = topics_text(row, topics);
  Statement& replace = sql_->replace_block.set(0, stream_).set(1, row.last).set(2, std::string_view(text));
  WEFT_TRY(set_expiry(replace.set(3, Bytes(rest)), 4, ends).run());
  dropped.bytes = old->size() - std::min(old->size(), rest.size());
  return std::optional(dropped);
}

void MessageLog::keep_dropped(const Dropped& dropped) {
  bytes_ -= std::min(bytes_, dropped.bytes);
  if (dropped.alone) {
    const auto at = std::find_if(cache_.begin(), cache_.end(),
                                 [&dropped](const auto& block) { return block->last() == dropped.last; });
    if (at != cache_.end()) {
      cache_bytes_ -= (*at)->size();
      cache_.erase(at);
    }
  }
  while (!dropped.alone && !cache_.empty() && cache_.front()->last() <= dropped.last) {
    cache_bytes_ -= cache_.front()->size();
    cache_.pop_front();
  }
  const Result<void> found = refresh_first();
  if (!found) {  // the next read returns the error
    first_ = oldest_last_ = dropped.alone ? first_ : std::max(dropped.last + 1, purged_);
  }
}

}  // namespace weft::store
