// SPDX-License-Identifier: MIT
#include "weft/store/latest.h"

#include <algorithm>
#include <utility>

#include "weft/store/row_sum.h"
#include "weft/store/rows.h"

namespace weft::store {

Result<LatestSql> LatestSql::prepare(Database& database) {
  LatestSql sql;
  const Database::Prepared all[] = {
      {&sql.insert, "INSERT INTO kv(stream, topic, revision, time, erased, bytes, expires) VALUES(?,?,?,?,?,?,?)"},
      {&sql.trim,
       "DELETE FROM kv WHERE stream=?1 AND topic=?2 AND revision<=(SELECT revision FROM kv WHERE stream=?1 AND topic=?2"
       " ORDER BY revision DESC LIMIT 1 OFFSET ?3) RETURNING length(bytes)"},
      {&sql.read_from,
       "SELECT revision, topic, bytes, time, erased, expires FROM kv WHERE stream=? AND revision>=? ORDER BY revision"},
      {&sql.find_last,
       "SELECT revision, erased, length(bytes), time, expires FROM kv WHERE stream=? AND topic=?"
       " ORDER BY revision DESC LIMIT 1"},
      {&sql.find_revision,
       "SELECT revision, topic, bytes, time, erased, expires FROM kv WHERE stream=? AND revision=?"},
      {&sql.list_topics,
       "SELECT topic, revision, erased, time, expires FROM kv WHERE stream=? AND topic>? ORDER BY topic, revision "
       "LIMIT ?"},
      {&sql.read_size, "SELECT sum(length(bytes)) FROM kv WHERE stream=?"},
      {&sql.read_newest, "SELECT revision, time, erased, topic, expires FROM kv WHERE stream=? ORDER BY revision DESC"},
      {&sql.read_first, "SELECT revision, time FROM kv WHERE stream=? ORDER BY revision LIMIT 1"},
      {&sql.find_oldest,
       "SELECT revision, topic, (erased & 1)=0 AND revision=(SELECT max(revision) FROM kv WHERE stream=?1 AND "
       "topic=a.topic)"
       " FROM kv AS a WHERE stream=?1 ORDER BY revision LIMIT 1"},
      {&sql.drop_revision, "DELETE FROM kv WHERE stream=? AND revision=? RETURNING length(bytes)"},
      {&sql.drop_topic, "DELETE FROM kv WHERE stream=? AND topic=? RETURNING length(bytes)"},
      {&sql.set_next,
       "UPDATE stream SET next=max(next, ?1), sum=weft_sum(id, name, settings, max(next, ?1), has_ids, purged)"
       " WHERE id=?2"},
      {&sql.find_row,
       "SELECT revision, time, erased, topic, expires FROM kv WHERE stream=? AND revision>=? ORDER BY revision LIMIT "
       "1"},
      {&sql.find_end, "SELECT expires FROM kv WHERE stream=? AND expires IS NOT NULL ORDER BY expires LIMIT 1"},
      {&sql.find_over,
       "SELECT revision, topic, time, erased, expires,"
       " revision=(SELECT max(revision) FROM kv WHERE stream=?1 AND topic=a.topic)"
       " FROM kv AS a WHERE stream=?1 AND expires<?2 ORDER BY expires LIMIT 1"},
      {&sql.set_end, "UPDATE kv SET expires=NULL WHERE stream=? AND revision=?"},
  };
  WEFT_TRY(database.prepare_all(all));
  return sql;
}

Result<void> Latest::open(std::uint64_t next, std::uint64_t purged) {
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
      const ValueRow row{stream_, newest.text(3), newest.sequence(0), wall_time(newest.number(1)),
                         expiry_at(newest, 4)};
      std::uint64_t& last = is_whole(newest.number(2), row) ? whole : damaged;
      last = std::max(last, row.revision);
      newest_ = whole != 0 ? row.time : newest_;
    }
  }
  next_ = next_staged_ = std::max(next, next_behind(whole, damaged));
  purged_ = std::min(purged, next_);
  return refresh_first();
}

Result<void> Latest::refresh_first() {
  {
    Statement& end = sql_->find_end.set(0, stream_);
    const Rows rows(end);
    ends_ = WEFT_TRY(end.step()) ? expiry_at(end, 0) : WallTime::max();
  }
  Statement& oldest = sql_->read_first.set(0, stream_);
  const Rows rows(oldest);
  has_rows_ = WEFT_TRY(oldest.step());
  oldest_revision_ = has_rows_ ? std::min(oldest.sequence(0), next_ - 1) : next_;
  oldest_ = has_rows_ ? wall_time(oldest.number(1)) : newest_;
  first_ = std::max(oldest_revision_, purged_);
  return {};
}

void Latest::set_purged(std::uint64_t before) noexcept {
  purged_ = std::max(purged_, std::min(before, next_));
  first_ = std::max(first_, purged_);
}

std::uint64_t Latest::stage(const NewMessage& message, WallTime time) {
  const std::uint64_t revision = next_staged_++;
  BlockBuilder builder;
  builder.add(message, time);
  const WallTime expires = expiry_of(time, message.time_to_live);
  staged_.push_back(
      {std::string(message.topic), revision, time, builder.finish(stream_, revision), message.erased, expires});
  const std::size_t size = staged_.back().bytes.size();
  staged_topics_[staged_.back().topic] = {revision, message.erased, size, expires};
  staged_bytes_ += size;
  return revision;
}

Result<void> Latest::write_staged() {
  trimmed_bytes_ = 0;
  for (const Staged& staged : staged_) {
    WEFT_TRY(insert(staged));
  }
  for (const auto& [topic, last] : staged_topics_) {
    Statement& trim = sql_->trim.set(0, stream_).set(1, std::string_view(topic)).set(2, history_);
    const Rows rows(trim);
    while (WEFT_TRY(trim.step())) {
      trimmed_bytes_ += trim.sequence(0);
    }
  }
  return {};
}

Result<void> Latest::insert(const Staged& staged) {
  const ValueRow value{stream_, staged.topic, staged.revision, staged.time, staged.expires};
  Statement& row = sql_->insert.set(0, stream_).set(1, std::string_view(staged.topic)).set(2, staged.revision);
  row.set(3, ns_of(staged.time)).set(4, erased_with_sum(staged.erased, value)).set(5, Bytes(staged.bytes));
  return set_expiry(row, 6, staged.expires).run();
}

void Latest::keep_staged() {
  if (!staged_.empty()) {
    newest_ = staged_.back().time;
  }
  bytes_ += staged_bytes_;
  bytes_ -= std::min(bytes_, trimmed_bytes_);
  next_ = next_staged_;
  staged_.clear();
  staged_topics_.clear();
  staged_bytes_ = trimmed_bytes_ = superseded_bytes_ = 0;
  erasures_.erase(erasures_.begin(), erasures_.begin() + static_cast<std::ptrdiff_t>(erasures_dropped_));
  erasures_dropped_ = 0;
  for (const std::uint64_t revision : std::exchange(erasures_staged_, {})) {
    if (erasures_.size() < kErasuresMax) {
      erasures_.push_back(revision);
    }
  }
  (void)refresh_first();  // an error shows again at the next read
}

void Latest::drop_staged() noexcept {
  staged_.clear();
  staged_topics_.clear();
  staged_bytes_ = trimmed_bytes_ = superseded_bytes_ = 0;
  erasures_dropped_ = 0;
  erasures_staged_.clear();
  next_staged_ = next_;
}

Result<TopicLast> Latest::last_of(std::string_view topic) {
  if (!staged_topics_.empty()) {
    if (const auto found = staged_topics_.find(std::string(topic)); found != staged_topics_.end()) {
      return found->second;
    }
  }
  Statement& find = sql_->find_last.set(0, stream_).set(1, topic);
  const Rows rows(find);
  if (!WEFT_TRY(find.step())) {
    return TopicLast();
  }
  const WallTime expires = expiry_at(find, 4);
  if (!is_whole(find.number(1), {stream_, topic, find.sequence(0), wall_time(find.number(3)), expires})) {
    return Error(Errc::corrupt, "the row of a value whose checksum is wrong");
  }
  const auto size = static_cast<std::size_t>(find.number(2));
  return find.sequence(0) < purged_ ? TopicLast()
                                    : TopicLast{find.sequence(0), is_erased(find.number(1)), size, expires};
}

Result<std::optional<ReadMessage>> Latest::row(Statement& statement, std::uint64_t revision) {
  const Bytes bytes = statement.bytes(2);
  auto block = WEFT_TRY(Block::parse({bytes.begin(), bytes.end()}, stream_, revision));
  const StoredMessage message = block->message(revision);
  const std::int64_t erased = statement.number(4);
  if (block->count() != 1 || message.topic != statement.text(1) || message.time != wall_time(statement.number(3)) ||
      message.expires != expiry_at(statement, 5) ||
      !is_whole(erased, {stream_, message.topic, revision, message.time, message.expires})) {
    return Error(Errc::corrupt, "a value in the place of another one");
  }
  return std::optional(ReadMessage{std::move(block), message});
}

Result<std::optional<ReadMessage>> Latest::value_at(std::uint64_t revision) {
  Statement& find = sql_->find_revision.set(0, stream_).set(1, revision);
  const Rows rows(find);
  if (!WEFT_TRY(find.step())) {
    return std::optional<ReadMessage>();
  }
  return row(find, revision);
}

Result<std::optional<ReadMessage>> Latest::read(Cursor& cursor, const TopicPredicate& wants, WallTime now) {
  cursor.block.reset();
  cursor.next = std::max(cursor.next, purged_);
  if (cursor.next >= next_) {
    return std::optional<ReadMessage>();
  }
  Statement& read = sql_->read_from.set(0, stream_).set(1, cursor.next);
  const Rows rows(read);
  while (WEFT_TRY(read.step())) {
    const std::uint64_t revision = read.sequence(0);
    if (revision >= next_) {
      break;
    }
    std::optional<ReadMessage> found;
    if (!wants || wants(read.text(1))) {
      found = WEFT_TRY(row(read, revision));
    }
    if (!found || found->message.is_over(now)) {
      cursor.next = revision + 1;
      ++cursor.passed;
      if (cursor.passed_enough()) {
        return std::optional<ReadMessage>();
      }
      continue;
    }
    cursor.next = revision + 1;
    return found;
  }
  cursor.next = next_;
  return std::optional<ReadMessage>();
}

Result<std::uint64_t> Latest::first_at(WallTime time) {
  return find_time(first_, next_, time, [this](std::uint64_t revision) -> Result<std::optional<TimeRow>> {
    Statement& find = sql_->find_row.set(0, stream_).set(1, revision);
    const Rows rows(find);
    if (!WEFT_TRY(find.step())) {
      return std::optional<TimeRow>();
    }
    const ValueRow row{stream_, find.text(3), find.sequence(0), wall_time(find.number(1)), expiry_at(find, 4)};
    const bool whole = is_whole(find.number(2), row);
    return std::optional(TimeRow{row.revision, row.revision, whole ? std::optional(row.time) : std::nullopt});
  });
}

Result<std::uint64_t> Latest::skip_block(std::uint64_t revision) {
  Statement& read = sql_->read_from.set(0, stream_).set(1, revision);
  const Rows rows(read);
  return WEFT_TRY(read.step()) ? std::min(read.sequence(0) + 1, next_) : next_;
}

Result<TopicPage> Latest::topics_after(std::string_view after, std::size_t rows, WallTime now) {
  // All values of one topic, and the next topic: else a page could end where it began.
  rows = std::max<std::size_t>(rows, StreamSettings::kHistoryMax + 1);
  Statement& list = sql_->list_topics.set(0, stream_).set(1, after).set(2, rows);
  const Rows reset(list);
  TopicPage page;
  page.after = after;
  std::string topic;
  std::uint64_t last = 0;  // 0: no row yet, or the topic has no value
  const auto close_topic = [&] {
    if (last >= purged_) {
      page.topics.push_back({topic, last});
    }
    page.after = topic;
  };
  std::size_t count = 0;
  for (; WEFT_TRY(list.step()); ++count) {
    if (count != 0 && list.text(0) != topic) {
      close_topic();
    }
    topic = list.text(0);
    const WallTime expires = expiry_at(list, 4);
    const bool whole = is_whole(list.number(2), {stream_, topic, list.sequence(1), wall_time(list.number(3)), expires});
    if (!whole) {
      page.damaged.push_back(list.sequence(1));
    }
    last = !whole || is_erased(list.number(2)) || expires <= now ? 0 : list.sequence(1);
  }
  page.more = count == rows;
  if (count != 0 && !page.more) {  // else the topic may have later values
    close_topic();
  }
  return page;
}

Result<std::optional<MessageLog::Dropped>> Latest::drop_oldest(std::uint64_t before, WallTime age) {
  MessageLog::Dropped dropped;
  {
    Statement& oldest = sql_->read_first.set(0, stream_);
    const Rows rows(oldest);
    if (!WEFT_TRY(oldest.step()) || oldest.sequence(0) >= before || wall_time(oldest.number(1)) >= age) {
      return std::optional<MessageLog::Dropped>();
    }
    dropped.last = oldest.sequence(0);
  }
  return std::optional(WEFT_TRY(drop_revision(dropped.last)));
}

Result<MessageLog::Dropped> Latest::drop_revision(std::uint64_t revision) {
  MessageLog::Dropped dropped;
  dropped.last = revision;
  {
    Statement& drop = sql_->drop_revision.set(0, stream_).set(1, revision);
    const Rows rows(drop);
    while (WEFT_TRY(drop.step())) {
      ++dropped.messages;
      dropped.bytes += drop.sequence(0);
    }
  }
  WEFT_TRY(sql_->set_next.set(0, next_).set(1, stream_).run());
  return dropped;
}

Result<std::optional<MessageLog::Dropped>> Latest::evict_oldest(std::uint64_t before, WallTime time) {
  if (evicts_erasure()) {
    return std::optional(WEFT_TRY(drop_revision(erasures_[erasures_dropped_++])));
  }
  std::uint64_t revision = 0;
  std::string topic;
  bool newest = false;
  {
    Statement& oldest = sql_->find_oldest.set(0, stream_);
    const Rows rows(oldest);
    if (!WEFT_TRY(oldest.step()) || oldest.sequence(0) >= before) {
      return std::optional<MessageLog::Dropped>();
    }
    revision = oldest.sequence(0);
    topic = oldest.text(1);
    newest = oldest.number(2) != 0;
  }
  MessageLog::Dropped dropped = WEFT_TRY(drop_revision(revision));
  if (newest && revision >= purged_) {
    dropped.newest = 1;
    erasures_staged_.push_back(WEFT_TRY(erase_dropped(topic, time, Duration::zero())));
  }
  return std::optional(dropped);
}

Result<std::uint64_t> Latest::erase_dropped(std::string_view topic, WallTime time, Duration time_to_live) {
  NewMessage erasure;
  erasure.topic = topic;
  erasure.erased = true;
  erasure.time_to_live = time_to_live;
  const std::uint64_t revision = stage(erasure, time);
  WEFT_TRY(insert(staged_.back()));
  return revision;
}

Result<std::optional<MessageLog::Dropped>> Latest::drop_over(std::uint64_t before, WallTime now, WallTime time) {
  std::uint64_t revision = 0;
  std::string topic;
  bool whole = false;
  bool erased = false;
  bool newest = false;
  {
    Statement& find = sql_->find_over.set(0, stream_).set(1, ns_of(now));
    const Rows rows(find);
    const bool any = WEFT_TRY(find.step());
    const bool damaged = any && find.sequence(0) >= next_staged_;
    if (!any || (find.sequence(0) >= before && !damaged)) {
      return std::optional<MessageLog::Dropped>();
    }
    revision = find.sequence(0);
    topic = find.text(1);
    whole =
        !damaged && is_whole(find.number(3), {stream_, topic, revision, wall_time(find.number(2)), expiry_at(find, 4)});
    erased = is_erased(find.number(3));
    newest = find.number(5) != 0;
  }
  if (!whole) {  // it may not be over: a reader reports it, and it goes by its age
    WEFT_TRY(sql_->set_end.set(0, stream_).set(1, revision).run());
    return std::optional(MessageLog::Dropped{.last = revision});
  }
  if (!newest) {
    return std::optional(WEFT_TRY(drop_revision(revision)));
  }
  MessageLog::Dropped dropped = WEFT_TRY(drop_topic(topic));
  dropped.last = revision;
  if (!erased && revision >= purged_) {
    (void)WEFT_TRY(erase_dropped(topic, time, kErasureLives));
  }
  return std::optional(dropped);
}

Result<MessageLog::Dropped> Latest::drop_topic(std::string_view topic) {
  MessageLog::Dropped dropped;
  {
    Statement& drop = sql_->drop_topic.set(0, stream_).set(1, topic);
    const Rows rows(drop);
    while (WEFT_TRY(drop.step())) {
      ++dropped.messages;
      dropped.bytes += drop.sequence(0);
    }
  }
  WEFT_TRY(sql_->set_next.set(0, next_).set(1, stream_).run());
  return dropped;
}

void Latest::keep_dropped(const MessageLog::Dropped& dropped) {
  bytes_ -= std::min(bytes_, dropped.bytes);
  (void)refresh_first();
}

}  // namespace weft::store
