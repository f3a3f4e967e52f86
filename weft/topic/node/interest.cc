// SPDX-License-Identifier: MIT
#include "weft/topic/node/interest.h"

#include <algorithm>
#include <new>
#include <utility>

namespace weft::topic {

Result<bool> Interest::add(SubscriptionCore& subscription, IntrusivePtr<const OwnFilter> filter) {
  constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a filter");
  const std::lock_guard lock(mutex_);
  if (size_ >= kFiltersMax) {
    return Error(Errc::resource_exhausted, "the handle has 2^20 filters");
  }
  const Filter wire = filter->wire;
  try {
    if (!subscription.filters.emplace(wire, filter).second) {
      return false;
    }
    if (wire.kind() == FilterKind::exact) {
      exact_[std::string(wire.text())].push_back({&subscription, std::move(filter)});
    } else {
      others_.push_back({&subscription, std::move(filter)});
    }
  } catch (const std::bad_alloc&) {
    subscription.filters.erase(wire);
    return kNoMemory;
  }
  ++size_;
  changed();
  return true;
}

void Interest::take_out(SubscriptionCore& subscription, const Filter& filter) noexcept {
  const auto same = [&](const Entry& entry) {
    return entry.subscription == &subscription && entry.filter->wire == filter;
  };
  --size_;
  if (filter.kind() != FilterKind::exact) {
    std::erase_if(others_, same);
    return;
  }
  const auto found = exact_.find(filter.text());
  if (found != exact_.end() && (std::erase_if(found->second, same), found->second.empty())) {
    exact_.erase(found);
  }
}

bool Interest::remove(SubscriptionCore& subscription, const Filter& filter) noexcept {
  const std::lock_guard lock(mutex_);
  if (subscription.filters.erase(filter) == 0) {
    return false;
  }
  take_out(subscription, filter);
  changed();
  return true;
}

std::vector<Filter> Interest::remove_all(SubscriptionCore& subscription) {
  const std::lock_guard lock(mutex_);
  std::vector<Filter> had;
  had.reserve(subscription.filters.size());
  for (const auto& [filter, own] : subscription.filters) {
    take_out(subscription, filter);
    had.push_back(filter);
  }
  subscription.filters.clear();
  changed();
  return had;
}

void Interest::find(std::string_view topic, MatchMemo& memo) {
  memo.generation = 0;
  memo.matches.clear();
  const std::lock_guard lock(mutex_);
  const std::uint64_t mark = ++marks_;
  const auto take = [&](const Entry& entry) {
    if (std::exchange(entry.subscription->mark, mark) != mark) {
      entry.subscription->add_reference();
      memo.matches.push_back({IntrusivePtr<SubscriptionCore>::adopt(entry.subscription), entry.filter});
    }
  };
  if (const auto found = exact_.find(topic); found != exact_.end()) {
    std::for_each(found->second.begin(), found->second.end(), take);
  }
  for (const Entry& entry : others_) {
    if (entry.filter->wire.matches(topic)) {
      take(entry);
    }
  }
  memo.topic = topic;
  // Relaxed: the lock orders it behind every change that the walk saw.
  memo.generation = generation_.load(std::memory_order_relaxed);
}

std::uint64_t Interest::count(std::string_view topic) {
  MatchMemo memo;
  find(topic, memo);
  return memo.matches.size();
}

std::uint64_t Interest::patterns() noexcept {
  const std::lock_guard lock(mutex_);
  return others_.size();
}

}  // namespace weft::topic
