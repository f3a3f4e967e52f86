// SPDX-License-Identifier: MIT
#include "weft/topic/hub/leases.h"

#include <algorithm>

namespace weft::topic {

Result<std::uint64_t> LeaseTable::take(std::string_view name, std::string_view holder, std::uint64_t epoch,
                                       Duration time, std::string_view data, Instant now) {
  if (name.empty() || name.size() > kNameMax) {
    return Error(Errc::invalid_argument, "the name of a lease: 1 to 255 bytes");
  }
  if (data.size() > kDataMax) {
    return Error(Errc::message_too_large, "the data of a lease: up to 4,096 bytes");
  }
  if (gone_.contains(holder)) {  // another connection with the name of an earlier one
    while (end_one_of(holder)) {
    }
    gone_.erase(gone_.find(holder));
  }
  const Instant until = time == Duration::zero() ? kNever : deadline_after(now, time);
  auto at = leases_.find(name);
  if (at != leases_.end() && has_ended(at->second, now)) {
    erase(at);
    at = leases_.end();
  }
  if (at != leases_.end()) {
    // A holder with a time may come back over another connection: its epoch proves that it is the one.
    if (at->second.holder != holder && (epoch == 0 || at->second.epoch != epoch)) {
      return Error(Errc::conflict, "another member holds the lease");
    }
    if (epoch != 0 && at->second.epoch != epoch) {
      return Error(Errc::conflict, "the lease has another epoch");
    }
    const bool changed = at->second.data != data;
    by_holder_.erase({at->second.holder, at->first});
    at->second.holder = holder;
    at->second.data = data;
    set_until(at, until);
    if (until == kNever) {
      by_holder_.emplace(at->second.holder, at->first);
    }
    if (changed && observer_) {
      observer_(at->first);
    }
    return at->second.epoch;
  }
  if (epoch == 0 && now < quiet_) {
    return Error(Errc::would_block, "the hub is new: holders of leases may still come back");
  }
  if (leases_.size() >= kLeasesMax) {
    expire(now);
  }
  if (leases_.size() >= kLeasesMax) {
    return Error(Errc::resource_exhausted, "a hub has 65,536 leases");
  }
  // A lease that was lost while the hub was away keeps its epoch: no other handle had it in between.
  const bool again = epoch != 0 && now < quiet_ && epoch < next_epoch_;
  const std::uint64_t given = again ? epoch : next_epoch_++;
  at = leases_.emplace(std::string(name), Lease{std::string(holder), given, kNever, std::string(data)}).first;
  set_until(at, until);
  if (until == kNever) {
    by_holder_.emplace(at->second.holder, at->first);
  }
  if (observer_) {
    observer_(at->first);
  }
  return given;
}

bool LeaseTable::release(std::string_view name, std::string_view holder) {
  const auto at = leases_.find(name);
  if (at == leases_.end() || at->second.holder != holder) {
    return false;
  }
  erase(at);
  return true;
}

void LeaseTable::drop_holder(std::string_view holder) {
  std::size_t left = kEndsPerCall;
  while (left != 0 && end_one_of(holder)) {
    --left;
  }
  if (left == 0) {
    gone_.emplace(holder);
  }
}

void LeaseTable::expire(Instant now) {
  std::size_t left = kEndsPerCall;
  for (; left != 0 && !by_time_.empty() && by_time_.begin()->first <= now; --left) {
    erase(leases_.find(by_time_.begin()->second));
  }
  for (; left != 0 && !gone_.empty(); --left) {
    if (!end_one_of(*gone_.begin())) {
      gone_.erase(gone_.begin());
    }
  }
}

bool LeaseTable::has_ended(const Lease& lease, Instant now) const {
  return lease.until <= now || (lease.until == kNever && gone_.contains(lease.holder));
}

bool LeaseTable::end_one_of(std::string_view holder) {
  const auto at = by_holder_.lower_bound({std::string(holder), std::string()});
  const bool found = at != by_holder_.end() && at->first == holder;
  if (found) {
    erase(leases_.find(at->second));
  }
  return found;
}

const Lease* LeaseTable::find(std::string_view name) const {
  const auto at = leases_.find(name);
  return at == leases_.end() ? nullptr : &at->second;
}

std::optional<std::string> LeaseTable::next_name(std::string_view prefix, std::string_view after, bool first) const {
  const auto at = first ? leases_.lower_bound(prefix) : leases_.upper_bound(after);
  if (at == leases_.end() || !at->first.starts_with(prefix)) {
    return std::nullopt;
  }
  return at->first;
}

void LeaseTable::erase(Table::iterator at) {
  const std::string name = at->first;
  by_time_.erase({at->second.until, name});
  by_holder_.erase({at->second.holder, name});
  leases_.erase(at);
  if (observer_) {
    observer_(name);
  }
}

void LeaseTable::set_until(Table::iterator at, Instant until) {
  by_time_.erase({at->second.until, at->first});
  at->second.until = until;
  if (until != kNever) {
    by_time_.emplace(until, at->first);
  }
}

}  // namespace weft::topic
