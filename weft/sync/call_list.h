// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/sync/atomic.h"

namespace weft::sync {

// CallList: the entries that one thread shall call. Any thread adds an entry, which is in the list at most
// once. One thread takes all of them out.
// Owner: the object that constructs it. That object takes out the remaining entries before it destroys the
// list. Entries belong to their owners and outlive their place in the list; the value that goes with an
// entry, for instance a reference to its owner, ensures that.
// Affinity: add() and empty() any thread, take_all() one. Cost: no allocation; an exchange, and a
// compare-exchange for an entry that is not in the list yet.
// Invariant: the visit that follows add() sees every write before add(), whether or not the entry was in the
// list.
template <typename Value>
class CallList {
 public:
  class Entry {
   public:
    Entry() noexcept = default;
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    friend class CallList;
    Atomic<bool> listed_{false};
    Plain<Entry*> next_ = nullptr;
    Plain<Value> value_{};
  };

  // Returns false if the entry is in the list already, and `value` is dropped.
  bool add(Entry& entry, Value value) noexcept {
    // acq_rel: publishes the caller's writes to the visit, even if the entry is in the list already. After
    // the exchange in take_all() the entry belongs to its adder again.
    if (entry.listed_.exchange(true, std::memory_order_acq_rel)) {
      return false;
    }
    entry.value_ = std::move(value);
    Entry* top = top_.load(std::memory_order_relaxed);
    do {
      entry.next_ = top;
      // Release pairs with the acquire in take_all(), for the entry's members.
    } while (!top_.compare_exchange_weak(top, &entry, std::memory_order_release, std::memory_order_relaxed));
    return true;
  }

  // Relaxed: a hint. A thread that must not miss an entry needs a fence, and so does the adder.
  [[nodiscard]] bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

  // Calls visit(value) for every entry, in the order of their adds. From that call on the entry may be added again. One
  // thread.
  template <typename Visit>
  void take_all(Visit visit) {
    if (empty()) {
      return;
    }
    Entry* entry = nullptr;
    for (Entry* last = top_.exchange(nullptr, std::memory_order_acquire); last != nullptr;) {
      Entry* const before = last->next_;
      last->next_ = entry;
      entry = std::exchange(last, before);
    }
    while (entry != nullptr) {
      Entry* const next = entry->next_;
      Value value = std::exchange(entry->value_, Value{});
      // Before the visit, so that a later write adds the entry again. acq_rel: pairs with the exchange in
      // add().
      (void)entry->listed_.exchange(false, std::memory_order_acq_rel);
      visit(std::move(value));
      entry = next;
    }
  }

 private:
  Atomic<Entry*> top_{nullptr};
};

}  // namespace weft::sync
