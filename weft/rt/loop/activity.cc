// SPDX-License-Identifier: MIT
#include "weft/rt/loop/activity.h"

namespace weft::rt {

std::optional<Activity::Busy> Activity::busy_since(Instant before) const noexcept {
  const Instant since = since_.load(std::memory_order_acquire);  // before the others; pairs with no release: a hint
  if (since == Instant() || since > before) {
    return std::nullopt;
  }
  const Doing now = doing();
  const std::uint64_t detail = detail_.load(std::memory_order_relaxed);
  Busy busy{since, now.name, now.subject};
  if ((detail & kSet) != 0) {
    busy.detail = static_cast<std::uint32_t>(detail);
  }
  return busy;
}

void Activity::add_bell(Bell& bell) {
  const sync::LockGuard lock(bells_mutex_);
  bells_.push_back(&bell);
}

void Activity::remove_bell(Bell& bell) noexcept {
  const sync::LockGuard lock(bells_mutex_);
  std::erase(bells_, &bell);
}

void Activity::ring() noexcept {
  armed_.store(false, std::memory_order_relaxed);
  const sync::LockGuard lock(bells_mutex_);
  for (Bell* bell : bells_) {
    bell->ring();
  }
}

void Activity::note_stall(const Busy& busy) noexcept {
  if (stall_noted_.exchange(busy.since, std::memory_order_relaxed) != busy.since) {
    stalls_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::string Activity::Busy::text() const {
  if (name == nullptr) {
    return "a job, message or timer";
  }
  std::string text(name->owner);
  text.append(" ").append(name->call);
  if (detail) {
    text += " (frame " + std::to_string(*detail) + ")";
  }
  return text;
}

}  // namespace weft::rt
