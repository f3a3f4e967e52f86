// SPDX-License-Identifier: MIT
// StoredStream: messages that leave, by acknowledgement, age, bytes or purge.
#include <algorithm>
#include <utility>

#include "weft/base/random.h"
#include "weft/store/stream.h"

namespace weft::store {

std::uint64_t StoredStream::floor() const noexcept {
  if (settings_.keep != Keep::work || consumers_.empty()) {
    return purged();
  }
  return std::max(purged(), consumers_.begin()->second->state.floor());
}

std::uint64_t StoredStream::purged() const noexcept {
  return std::visit([](const auto& messages) { return messages.purged(); }, messages_);
}

bool StoredStream::has_purged_rows() const noexcept {
  return std::visit([](const auto& messages) { return messages.may_drop(messages.purged()); }, messages_);
}

WallTime StoredStream::age_limit(WallTime now) const noexcept {
  return settings_.age_max == Duration::zero() ? WallTime::min() : now - settings_.age_max;
}

bool StoredStream::must_drop(WallTime now) const noexcept {
  if (!std::visit([](const auto& messages) { return messages.has_rows(); }, messages_)) {
    return false;
  }
  return must_sweep() || bytes() + delayed_.bytes() > settings_.bytes_max || oldest() < age_limit(now) ||
         std::visit([now](const auto& messages) { return messages.ends() < now; }, messages_) ||
         std::visit([below = floor()](const auto& messages) { return messages.may_drop(below); }, messages_);
}

Result<void> StoredStream::drop_up_to(std::uint64_t before, WallTime age, DropBudget& budget) {
  for (std::uint64_t come = staged_count(); !budget.spent() || come != 0;) {
    const auto dropped =
        WEFT_TRY(std::visit([&](auto& messages) { return messages.drop_oldest(before, age); }, messages_));
    if (!dropped) {
      break;
    }
    drops_.push_back(*dropped);
    budget.take(*dropped);
    come -= std::min(come, dropped->messages);
  }
  return {};
}

Result<void> StoredStream::write_drops(WallTime now, DropBudget& budget) {
  evicting_ = 0;
  const std::uint64_t committed = next();  // staged messages stay
  // Purged and acknowledged messages make room before any other one goes.
  if (const std::uint64_t below = floor();
      std::visit([below](const auto& messages) { return messages.may_drop(below); }, messages_)) {
    WEFT_TRY(drop_up_to(below, WallTime::max(), budget));
  }
  WEFT_TRY(drop_over(committed, now, budget));
  WEFT_TRY(sweep(now, budget));
  WEFT_TRY(evict(committed, now));
  if (const WallTime age = age_limit(now); age != WallTime::min()) {
    WEFT_TRY(drop_up_to(committed, age, budget));
  }
  return {};
}

Result<void> StoredStream::drop_over(std::uint64_t before, WallTime now, DropBudget& budget) {
  while (!budget.spent()) {
    const auto dropped = std::holds_alternative<Latest>(messages_)
                             ? WEFT_TRY(std::get<Latest>(messages_).drop_over(before, now, std::max(now, newest_)))
                             : WEFT_TRY(std::get<MessageLog>(messages_).drop_over(before, now));
    if (!dropped) {
      break;
    }
    drops_.push_back(*dropped);
    budget.take(*dropped);
  }
  return {};
}

// A sweep reads all blocks: it begins when much was acknowledged since the last one, or a message was refused. A life
// begins with two sweeps that take the jobs that earlier lives finished: their acknowledgements are not counted.
bool StoredStream::must_sweep() const noexcept {
  if (settings_.keep != Keep::work || consumers_.empty() || bytes() + delayed_.bytes() < settings_.bytes_max / 8 * 7) {
    return false;
  }
  const std::uint64_t acked = consumers_.begin()->second->state.acknowledged() - sweep_.acked;
  return sweep_.owed != 0 || sweep_.from != 0 ||
         (acked != 0 && (refused_ != sweep_.refused || acked > (next() - first()) / 16));
}

// The first sweep of a life begins at a place that the time chooses, the second one at the oldest message: lives that
// end in the middle of their first sweep read all blocks, one part each.
Result<void> StoredStream::sweep(WallTime now, DropBudget& budget) {
  sweeping_ = sweep_;
  if (!must_sweep() || !std::exchange(budget.sweeps, false)) {
    return {};
  }
  const ConsumerState& state = consumers_.begin()->second->state;
  if (sweeping_.from == 0) {
    const bool begins_anywhere = sweep_.owed == 2;
    const std::uint64_t place = mix_bits(static_cast<std::uint64_t>(now.time_since_epoch().count()));
    sweeping_ = {sweep_.owed - (sweep_.owed != 0 ? 1 : 0),
                 first() + (begins_anywhere ? place % std::max<std::uint64_t>(next() - first(), 1) : 0),
                 state.acknowledged(), refused_};
  }
  return std::get<MessageLog>(messages_).drop_done(
      sweeping_.from, kSweepRows, kDropsPerCommit + staged_count(),
      [&state](std::uint64_t first, std::uint64_t last) { return state.done_with(first, last); }, drops_);
}

Result<void> StoredStream::evict(std::uint64_t before, WallTime now) {
  const std::size_t staged = staged_bytes();
  const std::uint64_t trimmed = std::visit([](const auto& messages) { return messages.trimmed_bytes(); }, messages_);
  const std::uint64_t all = bytes() + staged + delayed_.bytes();
  std::uint64_t size = all - std::min(all, trimmed);
  for (const MessageLog::Dropped& dropped : drops_) {
    size -= std::min(size, dropped.bytes);
  }
  auto* const latest = std::get_if<Latest>(&messages_);
  // As many messages go as come, and as many bytes: of the latest each drop is one value. The erasures of values that
  // went with the last commit count as none: otherwise each value would take the room of two.
  const std::uint64_t drops_max = kDropsPerCommit + staged_count();
  const std::uint64_t rows_max = latest != nullptr ? kEvictValuesPerCommit : kEvictRowsPerCommit;
  std::uint64_t drops = drops_.size();
  std::uint64_t topics = 0;
  std::uint64_t dropped_bytes = 0;
  while (size > settings_.bytes_max) {
    const bool few = drops < drops_max && topics < kEvictTopicsPerCommit;
    if (!few && (dropped_bytes >= staged || drops + topics >= rows_max)) {
      break;
    }
    const bool erasure = latest != nullptr && latest->evicts_erasure();
    const auto dropped = latest != nullptr
                             ? WEFT_TRY(latest->evict_oldest(before, std::max(now, newest_)))
                             : WEFT_TRY(std::get<MessageLog>(messages_).drop_oldest(before, WallTime::max()));
    if (!dropped) {
      break;
    }
    drops_.push_back(*dropped);
    drops += erasure ? 0 : 1;
    topics += dropped->topics;
    dropped_bytes += erasure ? 0 : dropped->bytes;
    size -= std::min(size, dropped->bytes);
    evicting_ += latest != nullptr ? dropped->newest : unread_of(*dropped);
  }
  return {};
}

// Of messages that a bound takes: how many were there, and not acknowledged. A log promises nothing else.
std::uint64_t StoredStream::unread_of(const MessageLog::Dropped& dropped) const noexcept {
  if (dropped.last < purged()) {
    return 0;
  }
  if (settings_.keep != Keep::work || consumers_.empty()) {
    return dropped.messages;
  }
  const ConsumerState& state = consumers_.begin()->second->state;
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < dropped.messages; ++i) {
    const std::uint64_t sequence = dropped.last - i;
    count += sequence >= state.next() || state.waits(sequence) ? 1 : 0;
  }
  return count;
}

Result<std::uint64_t> StoredStream::purge_before(std::uint64_t sequence) {
  const std::uint64_t before = std::min(sequence, next());
  DropBudget budget;
  WEFT_TRY(drop_up_to(before, WallTime::max(), budget));
  if (auto* log = std::get_if<MessageLog>(&messages_)) {
    const auto trimmed = log->trim(before);
    if (trimmed && *trimmed) {
      drops_.push_back(**trimmed);
    } else if (!trimmed && trimmed.error() != Errc::corrupt) {  // a damaged block stays, and no reader gets it
      return trimmed.error();
    }
  }
  return before;
}

void StoredStream::set_purged(std::uint64_t before) noexcept {
  std::visit([before](auto& messages) { messages.set_purged(before); }, messages_);
}

Result<void> StoredStream::purge_topic(std::string_view topic) {
  auto* latest = std::get_if<Latest>(&messages_);
  if (latest == nullptr) {
    return Error(Errc::not_supported, "messages of one topic leave a log by their age only");
  }
  drops_.push_back(WEFT_TRY(latest->drop_topic(topic)));
  return {};
}

}  // namespace weft::store
