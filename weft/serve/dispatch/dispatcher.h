// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/counter_table.h"
#include "weft/base/result.h"
#include "weft/serve/dispatch/id_table.h"
#include "weft/serve/frame/error_frame.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/metrics/handler_times.h"
#include "weft/serve/session/session_task.h"
#include "weft/sync/counter.h"
#include "weft/sync/counter_block.h"

namespace weft::serve {

// clang-format off
#define WEFT_DISPATCH_COUNTERS(ROW)                                                                               \
  ROW(handled, counter, "frames_total", "outcome", "handled", "frames",                                           \
      "Frames by their outcome: a handler took it.", "serve/dispatch/dispatcher.h")                               \
  ROW(unknown, counter, "frames_total", "outcome", "unknown", "frames",                                           \
      "Frames by their outcome: no handler has its id.", "serve/dispatch/dispatcher.h")                           \
  ROW(invalid, counter, "frames_total", "outcome", "invalid", "frames",                                           \
      "Frames by their outcome: its body was not a message of the handler's type.",                               \
      "serve/dispatch/dispatcher.h")                                                                              \
  ROW(refused, counter, "frames_total", "outcome", "refused", "frames",                                           \
      "Frames by their outcome: the handler returned an error.", "serve/dispatch/dispatcher.h")                   \
  ROW(failed, counter, "frames_total", "outcome", "failed", "frames",                                             \
      "Frames by their outcome: an exception came out of the handler.", "serve/dispatch/dispatcher.h")            \
  ROW(errors, counter, "frames_total", "outcome", "error", "frames",                                              \
      "Frames by their outcome: it was itself an error frame.", "serve/dispatch/dispatcher.h")                    \
  ROW(cancelled, counter, "frames_total", "outcome", "cancelled", "frames",                                       \
      "Frames by their outcome: the session was closed before its coroutine had ended.",                          \
      "serve/dispatch/dispatcher.h")                                                                              \
  ROW(heartbeats, counter, "frames_total", "outcome", "heartbeat", "frames",                                      \
      "Frames by their outcome: a heartbeat without a handler.", "serve/dispatch/dispatcher.h")
// clang-format on

// DispatchCounts: the outcomes of frames. The dispatcher's thread counts, any thread reads. When the handler of a frame
// has ended, the frame is in exactly one of these.
struct DispatchCounts {
  using Number = sync::Counter;
  WEFT_COUNTER_BLOCK(WEFT_DISPATCH_COUNTERS)
};
inline constexpr CounterRow kDispatchRows[] = {WEFT_DISPATCH_COUNTERS(WEFT_COUNTER_ROW)};
inline constexpr CounterTable kDispatchTable = {
    "dispatcher",
    "The `serve::Dispatcher`s of one name, summed: `admin->add(name, dispatcher)`, `admin->remove(name)`.",
    kDispatchRows};

inline constexpr sync::DurationRow kDispatchTimesRow = {
    "dispatcher", "handler_seconds", "dispatcher, handler",
    "The time in which a handler of a dispatcher with time_handlers() ran, with the waits of a coroutine. A handler "
    "without a frame has none.",
    "serve/dispatch/dispatcher.h"};

// Caller: the owner of a frame, usually a Session, which sends the answer. Handlers that are coroutines also
// need caller.start_handler(SessionTask::Ptr).
template <typename C>
concept FrameCaller = requires(C& caller, const FrameHeader& header, Bytes body) { caller.send(header, body); };

// Dispatcher: frames of HeaderCodec or NumberedCodec to handlers, by id. One for each core, filled before the first
// frame or by handlers.
// Owner: a service. Affinity: one thread, except counts().
// Cost: a look-up (id_table.h), an indirect call, a counter; with time_handlers() that of HandlerTimes for each frame.
// Only adding handlers allocates.
// Invariants:
//   1. An id keeps its first handler for ever: a second one is refused.
//   2. If a handler throws or returns an error, dispatch() returns, and the peer gets an error frame, see
//      error_frame.h. A session logs the exception of a handler, and passes it to ServerOptions::on_exception.
//   3. Error frames are never answered and reach only the handler for errors, so that two ends cannot exchange
//      error frames for ever.
//
// A handler can be called with (Caller&, const Frame&) and returns one of
//   - void;
//   - Result<...>: its error is the answer to the peer;
//   - rt::Task<void> or rt::Task<Result<void>>, or a Result of one of these: a coroutine, which
//     caller.start_handler() owns, bounds and cancels (session.h). The error of its Result is the answer to the
//     peer. Its frame, header and body, is a copy that lives until the coroutine has ended; so do the caller
//     and the handler itself, with the captures of a lambda. References to all of them stay valid. Cost besides
//     the plain call: the copy and the coroutine's data in one pooled block, and the coroutine's own frame.
template <typename C>
class Dispatcher {
 public:
  using Caller = C;
  using Frame = HeaderCodec::Frame;

  Dispatcher() = default;
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Measures the handlers that are added from now on: a page of metrics shows a histogram of each one's durations, by
  // its id. Idempotent.
  void time_handlers() {
    if (times_ == nullptr) {
      times_ = std::make_unique<HandlerTimes>();
    }
  }

  // Errors: invalid_state (the id has a handler); resource_exhausted (IdTable::kSizeMax ids have handlers).
  template <typename Handler>
  Result<void> on(std::uint32_t id, Handler handler) {
    return table_.add(id, keep(std::move(handler), id));
  }
  template <typename Method, typename Service>
    requires std::is_member_function_pointer_v<Method>
  Result<void> on(std::uint32_t id, Method method, Service& service) {
    static_assert(std::is_invocable_v<Method, Service&, Caller&, const Frame&>,
                  "weft: the method cannot be called with (Caller&, const HeaderCodec::Frame&); the frame is const");
    return on(id, [&service, method](Caller& caller, const Frame& frame) { return (service.*method)(caller, frame); });
  }
  // Handles ids without a handler of their own. Fails with invalid_state if there is such a handler already.
  template <typename Handler>
  Result<void> on_unknown(Handler handler) {
    return set(unknown_, std::move(handler), "unknown");
  }
  // Handles error frames of any id. The dispatcher counts errors and exceptions of the handler, and does not answer
  // them. Fails with invalid_state if there is such a handler already.
  template <typename Handler>
  Result<void> on_error(Handler handler) {
    return set(error_, std::move(handler), "error");
  }

  void dispatch(Caller& caller, const Frame& frame) {
    const Entry* entry = table_.find(frame.header.id);
    if (entry == nullptr || (frame.header.flags & kFlagError) != 0) [[unlikely]] {
      entry = exceptional_entry(frame);
      if (entry == nullptr) {
        return answer_none(caller, frame);
      }
    }
    run(*entry, caller, frame);
  }

  [[nodiscard]] bool handles(std::uint32_t id) const noexcept { return table_.find(id) != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }
  [[nodiscard]] const DispatchCounts& counts() const noexcept { return counts_; }
  // The same for a page of metrics. The dispatcher outlives the source.
  [[nodiscard]] CounterSource counter_source() const {
    return [this](std::string_view name, CounterReadings& into) {
      into.push_back({&kDispatchTable, {{"dispatcher", std::string(name)}}, sync::read_counters(counts_)});
    };
  }
  // Empty without time_handlers(). The dispatcher outlives the source.
  [[nodiscard]] sync::DurationSource duration_source() const {
    return [times = times_.get()](std::string_view name, sync::DurationReadings& into) {
      if (times != nullptr) {
        times->read_into(kDispatchTimesRow, {"dispatcher", std::string(name)}, into);
      }
    };
  }

 private:
  struct Entry {
    Error (*call)(void* handler, Caller& caller, const Frame& frame) = nullptr;
    void* handler = nullptr;

    explicit operator bool() const noexcept { return call != nullptr; }
  };
  using Kept = std::unique_ptr<void, void (*)(void*)>;

  static constexpr Error kFailed = frame_error(ErrorCode::handler_failed, "the handler failed");
  static constexpr Error kStarted{kFrameDomain, 0xFFFF, ""};  // handle_end() will report the coroutine's outcome

  template <typename Handler>
  static Error call(void* handler, Caller& caller, const Frame& frame) {
    using Outcome = std::invoke_result_t<Handler&, Caller&, const Frame&>;
    Handler& function = *static_cast<Handler*>(handler);
    if constexpr (std::is_void_v<Outcome>) {
      function(caller, frame);
      return {};
    } else {
      return function(caller, frame).error();
    }
  }
  template <typename Handler>
  struct Measured {
    Handler function;
    sync::DurationCounts* times;
  };
  template <typename Handler>
  static Error call_measured(void* handler, Caller& caller, const Frame& frame) {
    auto& measured = *static_cast<Measured<Handler>*>(handler);
    const HandlerTimer timer(*measured.times);
    return call<Handler>(&measured.function, caller, frame);
  }
  template <typename Handler>
  struct Coroutine {
    Handler function;
    Dispatcher* dispatcher;
    sync::DurationCounts* times;  // null: it is not measured
  };
  struct Told {
    Dispatcher* dispatcher;
    Caller* caller;
    sync::DurationCounts* times;
    std::uint64_t began;
    void operator()(const Error& outcome, bool cancelled, const Frame& frame) const noexcept {
      if (times != nullptr) {
        times->add(sys::time_between(began, sys::ticks()));
      }
      dispatcher->handle_end(outcome, cancelled, *caller, frame);
    }
  };
  template <typename Handler>
  static Error start(void* handler, Caller& caller, const Frame& frame) {
    auto& coroutine = *static_cast<Coroutine<Handler>*>(handler);
    const auto call_it = [&](const Frame& kept) { return coroutine.function(caller, kept); };
    const std::uint64_t began = coroutine.times != nullptr ? sys::ticks() : 0;
    const auto started =
        start_with_frame(caller, frame, call_it, Told{coroutine.dispatcher, &caller, coroutine.times, began});
    return started ? kStarted : started.error();
  }
  template <typename Made>
  void* keep_as(Made made) {
    kept_.push_back(Kept(new Made(std::move(made)), [](void* old) { delete static_cast<Made*>(old); }));
    return kept_.back().get();
  }
  // The histogram of a handler that is added now; null: it is not measured.
  [[nodiscard]] sync::DurationCounts* times_of(std::string name) {
    return times_ == nullptr ? nullptr : &times_->series({{"handler", std::move(name)}});
  }
  template <typename Handler>
  Entry keep(Handler handler, std::uint32_t id) {
    return keep(std::move(handler), times_of(std::to_string(id)));
  }
  template <typename Handler>
  Entry keep(Handler handler, sync::DurationCounts* times) {
    static_assert(std::is_invocable_v<Handler&, Caller&, const Frame&>,
                  "weft: the handler cannot be called with (Caller&, const HeaderCodec::Frame&); the frame is const");
    using Outcome = std::invoke_result_t<Handler&, Caller&, const Frame&>;
    detail::check_outcome<Outcome>();
    if constexpr (HandlerTask<Outcome>::kIs) {
      return {&start<Handler>, keep_as(Coroutine<Handler>{std::move(handler), this, times})};
    } else if (times != nullptr) {
      return {&call_measured<Handler>, keep_as(Measured<Handler>{std::move(handler), times})};
    } else {
      return {&call<Handler>, keep_as(std::move(handler))};
    }
  }
  template <typename Handler>
  Result<void> set(Entry& entry, Handler handler, const char* name) {
    if (entry) {
      return Error(Errc::invalid_state, "this handler is set already");
    }
    entry = keep(std::move(handler), times_of(name));
    return {};
  }

  [[nodiscard]] const Entry* exceptional_entry(const Frame& frame) const noexcept {
    const Entry& entry = (frame.header.flags & kFlagError) != 0 ? error_ : unknown_;
    return entry ? &entry : nullptr;
  }
  void answer_none(Caller& caller, const Frame& frame) {
    if ((frame.header.flags & kFlagError) != 0) {
      counts_.errors.add();
    } else if ((frame.header.flags & kFlagHeartbeat) != 0) {
      counts_.heartbeats.add();
    } else {
      counts_.unknown.add();
      answer(caller, frame, {ErrorCode::unknown_message, 0, "no handler for this message"});
    }
  }

  void run(Entry entry, Caller& caller, const Frame& frame) {  // by value: the handler may add other handlers
    Error error;
    if constexpr (requires { caller.note_handler(frame.header.id); }) {
      caller.note_handler(frame.header.id);
    }
    try {
      error = entry.call(entry.handler, caller, frame);
    } catch (...) {
      if constexpr (requires { caller.note_exception(std::current_exception()); }) {
        caller.note_exception(std::current_exception());
      }
      error = kFailed;
    }
    if (error == Errc::ok) [[likely]] {
      ((frame.header.flags & kFlagError) == 0 ? counts_.handled : counts_.errors).add();
      return;
    }
    handle_error(error, caller, frame);
  }
  void handle_end(const Error& outcome, bool cancelled, Caller& caller, const Frame& frame) noexcept {
    if ((frame.header.flags & kFlagError) != 0) {
      counts_.errors.add();
    } else if (outcome == Errc::ok) {
      counts_.handled.add();
    } else if (cancelled) {
      counts_.cancelled.add();
    } else {
      try {
        handle_error(outcome == kTaskThrew ? kFailed : outcome, caller, frame);
      } catch (...) {  // NOLINT(bugprone-empty-catch): counted above; the caller could not send
      }
    }
  }
  void handle_error(const Error& error, Caller& caller, const Frame& frame) {
    if (error == kStarted) {
      return;  // handle_end() counts it, or has counted it
    }
    const ErrorResponse response = response_of(error);
    if ((frame.header.flags & kFlagError) != 0) {
      counts_.errors.add();
      return;
    }
    switch (response.code) {
      case ErrorCode::invalid_body: counts_.invalid.add(); break;
      case ErrorCode::handler_failed: counts_.failed.add(); break;
      case ErrorCode::unknown_message: counts_.unknown.add(); break;
      default: counts_.refused.add();
    }
    answer(caller, frame, response);
  }
  // Ignores a failed send: the session counts frames that it refuses.
  static void answer(Caller& caller, const Frame& frame, const ErrorResponse& response) {
    std::array<std::uint8_t, kErrorBodyMax> body;
    (void)caller.send(FrameHeader{frame.header.id, kFlagError, frame.header.number}, write_error_body(response, body));
  }

  IdTable<Entry> table_;
  Entry unknown_;
  Entry error_;
  DispatchCounts counts_;
  std::unique_ptr<HandlerTimes> times_;  // null: no handler is measured
  std::vector<Kept> kept_;               // the handlers; they live as long as the dispatcher
};

}  // namespace weft::serve
