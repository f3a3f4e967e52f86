// SPDX-License-Identifier: MIT
#include "weft/rt/loop/interval_timers.h"

#include <algorithm>
#include <climits>
#include <new>

namespace weft::rt {

namespace {

constexpr Error kNoSuchTimer(Errc::invalid_argument, "no timer has this id");

}  // namespace

// Not inline: GCC does not see that either this call or the timers end first.
[[gnu::noinline]] IntervalTimers::Run::Run(IntervalTimers& of) noexcept : timers(of) { timers.run_ = this; }

int IntervalTimers::add(Instant now, Duration interval, Callback callback, void* argument) {
  if (callback == nullptr) {
    return 0;
  }
  do {
    last_id_ = last_id_ == INT_MAX ? 1 : last_id_ + 1;
  } while (timers_.contains(last_id_));
  const Timer timer = {deadline_after(now, interval), next_order_++, interval, callback, argument};
  const auto entry = queue_.emplace(timer.due, timer.order, last_id_).first;
  try {
    timers_.emplace(last_id_, timer);
  } catch (const std::bad_alloc&) {
    queue_.erase(entry);
    throw;
  }
  return last_id_;
}

void IntervalTimers::arm(int id, Timer& timer, Instant now) noexcept {
  auto entry = queue_.extract(Entry(timer.due, timer.order, id));  // the node moves: nothing is allocated
  timer.due = deadline_after(now, timer.interval);
  timer.order = next_order_++;
  entry.value() = Entry(timer.due, timer.order, id);
  queue_.insert(std::move(entry));
}

Result<void> IntervalTimers::cancel(int id) noexcept {
  const auto found = timers_.find(id);
  if (found == timers_.end()) {
    return kNoSuchTimer;
  }
  queue_.erase(Entry(found->second.due, found->second.order, id));
  timers_.erase(found);
  return {};
}

Result<void> IntervalTimers::set_interval(Instant now, int id, Duration interval) noexcept {
  const auto found = timers_.find(id);
  if (found == timers_.end()) {
    return kNoSuchTimer;
  }
  found->second.interval = interval;
  arm(id, found->second, now);
  return {};
}

Result<void> IntervalTimers::reset(Instant now, int id) noexcept {
  const auto found = timers_.find(id);
  if (found == timers_.end()) {
    return kNoSuchTimer;
  }
  arm(id, found->second, now);
  return {};
}

std::optional<Duration> IntervalTimers::until_next(Instant now) const noexcept {
  if (queue_.empty()) {
    return std::nullopt;
  }
  return std::max(Duration::zero(), std::get<Instant>(*queue_.begin()) - now);
}

void IntervalTimers::run(Instant now) {
  if (run_ != nullptr) {
    return;
  }
  const Run call(*this);
  const std::uint64_t first_of_next_run = next_order_;
  while (!call.gone && !queue_.empty()) {
    const auto [due, order, id] = *queue_.begin();
    if (due > now || due == kNever || order >= first_of_next_run) {
      break;
    }
    Timer& timer = timers_[id];
    const Callback callback = timer.callback;
    void* const argument = timer.argument;
    arm(id, timer, now);  // before the call, which may cancel it
    callback(id, argument);
  }
}

}  // namespace weft::rt
