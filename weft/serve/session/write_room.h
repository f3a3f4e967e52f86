// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>

#include "weft/base/list.h"
#include "weft/base/result.h"
#include "weft/base/time.h"
#include "weft/rt/loop/task_runner.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/serve/frame/shared_frame.h"

namespace weft::serve {

class Session;
class WriteRoom;

// RoomWait: the awaiter of a task that waits for room in a session's write queue, see Session::writable(),
// send_shared_wait() and SessionOf::send_wait().
// Owner: the expression that awaits it. Destruction while it waits gives up. Affinity: the session's core.
// Cost: no allocation, except for the first wait of a session that has run no coroutine (TaskSet).
// Invariants:
//   1. Waits end in the order in which they began, except those that fail.
//   2. A wait that failed has sent nothing. A frame that was taken is reported as taken, also to a task that was
//      cancelled meanwhile.
//   3. Every wait ends: by room, by its deadline, by its task's cancellation, or by the end of the session or of its
//      stream to the peer.
class RoomWait : private ListHook {
 public:
  RoomWait(const RoomWait&) = delete;
  RoomWait& operator=(const RoomWait&) = delete;
  ~RoomWait();

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <rt::detail::TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> coroutine) {
    return suspend(coroutine.promise().scope(), coroutine);
  }
  // Errors: closed (the session is closed, or has ended its stream); timed_out (the deadline passed); kCancelled;
  // resource_exhausted (waits_max tasks wait, or no memory); invalid_state (another thread, or awaited before); those
  // of send().
  [[nodiscard]] Result<void> await_resume() noexcept;

 protected:
  // Sends the frame of the wait. Called when there is room.
  using Send = Result<void>(RoomWait& self, Session& session);
  // Without a function it only waits.
  RoomWait(Session& session, Instant deadline, Send* send) noexcept
      : session_(&session), deadline_(deadline), send_(send), wait_(this) {}

 private:
  friend class List<RoomWait>;
  friend class Session;
  friend class WriteRoom;
  struct TaskWait : rt::Wait {
    explicit TaskWait(RoomWait* of) noexcept : Wait(give_up), room_wait(of) {}
    static void give_up(Wait& self) noexcept;
    RoomWait* room_wait;
  };

  bool suspend(rt::CancelScope& scope, std::coroutine_handle<> coroutine);
  [[nodiscard]] bool fail(const Error& why) noexcept;  // instead of waiting; false
  [[nodiscard]] Error call_send(Session& session) noexcept;
  void finish(const Error& outcome) noexcept;
  void cancel_timer() noexcept;

  Session* session_;  // may be gone once the wait is over
  Instant deadline_;
  Send* send_;
  TaskWait wait_;
  rt::TimerId timer_;
  Error error_;
  WriteRoom* room_ = nullptr;  // while it waits
  bool granted_ = false;       // it has ended with room, and its task has not resumed
  bool awaited_ = false;
};

// The awaiter of Session::writable().
class [[nodiscard]] WritableWait final : public RoomWait {
 public:
  WritableWait(Session& session, Instant deadline) noexcept : RoomWait(session, deadline, nullptr) {}
};

// The awaiter of Session::send_shared_wait().
class [[nodiscard]] SharedSendWait final : public RoomWait {
 public:
  SharedSendWait(Session& session, const SharedFrame& frame, Instant deadline) noexcept
      : RoomWait(session, deadline, send), frame_(frame) {}

 private:
  static Result<void> send(RoomWait& self, Session& session);
  const SharedFrame frame_;
};

// WriteRoom: the tasks that wait for room in one session's write queue, first come, first served.
// Owner: the session's TaskSet. Affinity: its core.
class WriteRoom {
 public:
  static constexpr std::size_t kTurnMax = 256 * 1024;  // bytes that waits send in a turn; then others have their turn

  WriteRoom() = default;
  WriteRoom(const WriteRoom&) = delete;
  WriteRoom& operator=(const WriteRoom&) = delete;
  ~WriteRoom() { refuse_all(Error(Errc::closed, "the session is closed")); }

  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_; }
  // Whether a wait that begins now comes after others.
  [[nodiscard]] bool taken() const noexcept { return waiting_ != 0 || granted_ != nullptr; }
  void refuse_all(const Error& why) noexcept;

 private:
  friend class RoomWait;
  friend class Session;
  void push(RoomWait& wait) noexcept {
    wait.room_ = this;
    waits_.push_back(wait);
    ++waiting_;
  }
  void remove(RoomWait& wait) noexcept {
    wait.room_ = nullptr;
    static_cast<ListHook&>(wait).unhook();
    --waiting_;
  }

  List<RoomWait> waits_;
  std::size_t waiting_ = 0;
  RoomWait* granted_ = nullptr;  // the line stands until its task has resumed
  bool serving_ = false;
  Instant turn_{};                // the last turn in which a wait began
  std::uint64_t turn_begin_ = 0;  // the bytes that the session had taken at its beginning
};

}  // namespace weft::serve
