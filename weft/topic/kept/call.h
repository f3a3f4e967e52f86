// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weft/base/intrusive_ptr.h"
#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/message/message.h"
#include "weft/rt/task/async_event.h"
#include "weft/sync/atomic_counted.h"
#include "weft/sync/condition.h"
#include "weft/sys/event_fd.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

// The number at the begin of `text`; 0: there is none, or it is beyond 64 bits.
[[nodiscard]] inline std::uint64_t number_of(std::string_view text) noexcept {
  std::uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// ChangeEvent: wakes the waiters for a change: threads of a blocking handle, or coroutines of the loop of an
// asynchronous one. It makes a descriptor readable if a program has one for its event loop.
// Affinity: every call under the lock of the HubLink; coroutines only if the handle belongs to the loop.
struct ChangeEvent {
  sync::Condition threads;
  rt::AsyncEvent tasks;
  std::optional<sys::EventFd> event{};  // made by descriptor()
  bool event_set = false;
  sys::EventFd* bell = nullptr;  // rung by each notify(); of a queue that waits for many

  void notify() noexcept {
    threads.notify_all();
    if (bell != nullptr) {
      bell->signal();
    }
    if (tasks.awaited()) {
      tasks.pulse();
    }
    if (event && !event_set) {
      event_set = true;
      event->signal();
    }
  }
  // A caller found nothing: the descriptor is readable after the next notify().
  void found_nothing() noexcept {
    if (event_set) {
      event_set = false;
      event->drain();
    }
  }
  // Errors: resource_exhausted.
  [[nodiscard]] Result<int> descriptor() noexcept {
    if (!event) {
      event.emplace(WEFT_TRY(sys::EventFd::make()));
      notify();  // there may be input already
    }
    return event->fd();
  }
};

// The treatment of a request whose answer does not arrive.
enum class OnLoss : std::uint8_t {
  resend,          // a repetition is harmless; at its deadline the outcome is timed_out
  resend_same_id,  // an append: the hub has its id; at its deadline the outcome is unknown
  resend_change,   // a repetition is harmless; at its deadline the outcome is unknown
  give_up,         // it ends with its connection: the outcome is unknown
};

// SeenInstance: the life of the stream of the sequences that the program last read through one object.
// Owner: its references: a handle's object of the stream, its calls and channels. Affinity: any thread.
class SeenInstance : public sync::AtomicCounted<SeenInstance> {
 public:
  // Relaxed, with no partner: a sequence that the program passes to another thread carries the number along.
  void set(std::uint64_t instance) noexcept {
    if (instance != 0) {
      instance_.store(instance, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] std::uint64_t last() const noexcept { return instance_.load(std::memory_order_relaxed); }  // 0: none

 private:
  std::atomic<std::uint64_t> instance_{0};
};

// HubCall: one request to the hub, until its answer.
// Owner: its references: the link's table and the caller. Affinity: the fields are guarded by the link's lock; those of
// an answer are constant once `done`.
class HubCall : public ListHook, public sync::AtomicCounted<HubCall> {
 public:
  std::uint32_t id = 0;
  OnLoss on_loss = OnLoss::resend;
  bool is_append = false;  // counts against the bound of appends in flight
  bool sent = false;       // at least once
  bool resent = false;
  Instant deadline = kNever;
  Message request;
  std::uint64_t instance = 0;         // the instance in the request
  IntrusivePtr<SeenInstance> seen{};  // gets the answer's instance when the program gets the answer; may be null
  ChangeEvent changed;

  bool done = false;
  Error error;    // ok: `answer` holds
  Message bytes;  // of the answer
  Op answer;      // its views point into `bytes`

  [[nodiscard]] std::size_t footprint() const noexcept { return request.size() + sizeof(HubCall); }
};

}  // namespace weft::topic
