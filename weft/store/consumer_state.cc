// SPDX-License-Identifier: MIT
#include "weft/store/consumer_state.h"

#include <algorithm>
#include <limits>

#include "weft/base/assert.h"
#include "weft/store/rows.h"

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

void ConsumerState::deliver_new(std::uint64_t sequence, Instant now, Holder holder) {
  WEFT_ASSERT(may_take_new() && sequence >= next_);
  const auto at = waiting_.emplace_hint(waiting_.end(), sequence, Waiting{0, false, kNever});
  ++untried_;
  next_ = sequence + 1;
  deliver(at, now, holder);
}

std::optional<ConsumerState::Due> ConsumerState::due(Instant now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) {
    return std::nullopt;
  }
  const std::uint64_t sequence = deadlines_.begin()->second;
  return Due{sequence, waiting_.at(sequence).tries};
}

void ConsumerState::deliver_again(std::uint64_t sequence, Instant now, Holder holder) {
  const auto at = waiting_.find(sequence);
  WEFT_ASSERT(at != waiting_.end());
  deliver(at, now, holder);
}

void ConsumerState::deliver(Table::iterator at, Instant now, Holder holder) {
  set_holder(at, holder, holder != kNoHolder);
  if (holder != kNoHolder) {
    set_deadline(at, kNever);
    return;
  }
  count_try(at->second);
  set_deadline(at, deadline_after(now, ack_wait_));
}

bool ConsumerState::begin(std::uint64_t sequence, Holder holder, Instant now) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end() || at->second.holder != holder || holder == kNoHolder) {
    return false;
  }
  if (at->second.queued) {
    count_try(at->second);
  }
  set_holder(at, holder, false);
  set_deadline(at, deadline_after(now, ack_wait_));
  return true;
}

bool ConsumerState::give_back(std::uint64_t sequence, Holder holder, Instant now) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end() || at->second.holder != holder || holder == kNoHolder) {
    return false;
  }
  if (!at->second.queued && at->second.tries != 0) {
    untried_ += --at->second.tries == 0 ? 1 : 0;
  }
  set_holder(at, kNoHolder, false);
  set_deadline(at, now);
  return true;
}

std::size_t ConsumerState::give_back_queue(Holder holder, Instant now) {
  std::size_t left = queued(holder);
  const std::size_t all = left;
  for (auto at = waiting_.begin(); left != 0 && at != waiting_.end(); ++at) {
    if (at->second.queued && at->second.holder == holder) {
      (void)give_back(at->first, holder, now);
      --left;
    }
  }
  return all;
}

std::size_t ConsumerState::queued(Holder holder) const noexcept {
  const auto found = held_.find(holder);
  return found == held_.end() ? 0 : found->second.queued;
}

std::size_t ConsumerState::load(Holder holder) const noexcept {
  const auto found = held_.find(holder);
  return found == held_.end() ? 0 : found->second.all;
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
  ++acknowledged_;
  return true;
}

bool ConsumerState::done_with(std::uint64_t first, std::uint64_t last) const {
  const auto at = waiting_.lower_bound(first);
  return last < next_ && (at == waiting_.end() || at->first > last);
}

bool ConsumerState::nak(std::uint64_t sequence, Duration delay, Instant now) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end() || at->second.queued) {
    return false;
  }
  set_holder(at, kNoHolder, false);
  const Duration wait = delay < Duration::zero() ? retry_wait(at->second.tries) : delay;
  set_deadline(at, deadline_after(now, wait));
  return true;
}

bool ConsumerState::work(std::uint64_t sequence, Instant now) {
  const auto at = waiting_.find(sequence);
  if (at == waiting_.end() || at->second.queued) {
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
  const auto write = [&](bool queued) {
    std::uint64_t before = 0;
    for (const auto& [sequence, waiting] : waiting_) {
      if (waiting.queued == queued) {
        write_varint(bytes, sequence - before);
        write_varint(bytes, waiting.tries);
        before = sequence;
      }
    }
  };
  write(false);
  if (std::any_of(held_.begin(), held_.end(), [](const auto& each) { return each.second.queued != 0; })) {
    write_varint(bytes, 0);
    write(true);
  }
  return bytes;
}

Result<void> ConsumerState::read_waiting(Bytes bytes, Instant now) {
  WEFT_ASSERT(waiting_.empty());
  if (!read_part(bytes, deadline_after(now, ack_wait_)) || !read_part(bytes, now) || !bytes.empty()) {
    waiting_.clear();
    deadlines_.clear();
    untried_ = 0;
    return Error(Errc::corrupt, "the state of a consumer has no valid form");
  }
  return {};
}

// Up to the end, or to a distance of 0, which it takes.
bool ConsumerState::read_part(Bytes& bytes, Instant deadline) {
  std::uint64_t sequence = 0;
  while (!bytes.empty()) {
    std::uint64_t distance = 0;
    std::uint64_t tries = 0;
    if (!read_varint(bytes, distance)) {
      return false;
    }
    if (distance == 0) {
      return true;
    }
    if (!read_varint(bytes, tries) || distance > next_ - sequence || sequence + distance >= next_ ||
        tries > std::numeric_limits<std::uint32_t>::max() || waiting_.size() == ConsumerSettings::kUnackedMax) {
      return false;
    }
    sequence += distance;
    if (!waiting_.emplace(sequence, Waiting{static_cast<std::uint32_t>(tries), false, deadline}).second) {
      return false;
    }
    deadlines_.emplace(deadline, sequence);
    untried_ += tries == 0 ? 1 : 0;
  }
  return true;
}

Duration ConsumerState::retry_wait(std::uint32_t tries) const noexcept {
  if (retry_waits_.empty()) {
    return Duration::zero();
  }
  const std::size_t index = tries == 0 ? 0 : tries - 1;
  return retry_waits_[std::min(index, retry_waits_.size() - 1)];
}

void ConsumerState::count_try(Waiting& waiting) noexcept {
  untried_ -= waiting.tries == 0 ? 1 : 0;
  waiting.tries += waiting.tries < std::numeric_limits<std::uint32_t>::max() ? 1 : 0;
}

void ConsumerState::set_deadline(Table::iterator at, Instant deadline) {
  deadlines_.erase({at->second.deadline, at->first});
  at->second.deadline = deadline;
  if (deadline != kNever) {
    deadlines_.emplace(deadline, at->first);
  }
}

void ConsumerState::set_holder(Table::iterator at, Holder holder, bool queued) {
  Waiting& waiting = at->second;
  if (const auto before = held_.find(waiting.holder); before != held_.end()) {
    before->second.queued -= waiting.queued ? 1 : 0;
    if (--before->second.all == 0 && waiting.holder != holder) {
      held_.erase(before);
    }
  }
  waiting.holder = holder;
  waiting.queued = queued;
  if (holder != kNoHolder) {
    Held& held = held_[holder];
    ++held.all;
    held.queued += queued ? 1 : 0;
  }
}

void ConsumerState::erase(Table::iterator at) {
  set_holder(at, kNoHolder, false);
  untried_ -= at->second.tries == 0 ? 1 : 0;
  deadlines_.erase({at->second.deadline, at->first});
  waiting_.erase(at);
}

}  // namespace weft::store
