// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/time.h"
#include "weft/sync/duration_counts.h"
#include "weft/sync/lock.h"

namespace weft::rt {

// ActivityName: the name of a call that a loop's thread can be inside. Affinity: immutable; static storage.
struct ActivityName {
  std::string_view owner;  // "game::Room"
  std::string_view call;   // "on_frame"
};

// Activity: the present work of a loop's thread, for threads that watch it.
// Owner: the loop and those that watch it. Affinity: the loop's thread writes; any thread reads.
// Cost: relaxed stores to one line that others write only in arm(): two or three a turn, four a callback that is named;
// a load a turn; and three stores to lines of its own each time that the loop has looked for events.
// Invariant: the members tell of one moment only while the turn lasts; a reader may see a call and the subject of the
// one before.
class alignas(64) Activity {
 public:
  // A turn that lasts.
  struct Busy {
    Instant since;                          // the turn's begin
    const ActivityName* name = nullptr;     // null: a job, a message, a timer
    std::uint64_t subject = 0;              // of the name's owner: the id of a session
    std::optional<std::uint32_t> detail{};  // the id of the frame that a dispatcher handles

    // "game::Room on_frame (frame 7)"; of no name "a job, message or timer".
    [[nodiscard]] std::string text() const;
  };
  struct Doing {
    const ActivityName* name = nullptr;
    std::uint64_t subject = 0;
  };

  // Bell: a thread that has nothing to watch sleeps until one of its bells rings.
  class Bell {
   public:
    virtual void ring() noexcept = 0;  // on the loop's thread, at the beginning of a turn; does not wait

   protected:
    ~Bell() = default;
  };
  void add_bell(Bell& bell);              // any thread; throws std::bad_alloc
  void remove_bell(Bell& bell) noexcept;  // any thread: the bell does not ring after the return
  // Any thread: the next turn rings all bells, once. A turn that begins at the same moment may not: the arming thread
  // checks once more before a long sleep, when the store is visible.
  void arm() noexcept { armed_.store(true, std::memory_order_relaxed); }

  // All relaxed: see the invariant. The watching thread's loads are the partners.
  void begin_turn(Instant now) noexcept {
    since_.store(now, std::memory_order_relaxed);
    if (armed_.load(std::memory_order_relaxed)) [[unlikely]] {
      ring();
    }
  }
  void end_turn() noexcept { since_.store(Instant(), std::memory_order_relaxed); }
  // The time from one look for events to the next, or to the wait before it: an event that comes in between waits for
  // the rest of it.
  void note_lag(Duration lag) noexcept { lags_.add(lag); }
  [[nodiscard]] sync::DurationValues lags() const noexcept { return lags_.values(); }  // any thread
  void set(Doing doing) noexcept {
    name_.store(doing.name, std::memory_order_relaxed);
    subject_.store(doing.subject, std::memory_order_relaxed);
  }
  void set_detail(std::uint32_t id) noexcept { detail_.store(kSet | id, std::memory_order_relaxed); }
  void clear_detail() noexcept { detail_.store(0, std::memory_order_relaxed); }
  [[nodiscard]] Doing doing() const noexcept {
    return {name_.load(std::memory_order_relaxed), subject_.load(std::memory_order_relaxed)};
  }

  // Any thread. Returns null if the loop waits, or its turn began after `before`.
  [[nodiscard]] std::optional<Busy> busy_since(Instant before) const noexcept;
  // Counts the turn once, however many threads see it.
  void note_stall(const Busy& busy) noexcept;
  [[nodiscard]] std::uint64_t stalls() const noexcept { return stalls_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint64_t kSet = std::uint64_t{1} << 32;
  void ring() noexcept;

  std::atomic<Instant> since_{Instant()};
  std::atomic<const ActivityName*> name_{nullptr};
  std::atomic<std::uint64_t> subject_{0};
  std::atomic<std::uint64_t> detail_{0};
  std::atomic<bool> armed_{false};
  alignas(64) std::atomic<std::uint64_t> stalls_{0};  // relaxed: a number
  std::atomic<Instant> stall_noted_{Instant()};       // relaxed: only elects the thread that counts
  alignas(64) sync::DurationCounts lags_;             // the loop's thread adds
  sync::StdMutex bells_mutex_;
  std::vector<Bell*> bells_ WEFT_GUARDED_BY(bells_mutex_);
};

// InActivity: names the thread's work until the end of a block. Affinity: the loop's thread.
class InActivity {
 public:
  InActivity(Activity& activity, const ActivityName& name, std::uint64_t subject) noexcept
      : activity_(activity), outer_(activity.doing()) {
    activity.set({&name, subject});
  }
  InActivity(const InActivity&) = delete;
  InActivity& operator=(const InActivity&) = delete;
  ~InActivity() {
    activity_.set(outer_);
    activity_.clear_detail();
  }

 private:
  Activity& activity_;
  const Activity::Doing outer_;
};

}  // namespace weft::rt
