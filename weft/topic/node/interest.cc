// SPDX-License-Identifier: MIT
#include "weft/topic/node/interest.h"

#include <algorithm>
#include <new>
#include <utility>

namespace weft::topic {

Result<bool> InterestTable::add(SubscriptionCore& subscription, IntrusivePtr<const OwnFilter> filter) {
  constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for a filter");
  const sync::LockGuard lock(mutex_);
  if (size_ >= kFiltersMax) {
    return Error(Errc::resource_exhausted, "the handle has 262,144 filters");
  }
  const Filter wire = filter->wire;
  try {
    if (!subscription.filters.emplace(wire, filter).second) {
      return false;
    }
    put_in(subscription, std::move(filter));
  } catch (const std::bad_alloc&) {
    subscription.filters.erase(wire);
    return kNoMemory;
  }
  ++size_;
  patterns_ += wire.kind() == FilterKind::exact ? 0 : 1;
  changed();
  return true;
}

// After a throw nothing has changed.
void InterestTable::put_in(SubscriptionCore& subscription, IntrusivePtr<const OwnFilter> filter) {
  const Filter& wire = filter->wire;
  if (wire.kind() == FilterKind::exact) {
    const auto place = exact_.try_emplace(std::string(wire.text())).first;
    try {
      place->second.push_back({&subscription, std::move(filter)});
    } catch (const std::bad_alloc&) {
      if (place->second.empty()) {
        exact_.erase(place);
      }
      throw;
    }
    return;
  }
  const auto [place, is_new] = others_.try_emplace(wire);
  Wanted& wanted = place->second;
  try {
    wanted.entries.reserve(wanted.entries.size() + 1);
    if (is_new && wire.kind() != FilterKind::prefix && !index_.add(wanted, wire)) {
      throw std::bad_alloc();
    }
    if (is_new && wire.kind() == FilterKind::prefix) {
      bool is_first = false;
      Wanted** const of_prefix = prefixes_.insert(as_bytes(wire.text()), is_first);
      if (of_prefix == nullptr) {
        throw std::bad_alloc();
      }
      *of_prefix = &wanted;
    }
  } catch (const std::bad_alloc&) {
    if (is_new) {
      others_.erase(place);
    }
    throw;
  }
  wanted.entries.push_back({&subscription, std::move(filter)});
}

void InterestTable::take_out(SubscriptionCore& subscription, const Filter& filter) noexcept {
  const auto same = [&](const Entry& entry) { return entry.subscription == &subscription; };
  --size_;
  if (filter.kind() == FilterKind::exact) {
    const auto found = exact_.find(filter.text());
    if (found != exact_.end() && (std::erase_if(found->second, same), found->second.empty())) {
      exact_.erase(found);
    }
    return;
  }
  --patterns_;
  const auto found = others_.find(filter.view());
  if (found == others_.end() || (std::erase_if(found->second.entries, same), !found->second.entries.empty())) {
    return;
  }
  if (filter.kind() == FilterKind::prefix) {
    prefixes_.erase(as_bytes(filter.text()));
  } else {
    index_.remove(found->second, filter);
  }
  others_.erase(found);
}

bool InterestTable::remove(SubscriptionCore& subscription, const Filter& filter) noexcept {
  const sync::LockGuard lock(mutex_);
  if (subscription.filters.erase(filter) == 0) {
    return false;
  }
  take_out(subscription, filter);
  changed();
  return true;
}

std::map<Filter, IntrusivePtr<const OwnFilter>> InterestTable::remove_all(SubscriptionCore& subscription) noexcept {
  const sync::LockGuard lock(mutex_);
  auto had = std::exchange(subscription.filters, {});
  for (const auto& [filter, own] : had) {
    take_out(subscription, filter);
  }
  changed();
  return had;
}

bool InterestTable::has_widened(const SubscriptionCore& subscription, const Filter& widened) noexcept {
  const sync::LockGuard lock(mutex_);
  return std::any_of(subscription.filters.begin(), subscription.filters.end(),
                     [&](const auto& each) { return each.first.widen_to_tokens() == widened; });
}

void InterestTable::find(std::string_view topic, MatchMemo& memo) {
  memo.generation = 0;
  memo.matches.clear();
  const sync::LockGuard lock(mutex_);
  const std::uint64_t mark = ++marks_;
  // Requests and answers go under names that no program wrote: a filter such as ">" does not mean them.
  const bool internal = topic.starts_with(kInboxes) || topic.starts_with(kRequests);
  const auto take = [&](const Entry& entry) {
    if (internal && !entry.subscription->internal()) {
      return;
    }
    if (std::exchange(entry.subscription->mark, mark) != mark) {
      entry.subscription->add_reference();
      memo.matches.push_back({IntrusivePtr<SubscriptionCore>::adopt(entry.subscription), entry.filter});
    }
  };
  if (const auto found = exact_.find(topic); found != exact_.end()) {
    std::for_each(found->second.begin(), found->second.end(), take);
  }
  const auto take_all = [&](const Wanted& wanted) {
    std::for_each(wanted.entries.begin(), wanted.entries.end(), take);
    return true;
  };
  prefixes_.match(as_bytes(topic), [&](const Wanted* wanted) { return take_all(*wanted); });
  index_.match(topic, mark, [&](msg::FilterIndex::Peer& peer, bool decided) {
    peer.mark = mark;
    const auto& wanted = static_cast<const Wanted&>(peer);
    if (decided || wanted.entries.front().filter->wire.matches(topic)) {
      take_all(wanted);
    }
  });
  memo.topic = topic;
  // Relaxed: the lock orders it after every change that the walk saw.
  memo.generation = generation_.load(std::memory_order_relaxed);
}

std::uint64_t InterestTable::count(std::string_view topic) {
  MatchMemo memo;
  find(topic, memo);
  return memo.matches.size();
}

std::uint64_t InterestTable::patterns() noexcept {
  const sync::LockGuard lock(mutex_);
  return patterns_;
}

}  // namespace weft::topic
