// SPDX-License-Identifier: MIT
#include "weft/store/log.h"

#include <algorithm>
#include <utility>

#include "weft/base/assert.h"
#include "weft/store/rows.h"

namespace weft::store {
namespace {

// Whether the block of these topics, one a line, may hold a message that is wanted.
bool may_hold(std::string_view topics, const TopicPredicate& wants) {
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
      {&sql.insert_block, "INSERT INTO block(stream, first, last, time, topics, bytes) VALUES(?,?,?,?,?,?)"},
      {&sql.insert_topic,
       "INSERT INTO topic(stream, topic, last) VALUES(?,?,?) ON CONFLICT(stream, topic) DO UPDATE SET "
       "last=excluded.last"},
      {&sql.find_topic, "SELECT last FROM topic WHERE stream=? AND topic=?"},
      {&sql.remove_topic, "DELETE FROM topic WHERE stream=? AND topic=? AND last<=?"},
      {&sql.read_from, "SELECT first, last, topics, bytes, time FROM block WHERE stream=? AND last>=? ORDER BY last"},
      {&sql.read_first, "SELECT first, time, last FROM block WHERE stream=? ORDER BY last LIMIT 1"},
      {&sql.read_sizes, "SELECT sum(length(bytes)), max(last), max(time) FROM block WHERE stream=?"},
      {&sql.drop_block, "DELETE FROM block WHERE stream=? AND last=?"},
      {&sql.set_next, "UPDATE stream SET next=max(next, ?) WHERE id=?"},
      {&sql.find_time, "SELECT first, bytes FROM block WHERE stream=? AND time>=? ORDER BY last LIMIT 1"},
      {&sql.list_topics, "SELECT topic, last FROM topic WHERE stream=? AND topic>? ORDER BY topic LIMIT ?"},
  };
  WEFT_TRY(database.prepare_all(all));
  return sql;
}

Result<void> Log::open(std::uint64_t next, std::uint64_t purged) {
  Statement& sizes = sql_->read_sizes.set(0, stream_);
  const Rows rows(sizes);
  if (!WEFT_TRY(sizes.step())) {
    return Error(Errc::corrupt, "a stream whose blocks cannot be counted");
  }
  bytes_ = sizes.sequence(0);
  newest_ = wall_time(sizes.number(2));
  next_ = std::max(next, sizes.sequence(1) + 1);
  next_staged_ = builder_first_ = next_;
  purged_ = std::min(purged, next_);
  return refresh_first();
}

Result<void> Log::refresh_first() {
  Statement& oldest = sql_->read_first.set(0, stream_);
  const Rows rows(oldest);
  has_rows_ = WEFT_TRY(oldest.step());
  if (!has_rows_) {
    first_ = next_;
    oldest_ = newest_;
    return {};
  }
  first_ = oldest.sequence(0);
  oldest_ = wall_time(oldest.number(1));
  oldest_last_ = oldest.sequence(2);
  if (first_ == 0 || first_ >= next_) {
    return Error(Errc::corrupt, "a stream whose first block is behind its last");
  }
  first_ = std::max(first_, purged_);
  return {};
}

void Log::set_purged(std::uint64_t before) noexcept {
  purged_ = std::max(purged_, std::min(before, next_));
  first_ = std::max(first_, purged_);
}

void Log::set_bytes_max(std::uint64_t bytes_max) noexcept {
  block_max_ = static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max / 8, kBlockMax));
}

std::uint64_t Log::stage(const NewMessage& message, WallTime time) {
  if (!builder_.takes(message, block_max_)) {
    close_block();
  }
  if (builder_.count() == 0) {
    builder_first_ = next_staged_;
  }
  builder_.add(message, time);
  builder_time_ = time;
  staged_bytes_ += BlockBuilder::size_of(message);
  std::string topic(message.topic);
  const std::uint64_t sequence = next_staged_++;
  staged_topics_[topic] = {sequence, message.erased, 0};
  builder_topics_.insert(std::move(topic));
  return sequence;
}

void Log::close_block() {
  if (builder_.count() != 0) {
    const std::uint64_t last = builder_first_ + builder_.count() - 1;
    staged_.push_back({builder_.finish(stream_, builder_first_), builder_first_, last, builder_time_,
                       std::exchange(builder_topics_, {})});
  }
}

Result<void> Log::insert_block(std::uint64_t first, std::uint64_t last, WallTime time,
                               const std::set<std::string>& topics, Bytes bytes) {
  std::string text;
  bool listed = true;
  for (const std::string& topic : topics) {
    text.append(topic).append("\n");
    if (text.size() > kTopicsTextMax || topic.find('\n') != std::string::npos) {
      listed = false;
      break;
    }
  }
  Statement& insert = sql_->insert_block.set(0, stream_).set(1, first).set(2, last).set(3, ns_of(time));
  if (listed) {
    insert.set(4, std::string_view(text));
  }
  return insert.set(5, bytes).run();
}

Result<void> Log::write_staged() {
  close_block();
  for (const StagedBlock& block : staged_) {
    WEFT_TRY(insert_block(block.first, block.last, block.time, block.topics, block.bytes));
  }
  for (const auto& [topic, last] : staged_topics_) {
    WEFT_TRY(sql_->insert_topic.set(0, stream_).set(1, std::string_view(topic)).set(2, last.sequence).run());
  }
  return {};
}

void Log::keep_staged() {
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

void Log::drop_staged() noexcept {
  builder_ = {};
  builder_topics_.clear();
  staged_.clear();
  staged_topics_.clear();
  staged_bytes_ = 0;
  next_staged_ = next_;
}

Result<TopicLast> Log::last_of(std::string_view topic) {
  if (!staged_topics_.empty()) {
    if (const auto found = staged_topics_.find(std::string(topic)); found != staged_topics_.end()) {
      return found->second;
    }
  }
  Statement& find = sql_->find_topic.set(0, stream_).set(1, topic);
  const Rows rows(find);
  const bool found = WEFT_TRY(find.step()) && find.sequence(0) >= purged_;
  return found ? TopicLast{find.sequence(0)} : TopicLast();
}

std::shared_ptr<const Block> Log::cached(std::uint64_t sequence) const noexcept {
  if (cache_.empty() || sequence < cache_.front()->first()) {
    return nullptr;
  }
  const auto after = std::upper_bound(cache_.begin(), cache_.end(), sequence,
                                      [](std::uint64_t value, const auto& block) { return value < block->first(); });
  const auto& found = *(after - 1);
  return sequence <= found->last() ? found : nullptr;
}

Result<std::shared_ptr<const Block>> Log::load(Cursor& cursor, const TopicPredicate& wants, std::size_t& left) {
  Statement& read = sql_->read_from.set(0, stream_).set(1, cursor.next);
  const Rows rows(read);
  while (WEFT_TRY(read.step())) {
    if (wants && !read.is_null(2) && !may_hold(read.text(2), wants)) {
      cursor.next = read.sequence(1) + 1;
      left -= std::min(left, Cursor::kBlockCost);
      if (left == 0) {
        break;
      }
      continue;
    }
    const Bytes bytes = read.bytes(3);
    auto block =
        WEFT_TRY(Block::parse(std::vector<std::uint8_t>(bytes.begin(), bytes.end()), stream_, read.sequence(0)));
    if (block->last() != read.sequence(1)) {
      return Error(Errc::corrupt, "a block with a wrong count");
    }
    return block;
  }
  return std::shared_ptr<const Block>();
}

Result<std::optional<ReadMessage>> Log::read(Cursor& cursor, const TopicPredicate& wants) {
  cursor.next = std::max(cursor.next, first_);
  std::size_t left = std::max<std::size_t>(cursor.scan_max, 1);
  while (cursor.next < next_) {
    if (cursor.block == nullptr || cursor.next < cursor.block->first() || cursor.next > cursor.block->last()) {
      cursor.block = cached(cursor.next);
      if (cursor.block == nullptr) {
        cursor.block = WEFT_TRY(load(cursor, wants, left));
      }
      if (cursor.block == nullptr && left == 0) {
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
      if (!wants || wants(message.topic)) {
        return std::optional(ReadMessage{cursor.block, message});
      }
      left -= std::min<std::size_t>(left, 1);
      if (left == 0) {
        return std::optional<ReadMessage>();  // the block stays for the next call
      }
    }
  }
  cursor.block.reset();
  return std::optional<ReadMessage>();
}

Result<std::uint64_t> Log::first_at(WallTime time) {
  Statement& find = sql_->find_time.set(0, stream_).set(1, ns_of(time));
  const Rows rows(find);
  if (!WEFT_TRY(find.step())) {
    return next_;
  }
  const Bytes bytes = find.bytes(1);
  const auto parsed = Block::parse({bytes.begin(), bytes.end()}, stream_, find.sequence(0));
  if (!parsed) {  // the reader will meet the damage
    return find.sequence(0);
  }
  const Block& found = **parsed;
  std::uint64_t sequence = found.first();
  while (sequence < found.last() && found.message(sequence).time < time) {
    ++sequence;
  }
  return sequence;
}

Result<std::uint64_t> Log::skip_block(std::uint64_t sequence) {
  Statement& read = sql_->read_from.set(0, stream_).set(1, sequence);
  const Rows rows(read);
  return WEFT_TRY(read.step()) ? read.sequence(1) + 1 : next_;
}

Result<TopicPage> Log::topics_after(std::string_view after, std::size_t rows) {
  Statement& list = sql_->list_topics.set(0, stream_).set(1, after).set(2, rows);
  const Rows reset(list);
  TopicPage page;
  for (page.after = after; WEFT_TRY(list.step()); --rows) {
    page.after = list.text(0);
    if (list.sequence(1) >= purged_) {
      page.topics.push_back({page.after, list.sequence(1)});
    }
  }
  page.more = rows == 0;
  return page;
}

Result<std::optional<Log::Dropped>> Log::drop_oldest(std::uint64_t before, WallTime age) {
  std::optional<Dropped> dropped;
  std::set<std::string> topics;
  {
    Statement& read = sql_->read_from.set(0, stream_).set(1, 0);
    const Rows rows(read);
    if (!WEFT_TRY(read.step()) || read.sequence(1) >= before || wall_time(read.number(4)) >= age) {
      return dropped;
    }
    const Bytes bytes = read.bytes(3);
    dropped = Dropped{read.sequence(1) - read.sequence(0) + 1, bytes.size(), read.sequence(1)};
    // A damaged block goes too; the rows of its topics stay, and give way to later ones.
    auto block = Block::parse({bytes.begin(), bytes.end()}, stream_, read.sequence(0));
    for (std::uint64_t at = block ? (*block)->first() : 1; block && at <= (*block)->last(); ++at) {
      topics.emplace((*block)->message(at).topic);
    }
  }
  for (const std::string& topic : topics) {
    WEFT_TRY(sql_->remove_topic.set(0, stream_).set(1, std::string_view(topic)).set(2, dropped->last).run());
  }
  WEFT_TRY(sql_->drop_block.set(0, stream_).set(1, dropped->last).run());
  WEFT_TRY(sql_->set_next.set(0, next_).set(1, stream_).run());
  return dropped;
}

Result<std::optional<Log::Dropped>> Log::trim(std::uint64_t before) {
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
      return Error(Errc::corrupt, "a block with a wrong count");
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
    builder.add({kept.topic, kept.id, kept.headers, kept.body, kept.erased}, kept.time);
    topics.emplace(kept.topic);
    newest = kept.time;
  }
  for (const std::string& topic : gone) {
    WEFT_TRY(sql_->remove_topic.set(0, stream_).set(1, std::string_view(topic)).set(2, before - 1).run());
  }
  const std::vector<std::uint8_t> rest = builder.finish(stream_, before);
  WEFT_TRY(sql_->drop_block.set(0, stream_).set(1, old->last()).run());
  WEFT_TRY(insert_block(before, old->last(), newest, topics, rest));
  return std::optional(Dropped{before - old->first(), old->size() - rest.size(), before - 1});
}

void Log::keep_dropped(const Dropped& dropped) {
  bytes_ -= std::min(bytes_, dropped.bytes);
  while (!cache_.empty() && cache_.front()->last() <= dropped.last) {
    cache_bytes_ -= cache_.front()->size();
    cache_.pop_front();
  }
  const Result<void> found = refresh_first();
  if (!found) {  // the next read tells the error
    first_ = oldest_last_ = std::max(dropped.last + 1, purged_);
  }
}

}  // namespace weft::store
