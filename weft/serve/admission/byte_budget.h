// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "weft/sync/atomic.h"
#include "weft/sync/counter.h"

namespace weft::serve {

// MemoryOwner: the use of bytes of a budget, for a page of metrics.
enum class MemoryOwner : std::uint8_t {
  bodies,      // heads and bodies of HTTP, and messages of WebSockets, that wait for their rest or for their reader
  queues,      // frames that wait to be written
  shared,      // frames of several sessions that wait to be written, once for each frame
  received,    // half-received frames
  handlers,    // frames that running coroutines keep
  handshakes,  // of TLS
};
inline constexpr std::size_t kMemoryOwners = 6;

// ByteBudget: how much memory all sessions of a server may hold together, on all cores.
// Owner: the server; the budget outlives its shares. Affinity: any thread.
// Cost: a share takes kStep more than it lacks, so that a core touches the shared count once for many blocks.
// Invariants:
//   1. The sum of the grants of all shares never grows beyond the limit.
//   2. A share holds at most its grant, and its grant never exceeds the share's own limit.
//   3. A share keeps at most two steps that it does not hold.
class ByteBudget {
 public:
  static constexpr std::size_t kStep = 256 * 1024;

  explicit ByteBudget(std::size_t limit) noexcept : limit_(limit) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  [[nodiscard]] std::size_t granted() const noexcept { return granted_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
  // A limit below the grants refuses until bytes have been given back.
  void set_limit(std::size_t limit) noexcept { limit_.store(limit, std::memory_order_relaxed); }

  // Share: one core's part of the budget, within a limit of its own. Affinity: that core.
  class Share {
   public:
    // `by_owner`: kMemoryOwners gauges of the bytes held, which that core writes; null: no page shows them.
    Share(ByteBudget& budget, std::size_t limit, sync::Counter* by_owner = nullptr) noexcept
        : budget_(budget), limit_(limit), by_owner_(by_owner) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { budget_.give_back(granted_); }

    // Returns false, and changes nothing, if the bytes would exceed one of the limits.
    [[nodiscard]] bool take(std::size_t bytes, MemoryOwner owner = MemoryOwner::bodies) noexcept {
      if (bytes > granted_ - held_ && !grow(bytes)) [[unlikely]] {
        return false;
      }
      held_ += bytes;
      if (by_owner_ != nullptr) [[likely]] {
        by_owner_[static_cast<std::size_t>(owner)].add(bytes);
      }
      return true;
    }
    void give_back(std::size_t bytes, MemoryOwner owner = MemoryOwner::bodies) noexcept {
      held_ -= bytes;
      if (by_owner_ != nullptr) [[likely]] {
        by_owner_[static_cast<std::size_t>(owner)].subtract(bytes);
      }
      if (granted_ - held_ > 2 * kStep) [[unlikely]] {
        const std::size_t surplus = granted_ - held_ - kStep;
        granted_ -= surplus;
        budget_.give_back(surplus);
      }
    }
    [[nodiscard]] std::size_t held() const noexcept { return held_; }

   private:
    [[gnu::noinline]] bool grow(std::size_t bytes) noexcept {
      if (bytes > limit_ || held_ > limit_ - bytes) {
        return false;
      }
      const std::size_t lacking = bytes - (granted_ - held_);
      for (const std::size_t more : {std::min(lacking + kStep, limit_ - granted_), lacking}) {
        if (budget_.take(more)) {
          granted_ += more;
          return true;
        }
      }
      return false;
    }

    ByteBudget& budget_;
    std::size_t limit_;
    sync::Counter* by_owner_;
    std::size_t granted_ = 0;
    std::size_t held_ = 0;
  };

 private:
  // Relaxed throughout, without a partner: the count guards no other memory.
  bool take(std::size_t bytes) noexcept {
    std::size_t granted = granted_.load(std::memory_order_relaxed);
    const std::size_t limit = this->limit();
    do {
      if (bytes > limit || granted > limit - bytes) {
        return false;
      }
    } while (!granted_.compare_exchange_weak(granted, granted + bytes, std::memory_order_relaxed,
                                             std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) noexcept { granted_.fetch_sub(bytes, std::memory_order_relaxed); }

  sync::Atomic<std::size_t> limit_;
  sync::Atomic<std::size_t> granted_{0};
};

}  // namespace weft::serve
