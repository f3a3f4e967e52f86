// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "weft/sync/atomic.h"
#include "weft/sync/spsc_ring.h"
#include "weft/sys/fence.h"

namespace weft::rt {

// What a lane orders with: the machine here, the model checker's in the model test.
struct SystemLane {
  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
};

// Lane: the mailbox from one sender to one core: a ring that is made at the first push, and a word by which the sender
// asks to be told when there is room again.
// Owner: the core that receives. Affinity: one sender, one receiver.
// Cost: as SpscRing; asking for room is a heavy fence, answering a load.
// Invariant: a sender that found no room after want_room() is told: room_was_wanted() is true behind the receiver's
// next pops.
template <typename T, typename System = SystemLane>
class Lane {
 public:
  using Ring = sync::SpscRing<T>;

  Lane() noexcept = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { delete ring_.load(std::memory_order_relaxed); }  // nobody uses it any more

  // --- sender ---

  // False: no memory.
  [[nodiscard]] bool open(std::size_t capacity) noexcept {
    auto made = Ring::make(capacity);
    if (!made) {
      return false;
    }
    auto* const ring = new (std::nothrow) Ring(std::move(*made));
    ring_.store(ring, std::memory_order_release);  // pairs with the acquire in incoming()
    return ring != nullptr;
  }
  [[nodiscard]] Ring* outgoing() noexcept { return ring_.load(std::memory_order_relaxed); }  // null: not open
  // Then look for room once more before waiting to be told.
  void want_room() noexcept {
    wanted_.store(true, std::memory_order_relaxed);
    System::heavy_fence();  // pairs with the light fence in room_was_wanted()
  }

  // --- receiver ---

  [[nodiscard]] Ring* incoming() noexcept { return ring_.load(std::memory_order_acquire); }
  // Behind pops. True, once: tell the sender.
  [[nodiscard]] bool room_was_wanted() noexcept {
    System::light_fence();  // pairs with the heavy fence in want_room()
    return wanted_.load(std::memory_order_relaxed) && wanted_.exchange(false, std::memory_order_relaxed);
  }

 private:
  sync::Atomic<Ring*> ring_{nullptr};
  sync::Atomic<bool> wanted_{false};
};

// LaneSender: the sending side of a lane that belongs to one core. Messages are made in the lane's cells, shown to the
// receiver in batches, and its bell is rung for them. A batch matters: the receiver that looks takes the line with the
// lane's index away from a sender that writes it for each message, and both wait for that line most of the time.
// Owner: the sender. Affinity: the sender's thread.
// Cost: a message is made in place, with a look at the bell; a release store shows the first of a task and every
// kBatch-th; the bell is rung (a read-modify-write) for the first of a turn, for every kBatch-th, and for each while
// its owner sleeps.
// Target: has a `doorbell()`, and `ring(bits)`, which says whether it had to be woken.
// Invariants:
//   (1) Behind show() the receiver can see every message, behind end_turn() its bell was rung for every message.
//   (2) What was claimed and not committed is forgotten.
template <typename Target, typename T, typename System = SystemLane>
class LaneSender {
 public:
  static constexpr std::uint32_t kBatch = 32;

  LaneSender() noexcept = default;
  LaneSender(Target& target, Lane<T, System>& lane, std::uint64_t bit, std::size_t capacity) noexcept
      : target_(&target), lane_(&lane), bit_(bit), capacity_(capacity) {}

  [[nodiscard]] Target* target() const noexcept { return target_; }

  // Raw storage for the next message; null: no room, or no memory for the lane. Make the message, then commit().
  [[nodiscard]] T* claim() noexcept {
    if (ring_ == nullptr && !open()) [[unlikely]] {
      return nullptr;
    }
    T* const cell = ring_->claim_one();
    if (cell == nullptr) [[unlikely]] {
      show();  // the receiver cannot make room of what it does not see
    }
    return cell;
  }
  // The message is in the lane. `task` names what the sender does now; 0: nobody calls show() behind it.
  // True: the target had to be woken.
  bool commit(std::uint64_t task) noexcept {
    ring_->append_one();
    unrung_ = true;
    const auto& bell = target_->doorbell();
    const bool due = posts_++ % kBatch == 0;
    const bool sleeper = bell.sleeper();
    hidden_ = true;
    if (due || sleeper || task == 0 || task != task_) {
      show();
    }
    task_ = task;
    return (sleeper || (due && !bell.shows(bit_))) && ring();
  }
  // To oneself: nobody is told.
  void commit_to_self() noexcept { ring_->commit(1); }

  // Whether there are messages that the receiver cannot see.
  [[nodiscard]] bool hides() const noexcept { return hidden_; }
  void show() noexcept {
    if (hidden_) {
      hidden_ = false;
      ring_->show_appended();
    }
  }
  // True: the target had to be woken.
  bool end_turn() noexcept {
    posts_ = 0;
    return unrung_ && ring();
  }

  // After a claim() that found none. True: there is room now. Otherwise the receiver will tell; but not when the lane
  // could not be opened.
  [[nodiscard]] bool is_open() const noexcept { return ring_ != nullptr; }
  [[nodiscard]] bool wait_for_room() noexcept {
    lane_->want_room();
    return ring_ != nullptr && ring_->has_room();
  }

 private:
  [[nodiscard]] bool open() noexcept {
    if (lane_->open(capacity_)) {
      ring_ = lane_->outgoing();
    }
    return ring_ != nullptr;
  }
  // What these looks at the bell miss, end_turn() makes good.
  bool ring() noexcept {
    show();
    unrung_ = false;
    return target_->ring(bit_);
  }

  typename Lane<T, System>::Ring* ring_ = nullptr;
  Target* target_ = nullptr;
  Lane<T, System>* lane_ = nullptr;
  std::uint64_t bit_ = 0;
  std::size_t capacity_ = 0;
  std::uint64_t task_ = 0;   // of the last message
  std::uint32_t posts_ = 0;  // in this turn
  bool hidden_ = false;      // something was appended since the last show()
  bool unrung_ = false;      // something was committed since the bell was rung
};

}  // namespace weft::rt
