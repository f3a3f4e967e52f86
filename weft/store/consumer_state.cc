// SPDX-License-Identifier: MIT
#include "weft/store/consumer_state.h"

#include <algorithm>
#include <limits>

#include "weft/base/assert.h"
#include "weft/store/varint.h"

namespace weft::store {

ConsumerState::ConsumerState(const ConsumerSettings& settings, std::uint64_t next)
    : unacked_max_(settings.unacked_max),
      tries_max_(settings.tries_max),
      ack_wait_(settings.ack_wait),
      retry_waits_(settings.retry_waits),
      next_(next) {}

void ConsumerState::set_settings(const ConsumerSettings& settings) {
  unacked_max_ = settings.unacked_max;
  tries_max_ = settings.tries_max;
  ack_wait_ = settings.ack_wait;
  retry_waits_ = settings.retry_waits;
}

void ConsumerState::skip_to(std::uint64_t next) noexcept { next_ = std::max(next_, next); }

void ConsumerState::deliver_new(std::uint64_t sequence, Instant now) {
  WEFT_ASSERT(may_take_new() && sequence >= next_);
  const Instant deadline = deadline_after(now, ack_wait_);
  waiting_.emplace_hint(waiting_.end(), sequence, Waiting{1, deadline});
  deadlines_.emplace(deadline, sequence);
  next_ = sequence + 1;
}

std::optional<ConsumerState::Due> ConsumerState::due(Instant now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) {
    return std::nullopt;
  }
  const std::uint64_t sequence = deadlines_.begin()->second;
  return Due{sequence, waiting_.at(sequence).tries};
}

void ConsumerState::deliver_again(std::uint64_t sequence, Instant now) {
  const auto at = waiting_.find(sequence);
  WEFT_ASSERT(at != waiting_.end());
  if (at->second.tries < std::numeric_limits<std::uint32_t>::max()) {
    ++at->second.tries;
  }
  set_deadline(at, deadline_after(now, ack_wait_));
}

void ConsumerState::postpone(std::uint64_t sequence, Instant until) {
  if (const auto at = waiting_.find(sequence); at != waiting_.end()) {
    set_deadline(at, until);
  }
}

Instant ConsumerState::next_due() const noexcept { return deadlines_.empty() ? kNever : deadlines_.begin()->first; }

bool ConsumerState::ack(std::uint64_t sequence) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end()) {
    return false;
  }
  erase(at);
  return true;
}

bool ConsumerState::nak(std::uint64_t sequence, Duration delay, Instant now) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end()) {
    return false;
  }
  const Duration wait = delay < Duration::zero() ? retry_wait(at->second.tries) : delay;
  set_deadline(at, deadline_after(now, wait));
  return true;
}

bool ConsumerState::work(std::uint64_t sequence, Instant now) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end()) {
    return false;
  }
  set_deadline(at, deadline_after(now, ack_wait_));
  return true;
}

std::size_t ConsumerState::drop_before(std::uint64_t first) {
  std::size_t dropped = 0;
  while (!waiting_.empty() && waiting_.begin()->first < first) {
    erase(waiting_.begin());
    ++dropped;
  }
  skip_to(first);
  return dropped;
}

std::uint32_t ConsumerState::tries(std::uint64_t sequence) const {
  const auto at = waiting_.find(sequence);
  return at == waiting_.end() ? 0 : at->second.tries;
}

std::vector<std::uint8_t> ConsumerState::write_waiting() const {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(3 * waiting_.size());
  std::uint64_t before = 0;
  for (const auto& [sequence, waiting] : waiting_) {
    write_varint(bytes, sequence - before);
    write_varint(bytes, waiting.tries);
    before = sequence;
  }
  return bytes;
}

Result<void> ConsumerState::read_waiting(Bytes bytes, Instant now) {
  WEFT_ASSERT(waiting_.empty());
  std::uint64_t sequence = 0;
  const Instant deadline = deadline_after(now, ack_wait_);
  while (!bytes.empty()) {
    std::uint64_t distance = 0;
    std::uint64_t tries = 0;
    const bool read = read_varint(bytes, distance) && read_varint(bytes, tries);
    if (!read || distance == 0 || distance > next_ - sequence || sequence + distance >= next_ ||
        tries > std::numeric_limits<std::uint32_t>::max() || waiting_.size() == ConsumerSettings::kUnackedMax) {
      waiting_.clear();
      deadlines_.clear();
      return Error(Errc::corrupt, "the state of a consumer has no valid form");
    }
    sequence += distance;
    waiting_.emplace_hint(waiting_.end(), sequence, Waiting{static_cast<std::uint32_t>(tries), deadline});
    deadlines_.emplace(deadline, sequence);
  }
  return {};
}

Duration ConsumerState::retry_wait(std::uint32_t tries) const noexcept {
  if (retry_waits_.empty()) {
    return Duration::zero();
  }
  const std::size_t index = tries == 0 ? 0 : tries - 1;
  return retry_waits_[std::min(index, retry_waits_.size() - 1)];
}

void ConsumerState::set_deadline(Table::iterator at, Instant deadline) {
  deadlines_.erase({at->second.deadline, at->first});
  at->second.deadline = deadline;
  deadlines_.emplace(deadline, at->first);
}

void ConsumerState::erase(Table::iterator at) {
  deadlines_.erase({at->second.deadline, at->first});
  waiting_.erase(at);
}

}  // namespace weft::store
