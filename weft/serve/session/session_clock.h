// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "weft/base/time.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/serve/session/session_limits.h"
#include "weft/serve/session/session_state.h"

namespace weft::serve {

// SessionClock: the deadlines of one session, and the one timer for the next of them.
// Owner: a session. Affinity: one core.
// Cost: a read or a write stores an instant; the timer stays. A timer that fires before next_deadline() is armed again.
class SessionClock {
 public:
  static constexpr Duration kTlsHandshake = std::chrono::seconds(10);  // where the limits bound no handshake

  void start(Instant now) noexcept { accepted_ = last_active_ = last_heard_ = last_written_ = now; }
  void note_accepted(Instant when) noexcept { accepted_ = when; }              // before this session
  void note_begun() noexcept { stage_ = Stage::begun; }                        // on_open() is called now
  void note_frame() noexcept { stage_ = Stage::heard; }                        // a whole frame came
  void note_heard(Instant now) noexcept { last_active_ = last_heard_ = now; }  // bytes were read
  void note_active(Instant now) noexcept { last_active_ = now; }               // a reply ended
  void note_unread(Instant now) noexcept { last_heard_ = now; }  // the session does not read, so it cannot hear
  // Bytes were written. They count as a sign of life after note_acknowledged().
  void note_written(Instant now) noexcept { last_written_ = now; }
  void note_acknowledged() noexcept { last_active_ = std::max(last_active_, last_written_); }
  [[nodiscard]] bool wrote_since_active() const noexcept { return last_written_ > last_active_; }
  // The deadline of the present work: of a half-received frame, and from close() on of the close. kNever: no work.
  void finish_by(Instant deadline) noexcept { deadline_ = deadline; }
  [[nodiscard]] Instant deadline() const noexcept { return deadline_; }
  void close_by(Instant deadline) noexcept { deadline_ = close_by_ = deadline; }
  // The deadline of the peer's end, after close() and the last byte.
  void linger_by(Instant deadline) noexcept { deadline_ = std::min(deadline, close_by_); }
  [[nodiscard]] bool lingers() const noexcept { return deadline_ < close_by_; }
  [[nodiscard]] Instant accepted() const noexcept { return accepted_; }
  [[nodiscard]] Instant heard() const noexcept { return last_heard_; }
  [[nodiscard]] bool begun() const noexcept { return stage_ != Stage::connected; }

  [[nodiscard]] Instant next_deadline(const SessionLimits& limits, SessionState state, bool owes_reply) const noexcept;
  // Why the session ends if one of its deadlines has passed.
  [[nodiscard]] std::optional<CloseCause> passed(const SessionLimits& limits, SessionState state, bool owes_reply,
                                                 Instant now) const noexcept;

  // Makes the timer fire at `due` or before. Returns false if there is no memory.
  [[nodiscard]] bool arm(rt::TimerWheel& timers, Instant due, rt::TimerCallback callback) noexcept;
  void note_fired() noexcept { timer_ = {}; }
  void cancel(rt::TimerWheel& timers) noexcept { (void)timers.cancel(timer_); }

 private:
  // A session only moves down this list. A frame comes after on_open().
  enum class Stage : std::uint8_t {
    connected,  // the handshake of TLS may still run
    begun,      // on_open() was called
    heard,      // a whole frame came
  };

  [[nodiscard]] Instant handshake_deadline(const SessionLimits& limits) const noexcept;

  rt::TimerId timer_;
  Instant timer_due_ = kNever;
  Instant deadline_ = kNever;
  Instant close_by_ = Instant::min();  // before close(): no deadline is earlier
  Instant accepted_{};
  Stage stage_ = Stage::connected;
  Instant last_active_{};
  Instant last_heard_{};
  Instant last_written_{};
};

}  // namespace weft::serve
