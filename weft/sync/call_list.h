// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#include "weft/sync/atomic.h"

namespace weft::sync {

// CallList: who wants to be called by one thread: any thread puts an entry in, once however often it is asked, and one
// thread takes all of them out.
// Owner: whoever constructs it; it takes what is left before it destroys it. Entries are their owners' and outlive
// their place in the list: the value that goes with an entry, a reference to its owner for instance, sees to that.
// Affinity: add() and empty() any thread, take_all() one. Cost: no allocation; an exchange, and a compare-exchange for
// an entry that is not there yet.
// Invariant: what was written before add() is seen by the visit that follows, whether or not the entry was in the list.
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

  // False: it is there already, and `value` is dropped.
  bool add(Entry& entry, Value value) noexcept {
    // acq_rel: publishes what the caller wrote to the visit, also when the entry is there; and the entry is its own
    // again after the exchange in take_all().
    if (entry.listed_.exchange(true, std::memory_order_acq_rel)) {
      return false;
    }
    entry.value_ = std::move(value);
    Entry* top = top_.load(std::memory_order_relaxed);
    do {
      entry.next_ = top;
      // Release pairs with the acquire in take_all(): the entry's members.
    } while (!top_.compare_exchange_weak(top, &entry, std::memory_order_release, std::memory_order_relaxed));
    return true;
  }

  // Relaxed: only a look. Who must not miss an entry needs a fence, as its adder does.
  [[nodiscard]] bool empty() const noexcept { return top_.load(std::memory_order_relaxed) == nullptr; }

  // Calls visit(value) for every entry, which may be added again from then on. One thread.
  template <typename Visit>
  void take_all(Visit visit) {
    if (empty()) {
      return;
    }
    for (Entry* entry = top_.exchange(nullptr, std::memory_order_acquire); entry != nullptr;) {
      Entry* const next = entry->next_;
      Value value = std::exchange(entry->value_, Value{});
      // Before the visit: what is written later adds the entry again. acq_rel: pairs with the exchange in add().
      (void)entry->listed_.exchange(false, std::memory_order_acq_rel);
      visit(std::move(value));
      entry = next;
    }
  }

 private:
  Atomic<Entry*> top_{nullptr};
};

}  // namespace weft::sync
