// SPDX-License-Identifier: MIT
#pragma once

#include <condition_variable>
#include <cstdint>
#include <optional>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/msg/message/message.h"
#include "weft/rt/task/async_event.h"
#include "weft/sync/atomic_counted.h"
#include "weft/topic/wire/ops.h"

namespace weft::topic {

// News: wakes what waits for a change: threads of a blocking handle, or coroutines of the loop of an asynchronous one.
// Affinity: tell() under the lock of the HubLink; coroutines only where the handle is the loop's.
struct News {
  std::condition_variable threads;
  rt::AsyncEvent tasks;

  void tell() noexcept {
    threads.notify_all();
    if (tasks.awaited()) {
      tasks.pulse();
    }
  }
};

// How a request is treated when its answer does not come.
enum class OnLoss : std::uint8_t {
  resend,          // the hub carries it out again without harm; at its deadline the outcome is timed_out
  resend_same_id,  // an append: the hub knows its id; at its deadline the outcome is unknown
  resend_change,   // the hub carries it out again without harm; at its deadline the outcome is unknown
  give_up,         // with its connection: the outcome is unknown
};

// Call: one request to the hub, until its answer.
// Owner: its references: the link's table and the caller. Affinity: the fields are guarded by the link's lock; those of
// an answer are constant once `done`.
class Call : public ListHook, public sync::AtomicCounted<Call> {
 public:
  std::uint32_t id = 0;
  OnLoss on_loss = OnLoss::resend;
  bool is_append = false;  // counts against the bound of what is in flight
  bool sent = false;       // at least once
  bool resent = false;
  Instant deadline = kNever;
  Message request;
  News changed;

  bool done = false;
  Error error;    // ok: `answer` holds
  Message bytes;  // of the answer
  Op answer;      // its views point into `bytes`

  [[nodiscard]] std::size_t footprint() const noexcept { return request.size() + sizeof(Call); }
};

}  // namespace weft::topic
