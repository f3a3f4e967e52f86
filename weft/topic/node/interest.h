// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/filter.h"
#include "weft/base/result.h"
#include "weft/msg/interest/filter_index.h"
#include "weft/msg/interest/prefix_table.h"
#include "weft/sync/lock.h"
#include "weft/topic/node/subscription_core.h"

namespace weft::topic {

// Match: a subscription to a topic, and its filter.
struct Match {
  IntrusivePtr<SubscriptionCore> subscription;
  IntrusivePtr<const OwnFilter> filter;
};

// MatchMemo: the last matches of a topic. Owner: a publisher, or the pump. Affinity: its owner's.
struct MatchMemo {
  std::uint64_t generation = 0;  // 0: none
  std::string topic;
  std::vector<Match> matches;
};

// The handles' own topics, before the instance of a handle.
inline constexpr std::string_view kInboxes = "_INBOX.";
inline constexpr std::string_view kRequests = "_REQ.";

// InterestTable: the subscriptions of one handle, by topic.
// Owner: the node. Affinity: any thread.
// Cost: a valid memo costs one load and one comparison. Otherwise a lock, a hash probe for the exact filters, a walk
// through the topic for the prefixes, and FilterIndex' cost for tokens and globs: globs of the same literal head are
// tried one by one. add() and remove() take O(text), and a step for each subscription that has the same filter.
// Invariants:
//   1. A subscription is in a match once, however many of its filters match.
//   2. Each change makes a new generation, after the change: a memo of that generation includes it.
class InterestTable {
 public:
  // A handle's filters, over all subscriptions: at most as many as a peer takes over one connection.
  static constexpr std::size_t kFiltersMax = 262'144;

  // Returns true if the filter is new to the subscription. Errors: resource_exhausted (kFiltersMax, or no memory).
  Result<bool> add(SubscriptionCore& subscription, IntrusivePtr<const OwnFilter> filter);
  // Returns false if the subscription does not have it.
  bool remove(SubscriptionCore& subscription, const Filter& filter) noexcept;
  // Removes the subscription, and returns its filters.
  std::map<Filter, IntrusivePtr<const OwnFilter>> remove_all(SubscriptionCore& subscription) noexcept;

  // Whether the subscription has a filter that widens to this one.
  [[nodiscard]] bool has_widened(const SubscriptionCore& subscription, const Filter& widened) noexcept;

  // Fills the memo, unless it is valid for this topic. Throws std::bad_alloc.
  void match(std::string_view topic, MatchMemo& memo) {
    if (memo.generation != generation_.load(std::memory_order_acquire) || memo.topic != topic) [[unlikely]] {
      find(topic, memo);
    }
  }
  // The same for a memo that is used for this topic only.
  void match_only(std::string_view topic, MatchMemo& memo) {
    if (memo.generation != generation_.load(std::memory_order_acquire)) [[unlikely]] {
      find(topic, memo);
    }
  }
  [[nodiscard]] std::uint64_t count(std::string_view topic);  // the number of subscriptions to it
  [[nodiscard]] std::uint64_t patterns() noexcept;            // the number of filters that are not exact

 private:
  struct Entry {
    SubscriptionCore* subscription;
    IntrusivePtr<const OwnFilter> filter;
  };
  // Wanted: a filter that is not exact, and the subscriptions that have it. The index has its address.
  struct Wanted : msg::FilterIndex::Peer {
    std::vector<Entry> entries;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
    std::size_t operator()(const FilterView& filter) const noexcept {
      return std::hash<std::string_view>()(filter.text) + static_cast<std::size_t>(filter.kind);
    }
  };
  struct Same {
    using is_transparent = void;
    bool operator()(const FilterView& a, const FilterView& b) const noexcept { return a == b; }
  };
  void find(std::string_view topic, MatchMemo& memo);
  void changed() noexcept { generation_.fetch_add(1, std::memory_order_release); }  // pairs with match()
  // throws std::bad_alloc
  void put_in(SubscriptionCore& subscription, IntrusivePtr<const OwnFilter> filter) WEFT_REQUIRES(mutex_);
  void take_out(SubscriptionCore& subscription, const Filter& filter) noexcept WEFT_REQUIRES(mutex_);

  sync::StdMutex mutex_;
  std::atomic<std::uint64_t> generation_{1};
  std::unordered_map<std::string, std::vector<Entry>, Hash, std::equal_to<>> exact_ WEFT_GUARDED_BY(mutex_);
  std::unordered_map<Filter, Wanted, Hash, Same> others_ WEFT_GUARDED_BY(mutex_);
  msg::FilterIndex index_ WEFT_GUARDED_BY(mutex_);              // tokens and globs of others_
  msg::PrefixTable<Wanted*> prefixes_ WEFT_GUARDED_BY(mutex_);  // prefixes of others_
  std::size_t size_ WEFT_GUARDED_BY(mutex_) = 0;
  std::size_t patterns_ WEFT_GUARDED_BY(mutex_) = 0;
  std::uint64_t marks_ WEFT_GUARDED_BY(mutex_) = 0;
};

}  // namespace weft::topic
