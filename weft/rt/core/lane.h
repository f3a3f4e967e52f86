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

// SystemLane: the fences of a lane: the system's here, the model checker's in the model test.
struct SystemLane {
  static void light_fence() noexcept { sys::light_fence(); }
  static void heavy_fence() noexcept { sys::heavy_fence(); }
};

// Lane: the mailbox from one sender to one core: a ring that is made at the first push, and a word by which the sender
// asks the receiver to ring when there is room again.
// Owner: the core that receives.
// Affinity: one sender, one receiver.
// Cost: as SpscRing; want_room() is a heavy fence, room_was_wanted() a load.
// Invariants:
//   1. After a sender called want_room() and found no room, room_was_wanted() is true after the receiver's next pops.
template <typename T, typename System = SystemLane>
class Lane {
 public:
  using Ring = sync::SpscRing<T>;

  Lane() noexcept = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { delete ring_.load(std::memory_order_relaxed); }  // relaxed: no other thread uses the lane any longer

  // --- sender ---

  // Returns false if there is no memory.
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
  // The sender checks for room once more after this, before it waits.
  void want_room() noexcept {
    wanted_.store(true, std::memory_order_relaxed);
    System::heavy_fence();  // pairs with the light fence in room_was_wanted()
  }

  // --- receiver ---

  [[nodiscard]] Ring* incoming() noexcept { return ring_.load(std::memory_order_acquire); }
  // Called after pops. Returns true once: then the receiver rings the sender's bell.
  [[nodiscard]] bool room_was_wanted() noexcept {
    System::light_fence();  // pairs with the heavy fence in want_room()
    return wanted_.load(std::memory_order_relaxed) && wanted_.exchange(false, std::memory_order_relaxed);
  }

 private:
  sync::Atomic<Ring*> ring_{nullptr};
  sync::Atomic<bool> wanted_{false};
};

// LaneSender: the sending side of a lane that belongs to one core. The sender makes messages in the lane's cells, shows
// them to the receiver in batches, and rings the receiver's bell. If the sender wrote the lane's index for each
// message, the polling receiver would take that line away each time, and both would mostly wait for the line.
// Owner: the sender.
// Affinity: the sender's thread.
// Cost: a message is made in place, with a load of the bell. A release store shows the first message of a job and every
// kBatch-th. A read-modify-write rings the bell for the first message of a turn, for every kBatch-th, and for each
// message while the target sleeps.
// Target: has a `doorbell()`, and `ring(bits)`, which returns whether the target had to be woken.
// Invariants:
//   1. After show() the receiver can see every message. After end_turn() its bell was rung for every message.
//   2. A cell that was claimed and not committed is free again.
template <typename Target, typename T, typename System = SystemLane>
class LaneSender {
 public:
  static constexpr std::uint32_t kBatch = 32;

  LaneSender() noexcept = default;
  LaneSender(Target& target, Lane<T, System>& lane, std::uint64_t bit, std::size_t capacity) noexcept
      : target_(&target), lane_(&lane), bit_(bit), capacity_(capacity) {}

  [[nodiscard]] Target* target() const noexcept { return target_; }

  // Raw storage for the next message: the caller makes the message, then calls commit(). Returns null if there is no
  // room, or no memory for the lane.
  [[nodiscard]] T* claim() noexcept {
    if (ring_ == nullptr && !open()) [[unlikely]] {
      return nullptr;
    }
    T* const cell = ring_->claim_one();
    if (cell == nullptr) [[unlikely]] {
      show();  // the receiver makes room only of messages that it sees
    }
    return cell;
  }
  // Puts the message into the lane. `job` is the number of the sender's present job; 0: no show() follows. Returns true
  // if the target had to be woken.
  bool commit(std::uint64_t job) noexcept {
    ring_->append_one();
    unrung_ = true;
    const auto& bell = target_->doorbell();
    const bool due = posts_++ % kBatch == 0;
    const bool sleeper = bell.sleeper();
    hidden_ = true;
    if (due || sleeper || job == 0 || job != job_) {
      show();
    }
    job_ = job;
    return (sleeper || (due && !bell.shows(bit_))) && ring();
  }
  // For a lane from a core to itself: rings no bell.
  void commit_to_self() noexcept { ring_->commit(1); }

  // Whether there are messages that the receiver cannot see.
  [[nodiscard]] bool hides() const noexcept { return hidden_; }
  void show() noexcept {
    if (hidden_) {
      hidden_ = false;
      ring_->show_appended();
    }
  }
  // Returns true if the target had to be woken.
  bool end_turn() noexcept {
    posts_ = 0;
    return unrung_ && ring();
  }

  // After a claim() that found no room. Returns true if there is room now. Returns false if the receiver rings later;
  // but if the lane could not be opened, no ring comes.
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
  // commit() reads the bell relaxed and may skip a ring that is needed; end_turn() rings then.
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
  std::uint64_t job_ = 0;    // the job that sent the last message
  std::uint32_t posts_ = 0;  // in this turn
  bool hidden_ = false;      // a message was appended since the last show()
  bool unrung_ = false;      // a message was committed since the bell was rung
};

}  // namespace weft::rt
