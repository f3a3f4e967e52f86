// SPDX-License-Identifier: MIT
// StoredStream: messages that come, one at a time or as a batch.
#include <algorithm>
#include <set>
#include <utility>

#include "weft/store/stream.h"

namespace weft::store {
namespace {

constexpr Error kKnown(Errc::conflict, "a message of the batch was stored before");
constexpr Error kFull(Errc::resource_exhausted, "the stream is full");

}  // namespace

Result<void> StoredStream::check_message(const NewMessage& message) const {
  WEFT_TRY(BlockBuilder::check(message));
  WEFT_TRY(check_topic(message.topic));
  if (!takes(message.topic)) {
    return Error(Errc::invalid_argument, "the stream does not take this topic");
  }
  if (BlockBuilder::size_of(message) + kBlockHeader > settings_.bytes_max) {
    return Error(Errc::message_too_large, "the message exceeds its stream");
  }
  return {};
}

Result<void> StoredStream::check_expectation(std::string_view topic, const Expect& expect, WallTime time) {
  if (expect.last || expect.absent) {
    const TopicLast last = WEFT_TRY(last_of(topic, time));
    if (expect.last && *expect.last != last.sequence) {
      return Error(Errc::conflict, "the topic has another last sequence");
    }
    if (expect.absent && last.sequence != 0 && !last.erased) {
      return Error(Errc::conflict, "the topic has a value");
    }
  }
  return {};
}

std::uint64_t StoredStream::stage(const NewMessage& message, WallTime time) {
  const std::uint64_t sequence = std::visit([&](auto& messages) { return messages.stage(message, time); }, messages_);
  newest_ = time;
  add_work();
  return sequence;
}

std::uint64_t StoredStream::stage_with_id(const NewMessage& message, WallTime time) {
  const std::uint64_t sequence = stage(message, time);
  if (settings_.same_id_window > Duration::zero()) {
    ids_.add(message.id, sequence, time, ids_since());
  }
  return sequence;
}

std::optional<std::uint64_t> StoredStream::find_id(std::string_view id) const {
  if (settings_.same_id_window == Duration::zero() || id.empty()) {
    return std::nullopt;
  }
  if (const auto before = ids_.find(id, ids_since())) {
    return before;
  }
  return delayed_.knows(id, delayed_ids_since()) ? std::optional<std::uint64_t>(0) : std::nullopt;
}

Result<Appended> StoredStream::append(const NewMessage& message, const Expect& expect, WallTime now) {
  WEFT_TRY(check_message(message));
  const WallTime time = std::max(now, newest_);  // a clock that goes back does not reorder messages
  if (const auto before = find_id(message.id)) {
    return Appended{*before, true};
  }
  if (message.delay != Duration::zero()) {
    WEFT_TRY(check_delayed(message, expect));
    const bool with_id = settings_.same_id_window > Duration::zero();
    delayed_.stage(message, now, with_id ? std::optional(delayed_ids_since()) : std::nullopt);
    add_work();
    return Appended{};
  }
  WEFT_TRY(check_expectation(message.topic, expect, time));
  if (settings_.when_full == Discard::refuse) {
    WEFT_TRY(take_room(message));
  }
  return Appended{stage_with_id(message, time), false};
}

// With `oldest`, delayed messages push out readable ones, and take at most half of the room: each of them was promised.
Result<void> StoredStream::check_delayed(const NewMessage& message, const Expect& expect) {
  if (expect.last || expect.absent) {
    return Error(Errc::invalid_argument, "a message with a delay has no expected last sequence");
  }
  if (delayed_.count() >= DelayedMessages::kMessagesMax) {
    return Error(Errc::resource_exhausted, "a stream has 1,000,000 messages with a delay");
  }
  const std::uint64_t size = DelayedMessages::size_of(message);
  if (settings_.when_full == Discard::refuse) {
    return check_room(size, 0);
  }
  return delayed_.bytes() + size > settings_.bytes_max / 2
             ? Result<void>(Error(Errc::resource_exhausted, "messages with a delay take half of the stream"))
             : Result<void>();
}

void StoredStream::stage_due(WallTime now, DelayedMessages::Budget& budget) {
  const auto taken = delayed_.take_due(now, budget, [&](const NewMessage& message) {
    (void)stage(message, std::max(now, newest_));  // its id counts from its publish
  });
  damaged_ += taken.error() == Errc::corrupt ? 1 : 0;
  if (delayed_.has_staged()) {
    add_work();
  }
}

// The sequence of the first message, if the batch was stored before.
Result<std::optional<std::uint64_t>> StoredStream::find_batch(std::span<const BatchEntry> entries) const {
  std::optional<std::uint64_t> first;
  std::size_t with_id = 0;
  std::size_t known = 0;
  bool in_order = true;
  for (std::size_t i = 0; settings_.same_id_window > Duration::zero() && i < entries.size(); ++i) {
    const std::string_view id = entries[i].message.id;
    const auto before = find_id(id);
    with_id += id.empty() ? 0 : 1;
    if (before && *before == 0) {
      return kKnown;
    }
    if (before) {
      first = first.value_or(*before - i);
      in_order = in_order && *first + i == *before;
      ++known;
    }
  }
  if (known != 0 && (known != with_id || !in_order)) {
    return kKnown;
  }
  return first;
}

Result<Appended> StoredStream::append_all(std::span<const BatchEntry> entries, WallTime now) {
  if (entries.empty()) {
    return Error(Errc::invalid_argument, "a batch without messages");
  }
  const WallTime time = std::max(now, newest_);
  std::set<std::string_view> topics;
  std::set<std::string_view> ids;
  std::size_t size = 0;
  for (const auto& [message, expect] : entries) {
    WEFT_TRY(check_message(message));
    if (message.delay != Duration::zero()) {
      return Error(Errc::invalid_argument, "a message of a batch has no delay");
    }
    if (!message.id.empty() && !ids.insert(message.id).second) {
      return Error(Errc::invalid_argument, "two messages of the batch have the same id");
    }
    if (!topics.insert(message.topic).second && (expect.last || expect.absent)) {
      return Error(Errc::invalid_argument, "the batch has an earlier message of a topic with an expectation");
    }
    size += BlockBuilder::size_of(message) + kBlockHeader;
  }
  if (size > settings_.bytes_max) {
    return Error(Errc::message_too_large, "the batch exceeds its stream");
  }
  if (const auto before = WEFT_TRY(find_batch(entries))) {
    return Appended{*before, true};
  }
  for (const auto& [message, expect] : entries) {
    WEFT_TRY(check_expectation(message.topic, expect, time));
  }
  if (settings_.when_full == Discard::refuse) {
    WEFT_TRY(take_room(entries, size));
  }
  const std::uint64_t first = stage_with_id(entries.front().message, time);
  for (const auto& [message, expect] : entries.subspan(1)) {
    (void)stage_with_id(message, time);
  }
  return Appended{first, false};
}

Result<void> StoredStream::take_room(const NewMessage& message) {
  const std::size_t size = BlockBuilder::size_of(message) + kBlockHeader;
  auto* const latest = std::get_if<Latest>(&messages_);
  if (latest == nullptr) {
    return check_room(size, 0);
  }
  const TopicLast last = WEFT_TRY(last_of(message.topic, WallTime::min()));
  const std::uint64_t replaced = settings_.history == 1 ? last.size : 0;
  const bool erases = message.erased && last.sequence != 0 && !last.erased;
  if (!erases) {  // a bucket that is full can be emptied: of each value there is one erasure
    WEFT_TRY(check_room(size, replaced));
  }
  latest->supersede(replaced);
  return {};
}

Result<void> StoredStream::take_room(std::span<const BatchEntry> entries, std::size_t size) {
  auto* const latest = std::get_if<Latest>(&messages_);
  std::uint64_t replaced = 0;
  std::set<std::string_view> topics;
  for (const auto& [message, expect] : entries) {
    if (latest != nullptr && settings_.history == 1 && topics.insert(message.topic).second) {
      replaced += WEFT_TRY(last_of(message.topic, WallTime::min())).size;
    }
  }
  WEFT_TRY(check_room(size, replaced));
  if (latest != nullptr) {
    latest->supersede(replaced);
  }
  return {};
}

Result<void> StoredStream::check_room(std::uint64_t size, std::uint64_t replaced) {
  const auto* latest = std::get_if<Latest>(&messages_);
  const std::uint64_t superseded = latest == nullptr ? 0 : latest->superseded_bytes();
  if (bytes() + staged_bytes() + delayed_.bytes() + size > settings_.bytes_max + superseded + replaced) {
    ++refused_;
    (void)update_work();  // a sweep may make room
    return kFull;
  }
  return {};
}

}  // namespace weft::store
