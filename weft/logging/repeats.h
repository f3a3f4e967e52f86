// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "weft/base/random.h"

namespace weft::logging {

// Repeats: counts the lines of each event in each second, and suppresses those beyond a bound. An event is a literal of
// one component: the pointers are the key.
// Owner: a value. Affinity: one thread at a time. Cost: a probe or two of a table of 2 KiB; no allocation.
// Invariant: a suppressed line is counted until take() has returned its count, once.
class Repeats {
 public:
  static constexpr std::size_t kEvents = 64;  // the lines of further events share one count

  struct Entry {
    const void* component = nullptr;
    const char* event = nullptr;  // null: the one that is shared
    std::int64_t second = -1;
    std::uint32_t lines = 0;       // of this second
    std::uint32_t suppressed = 0;  // since take(); saturates
  };

  // Whether the line may be written. `most`: lines of one event in one second; 0: no bound.
  [[nodiscard]] bool admit(const void* component, const char* event, std::int64_t second, std::uint32_t most) noexcept {
    if (most == 0) {
      return true;
    }
    Entry& entry = find(component, event);
    if (entry.second != second) {
      entry.second = second;
      entry.lines = 0;
    }
    if (entry.lines < most) {
      ++entry.lines;
      return true;
    }
    if (entry.suppressed != ~std::uint32_t{0}) {
      ++entry.suppressed;
    }
    waiting_ = true;
    return false;
  }

  // Whether take() may have something to return.
  [[nodiscard]] bool waiting() const noexcept { return waiting_; }
  // Calls use(entry) for each event with suppressed lines, except those that this second suppressed. `all`: those, too.
  template <typename Use>
  void take(std::int64_t second, bool all, const Use& use) {
    bool left = false;
    for (Entry& entry : entries_) {
      if (entry.suppressed == 0) {
        continue;
      }
      if (!all && entry.second == second) {
        left = true;
        continue;
      }
      use(static_cast<const Entry&>(entry));
      entry.suppressed = 0;
    }
    waiting_ = left;
  }

 private:
  Entry& find(const void* component, const char* event) noexcept {
    const std::uint64_t hash =
        mix_bits(reinterpret_cast<std::uintptr_t>(event) ^ (reinterpret_cast<std::uintptr_t>(component) << 1));
    for (std::size_t i = 0; i < kEvents; ++i) {
      Entry& entry = entries_[(hash + i) % kEvents];
      if (entry.event == event && entry.component == component) {
        return entry;
      }
      if (entry.event == nullptr) {
        if (used_ == kEvents) {
          break;
        }
        ++used_;
        entry.component = component;
        entry.event = event;
        return entry;
      }
    }
    return entries_[kEvents];
  }

  std::array<Entry, kEvents + 1> entries_{};  // the last one is shared
  std::size_t used_ = 0;
  bool waiting_ = false;
};

}  // namespace weft::logging
