// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>

#include "weft/base/error.h"
#include "weft/rt/task/task.h"
#include "weft/serve/session/session.h"

namespace weft::serve {

// SessionEnd: awaits the end of a session. The await cannot be cancelled: a cancelled task aborts the session and still
// waits for its end.
// Owner: the frame of the coroutine that awaits it. `session` and `wait` are members of the session's service: in
// on_close() the service sets `session` to null, takes `wait` and calls finish().
class [[nodiscard]] SessionEnd {
 public:
  // `why`: the reason that an aborted session gets.
  SessionEnd(Session*& session, SessionEnd*& wait, const Error& why) noexcept
      : session_(session), place_(wait), why_(why), wait_(this) {}

  [[nodiscard]] bool await_ready() const noexcept { return session_ == nullptr; }
  template <rt::detail::TaskPromise Promise>
  void await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
    rt::CancelScope& scope = coroutine.promise().scope();
    place_ = this;
    wait_.begin_always(scope, coroutine);
    if (scope.cancelled()) {
      abort();
    }
  }
  void await_resume() const noexcept {}
  void finish() noexcept { wait_.finish(); }

 private:
  struct EndWait : rt::Wait {
    explicit EndWait(SessionEnd* who) noexcept
        : Wait([](rt::Wait& self) noexcept { static_cast<EndWait&>(self).end->abort(); }), end(who) {}
    SessionEnd* end;
  };
  void abort() noexcept {
    if (session_ != nullptr) {
      session_->abort(CloseReason::service, why_);
    }
  }

  Session*& session_;
  SessionEnd*& place_;
  const Error why_;
  EndWait wait_;
};

}  // namespace weft::serve
