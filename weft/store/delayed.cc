// SPDX-License-Identifier: MIT
#include "weft/store/delayed.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "weft/store/rows.h"

namespace weft::store {
namespace {

constexpr Duration kReadAgain = std::chrono::seconds(1);  // after an error

}  // namespace

Result<DelayedSql> DelayedSql::prepare(Database& database) {
  DelayedSql sql;
  const Database::Prepared all[] = {
      {&sql.insert, "INSERT INTO delayed(stream, due, number, bytes, sum) VALUES(?1,?2,?3,?4,weft_sum(?1,?2,?3))"},
      {&sql.read_due,
       "SELECT rowid, due, number, bytes FROM delayed WHERE stream=? AND due<=? ORDER BY due, number LIMIT ?"},
      {&sql.read_damaged,
       "SELECT rowid, due, number, bytes FROM delayed WHERE stream=? AND sum IS NOT weft_sum(stream, due, number) "
       "LIMIT ?"},
      {&sql.remove, "DELETE FROM delayed WHERE rowid=?"},
      {&sql.set_due, "UPDATE delayed SET due=?1, sum=weft_sum(stream, ?1, number) WHERE rowid=?2"},
      {&sql.find_next, "SELECT due FROM delayed WHERE stream=? ORDER BY due LIMIT 1"},
      {&sql.read_size,
       "SELECT count(*), sum(length(bytes)), max(CASE WHEN sum IS weft_sum(stream, due, number) THEN number END),"
       " total(sum IS NOT weft_sum(stream, due, number))>0 FROM delayed WHERE stream=?"},
      {&sql.read_last_id, "SELECT max(last) FROM delayed_id WHERE stream=?"},
  };
  WEFT_TRY(database.prepare_all(all));
  sql.ids = WEFT_TRY(IdSql::prepare(database, "delayed_id"));
  return sql;
}

Result<std::uint64_t> DelayedMessages::open(std::optional<WallTime> ids_since) {
  std::uint64_t last = 0;
  {
    Statement& size = sql_->read_size.set(0, stream_);
    const Rows rows(size);
    if (WEFT_TRY(size.step())) {
      count_ = size.sequence(0);
      bytes_ = size.sequence(1);
      last = size.sequence(2);
      has_damaged_ = size.number(3) != 0;
    }
  }
  {
    Statement& last_id = sql_->read_last_id.set(0, stream_);
    const Rows rows(last_id);
    const std::uint64_t number = WEFT_TRY(last_id.step()) ? last_id.sequence(0) : 0;
    last = number < kSequenceMax / 2 ? std::max(last, number) : last;  // no stream has so many: it is damaged
  }
  next_ = next_kept_ = last + 1;
  ReadIds ids;
  if (ids_since) {
    ids = WEFT_TRY(read_ids(sql_->ids, stream_, *ids_since, ids_));
    newest_ = newest_kept_ = ids.newest;
  }
  find_next();
  return ids.damaged;
}

void DelayedMessages::find_next() noexcept {
  next_due_ = has_damaged_ ? WallTime() : WallTime::max();
  Statement& find = sql_->find_next.set(0, stream_);
  const Rows rows(find);
  const auto found = find.step();
  if (!found || *found) {  // take_due() finds the error again
    next_due_ = std::min(next_due_, found ? std::max(wall_time(find.number(0)), WallTime()) : WallTime());
  }
}

void DelayedMessages::stage(const NewMessage& message, WallTime now, std::optional<WallTime> ids_since) {
  const std::uint64_t number = next_++;
  const WallTime due = expiry_of(now, message.delay);
  NewMessage kept = message;
  kept.delay = Duration::zero();
  BlockBuilder builder;
  builder.add(kept, due);
  staged_.push_back({number, due, builder.finish(stream_, number)});
  staged_bytes_ += staged_.back().bytes.size();
  newest_ = std::max(newest_, now);
  if (ids_since) {
    ids_.add(message.id, number, newest_, *ids_since);
  }
}

// Of a row `rowid, due, number, bytes`.
void DelayedMessages::take_row(const Statement& read, bool may_leave, Budget& budget, const Enter& enter) {
  const Bytes bytes = read.bytes(3);
  Change& change = changes_.emplace_back(Change{read.number(0), bytes.size()});
  budget.messages -= std::min<std::size_t>(budget.messages, 1);
  budget.bytes -= std::min(budget.bytes, bytes.size());
  const auto block = Block::parse({bytes.begin(), bytes.end()}, stream_, read.sequence(2));
  if (!block || (*block)->count() != 1) {
    change.damaged = true;
    leaving_bytes_ += bytes.size();
    return;
  }
  const StoredMessage message = (*block)->message((*block)->first());
  if (message.time != wall_time(read.number(1)) || !may_leave) {
    change.damaged = true;
    change.leaves = false;
    change.due = message.time;
    return;
  }
  leaving_bytes_ += bytes.size();
  ++moving_;
  const bool ends = message.expires != WallTime::max();
  const Duration lives = ends ? std::clamp(message.expires - message.time, kTimeToLiveMin, kTimeToLiveMax) : Duration();
  enter({message.topic, message.id, message.headers, message.body, message.erased, lives});
}

Result<void> DelayedMessages::take_due(WallTime now, Budget& budget, const Enter& enter) {
  if (next_due_ > now || budget.messages == 0 || budget.bytes == 0) {
    return {};
  }
  const auto take = [&](Statement& read, bool may_leave) -> Result<void> {
    const Rows rows(read);
    while (budget.messages != 0 && budget.bytes != 0 && WEFT_TRY(read.step())) {
      take_row(read, may_leave, budget, enter);
    }
    return {};
  };
  Result<void> taken;
  if (has_damaged_) {  // their times are unknown: they are mended before others leave
    taken = take(sql_->read_damaged.set(0, stream_).set(1, budget.messages), false);
    has_damaged_ = taken && !changes_.empty();
  }
  if (taken && changes_.empty()) {
    taken = take(sql_->read_due.set(0, stream_).set(1, ns_of(now)).set(2, budget.messages), true);
  }
  if (changes_.empty()) {
    next_due_ = now + kReadAgain;
  }
  return taken;
}

Result<void> DelayedMessages::write_staged() {
  const std::uint64_t oldest = ids_.first_sequence().value_or(next_kept_);
  if (oldest != ids_from_ || (ids_.last_sequence() && *ids_.last_sequence() >= next_kept_)) {
    WEFT_TRY(write_ids(sql_->ids, stream_, ids_, next_kept_));
    ids_from_ = oldest;
  }
  for (const Staged& staged : staged_) {
    Statement& insert = sql_->insert.set(0, stream_).set(1, ns_of(staged.due)).set(2, staged.number);
    WEFT_TRY(insert.set(3, Bytes(staged.bytes)).run());
  }
  for (const Change& change : changes_) {
    WEFT_TRY(
        (change.leaves ? sql_->remove.set(0, change.row) : sql_->set_due.set(0, ns_of(change.due)).set(1, change.row))
            .run());
  }
  return {};
}

void DelayedMessages::keep_staged() {
  for (const Staged& staged : staged_) {
    next_due_ = std::min(next_due_, staged.due);
  }
  for (const Change& change : changes_) {
    count_ -= change.leaves ? std::min<std::uint64_t>(count_, 1) : 0;
    damaged_ += change.damaged ? 1 : 0;
  }
  count_ += staged_.size();
  bytes_ = bytes();
  next_kept_ = next_;
  newest_kept_ = newest_;
  const bool changed = !changes_.empty();
  staged_.clear();
  changes_.clear();
  staged_bytes_ = leaving_bytes_ = moving_ = 0;
  if (changed) {
    find_next();
  }
}

void DelayedMessages::drop_staged() {
  staged_.clear();
  changes_.clear();
  staged_bytes_ = leaving_bytes_ = moving_ = 0;
  next_ = next_kept_;
  newest_ = newest_kept_;
  ids_.forget_from(next_kept_);
}

}  // namespace weft::store
