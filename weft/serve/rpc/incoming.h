// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/error.h"
#include "weft/base/time.h"
#include "weft/rt/loop/timer_wheel.h"
#include "weft/rt/task/task.h"
#include "weft/serve/rpc/call.h"
#include "weft/serve/rpc/rpc_counts.h"
#include "weft/serve/rpc/stream_end.h"

namespace weft::serve::rpc {

class CallTable;

// CallScope: the scope of a handler's coroutine, which is cancelled alone.
// Owner: an Incoming. Affinity: the session's core. Cost: no allocation.
class CallScope {
 public:
  void open(rt::CancelScope& parent) noexcept {
    scope_.open(parent);
    open_ = true;
    if (cancelled_) {
      scope_.cancel();
    }
  }
  void close() noexcept {
    open_ = false;
    scope_.close();
  }
  void cancel() noexcept {  // also before open()
    cancelled_ = true;
    if (open_) {
      scope_.cancel();
    }
  }
  [[nodiscard]] rt::CancelScope& scope() noexcept { return scope_; }

 private:
  rt::CancelScope scope_;
  bool open_ = false;
  bool cancelled_ = false;
};

// WithinScope: the awaiter of a task that runs in a CallScope: `co_await WithinScope(std::move(task), scope)` returns
// the result of the task, and rethrows its exception.
template <typename T>
class [[nodiscard]] WithinScope {
 public:
  WithinScope(rt::Task<T> task, CallScope& scope) noexcept : task_(std::move(task)), scope_(scope) {}
  WithinScope(WithinScope&&) = delete;
  ~WithinScope() = default;

  [[nodiscard]] bool await_ready() noexcept {
    refused_ = !task_.may_begin();
    return refused_;
  }
  template <rt::detail::TaskPromise Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> parent) noexcept {
    scope_.open(parent.promise().scope());
    task_.handle().promise().start_in(scope_.scope(), parent);
    return rt::detail::transfer(task_.handle());
  }
  T await_resume() {
    if (refused_) [[unlikely]] {
      throw std::logic_error("weft: the handler of a method returned a task that was moved from, or has begun");
    }
    scope_.close();
    return task_.handle().promise().take();
  }

 private:
  rt::Task<T> task_;
  CallScope& scope_;
  bool refused_ = false;
};

// Incoming: a call as its service holds it, from its request to its outcome.
// Owner: the service, on the stack for a plain handler, and in the block of its coroutine for another one.
// Affinity: the session's core.
// Invariants:
//   1. Of answer(), refuse_with(), note_thrown() and the end of the session, the first one decides the outcome. It is
//      counted once.
//   2. A call that its caller cancelled has no answer. A call of an ended session has none.
//   3. While it is in a table, cancel() and its deadline cancel its coroutine.
class Incoming final : public Call {
 public:
  // `body` outlives this, and so do the views of `header`.
  Incoming(Session& session, RpcCounters& counts, const Header& header, std::string_view method, Bytes body,
           Instant deadline) noexcept
      : Call(session, header, method, deadline), counts_(counts), body_(body) {}
  ~Incoming() { leave(); }

  [[nodiscard]] Bytes body() const noexcept { return body_; }
  [[nodiscard]] CallScope& scope() noexcept { return scope_; }

  // --- outcomes, from the handler's side ---
  void answer(Bytes response);
  void refuse_with(const Error& error);  // the handler's error
  void refuse_body(const Error& error);  // the error of Body::decode()
  void note_unencodable(const Error& error);
  void note_thrown(const std::exception_ptr& thrown);
  void note_busy(std::string_view text);
  void end_unanswered() noexcept;  // its coroutine has ended; if there is no outcome yet, the session has, too

  // --- messages of a stream ---
  void open_stream(bool receives, bool sends);  // once, before its coroutine begins
  [[nodiscard]] StreamEnd* stream() noexcept { return stream_ ? &*stream_ : nullptr; }
  void end_for_memory();  // answers `busy`, and cancels its coroutine

  // --- in flight, for a coroutine ---
  // Enters the table, and starts the timer of its deadline. Returns false if there is no memory for the timer.
  [[nodiscard]] bool enter(CallTable& table, rt::TimerWheel& timers) noexcept;
  void cancel() noexcept;  // for its caller

  // --- for the table ---
  [[nodiscard]] Incoming* next_in_bucket() const noexcept { return next_; }
  void set_next_in_bucket(Incoming* next) noexcept { next_ = next; }

 private:
  void leave() noexcept;
  [[nodiscard]] bool may_answer() noexcept;
  void send(Status status, std::uint16_t code, Bytes body, sync::Counter& counter);
  void send_text(Status status, std::uint16_t code, std::string_view text, sync::Counter& counter);
  void handle_deadline() noexcept;

  RpcCounters& counts_;
  Bytes body_;
  CallScope scope_;
  std::optional<StreamEnd> stream_;
  CallTable* table_ = nullptr;  // that it is in
  Incoming* next_ = nullptr;    // in its bucket
  rt::TimerWheel* timers_ = nullptr;
  rt::TimerId timer_;
  bool ended_ = false;      // the outcome is counted
  bool withdrawn_ = false;  // its caller cancelled it
  bool late_ = false;       // its deadline has passed
};

}  // namespace weft::serve::rpc
