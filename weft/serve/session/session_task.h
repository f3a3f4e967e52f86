// SPDX-License-Identifier: MIT
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/bytes.h"
#include "weft/base/result.h"
#include "weft/mem/pool.h"
#include "weft/rt/task/async_event.h"
#include "weft/rt/task/task.h"
#include "weft/serve/session/write_room.h"

namespace weft::serve {

class TaskSet;

// The outcome of a coroutine that threw.
inline constexpr Error kTaskThrew(Errc::job_threw,
                                  "a coroutine of the service threw; the log and on_exception have what()");

// SessionTask: a coroutine of a session and the data that it works on: one pooled block besides its frame.
// Owner: a Ptr, then the TaskSet that started it, until the coroutine has ended. Affinity: the session's
// core.
// Invariant: the data outlives the coroutine's frame.
class SessionTask : private rt::detail::Join, private rt::detail::Ready {
 public:
  enum class Kind : std::uint8_t {
    handler,  // handles a frame and owes a reply
    spawned,  // accompanies the session and owes none
  };
  struct Free {
    void operator()(SessionTask* task) const noexcept { task->free_(*task); }
  };
  using Ptr = std::unique_ptr<SessionTask, Free>;

  SessionTask(const SessionTask&) = delete;
  SessionTask& operator=(const SessionTask&) = delete;

  [[nodiscard]] std::size_t room_size() const noexcept { return room_size_; }  // bytes of the kept frame's body

 protected:
  // Destroys the coroutine's frame, then reports its outcome.
  using End = void(SessionTask& self, bool cancelled) noexcept;
  using Destroy = void(SessionTask& self) noexcept;

  SessionTask(End* when_done, Destroy* destroy, std::size_t room) noexcept
      : Join(handle_done), Ready(handle_end), end_(when_done), free_(destroy), room_size_(room) {}
  ~SessionTask() = default;

  void set_coroutine(rt::detail::PromiseBase& promise, std::coroutine_handle<> coroutine) noexcept {
    promise_ = &promise;
    coroutine_ = coroutine;
  }
  void note_exception() const noexcept;

 private:
  friend class TaskSet;
  static std::coroutine_handle<> handle_done(rt::detail::Join& join) noexcept;
  static void handle_end(rt::detail::Ready& ready) noexcept;

  End* end_;
  Destroy* free_;
  rt::detail::PromiseBase* promise_ = nullptr;
  std::coroutine_handle<> coroutine_;
  std::size_t room_size_;
  TaskSet* set_ = nullptr;
  Kind kind_{};
  bool starting_ = false;  // inside TaskSet::start()
  bool done_ = false;
};

// A Task<void> or a Task<Result<void>>, with a `Kept` that lives until the frame has ended. Then calls
// kept.handle_end(Error outcome, bool cancelled) once. `outcome` is the task's result, or kTaskThrew. `cancelled`:
// whether the session was closed before the task ended.
template <typename T, typename Kept>
class SessionTaskOf final : public SessionTask {
  static_assert(std::is_void_v<T> || std::is_same_v<T, Result<void>>,
                "a session's task is a Task<> or a Task<Result<>>");

 public:
  struct FreeThis {
    void operator()(SessionTaskOf* task) const noexcept { destroy(*task); }
  };
  using ThisPtr = std::unique_ptr<SessionTaskOf, FreeThis>;

  // Allocates the block with `room` bytes after it. Returns null if there is no memory.
  static ThisPtr make(Kept kept, std::size_t room = 0) noexcept {
    void* const block = mem::pool_allocate(size() + room);
    return ThisPtr(block == nullptr ? nullptr : ::new (block) SessionTaskOf(std::move(kept), room));
  }
  [[nodiscard]] Kept& kept() noexcept { return kept_; }
  // The bytes after the block, aligned for any type.
  [[nodiscard]] std::uint8_t* room() noexcept { return reinterpret_cast<std::uint8_t*>(this) + size(); }
  // Requires a task that was not moved from.
  static Ptr with_task(ThisPtr block, rt::Task<T> task) noexcept {
    block->task_ = std::move(task);
    block->set_coroutine(block->task_.handle().promise(), block->task_.handle());
    return Ptr(block.release());
  }

 private:
  SessionTaskOf(Kept kept, std::size_t room) noexcept : SessionTask(end, destroy, room), kept_(std::move(kept)) {}
  ~SessionTaskOf() = default;
  [[nodiscard]] static std::size_t size() noexcept {
    constexpr std::size_t kAlign = alignof(std::max_align_t);
    return (sizeof(SessionTaskOf) + kAlign - 1) / kAlign * kAlign;
  }
  static void end(SessionTask& base, bool cancelled) noexcept {
    auto& self = static_cast<SessionTaskOf&>(base);
    Error outcome = kTaskThrew;
    if (!self.task_.handle().promise().exception()) {
      if constexpr (std::is_void_v<T>) {
        outcome = Error();
      } else {
        outcome = self.task_.handle().promise().take().error();
      }
    } else {
      self.note_exception();
    }
    self.task_.reset();
    self.kept_.handle_end(outcome, cancelled);
  }
  static void destroy(SessionTask& base) noexcept {
    auto* const self = static_cast<SessionTaskOf*>(&base);
    self->~SessionTaskOf();
    mem::pool_deallocate(self);
  }

  Kept kept_;
  rt::Task<T> task_;
};

// TaskSet: the coroutines of one session. Owner: the session, which ends after them. Affinity: its core.
// Cost: no allocation of its own. A task that never waits is over when start() returns.
// Invariants:
//   (1) `report` is called once for each task that ends, when its block is freed.
//   (2) After cancel() a task waits only for operations that cannot be cancelled.
class TaskSet {
 public:
  using Report = void(void* owner, SessionTask::Kind kind, std::size_t room_size) noexcept;
  using Threw = void(void* owner, const std::exception_ptr& thrown) noexcept;

  // `threw`, if any, is called for each task that ends by an exception, before `report`.
  TaskSet(rt::TaskRunner& runner, Report* report, void* owner, Threw* threw = nullptr) noexcept
      : report_(report), threw_(threw), owner_(owner) {
    scope_.open(runner.root());
  }
  TaskSet(const TaskSet&) = delete;
  TaskSet& operator=(const TaskSet&) = delete;
  ~TaskSet() = default;  // requires an empty set

  // Runs the task until it first waits.
  void start(SessionTask::Ptr task, SessionTask::Kind kind) noexcept;
  void cancel() noexcept { scope_.cancel(); }
  // Names the tasks that start from now on, for rt::Activity.
  void describe(const rt::ActivityName* name, std::uint64_t subject) noexcept { scope_.describe(name, subject); }
  // Set for a moment when the session has written to its peer, see Session::written().
  [[nodiscard]] rt::AsyncEvent& written() noexcept { return written_; }
  // The tasks that wait for room, also those that are not in this set.
  [[nodiscard]] WriteRoom& room() noexcept { return room_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t handlers() const noexcept { return handlers_; }  // of size(), those of Kind::handler

 private:
  friend class SessionTask;
  void finish(SessionTask& task) noexcept;

  rt::CancelScope scope_;
  Report* report_;
  Threw* threw_;
  void* owner_;
  std::size_t size_ = 0;
  std::size_t handlers_ = 0;
  rt::AsyncEvent written_;
  WriteRoom room_;
};

// --- handlers of frames ---

// The coroutine types that a handler may return: a Task<void>, a Task<Result<void>>, or a Result of one.
template <typename Outcome>
struct HandlerTask {
  static constexpr bool kIs = false;
};
template <typename T>
struct HandlerTask<rt::Task<T>> {
  static constexpr bool kIs = true;
  using Value = T;
};
template <typename T>
struct HandlerTask<Result<rt::Task<T>>> : HandlerTask<rt::Task<T>> {};

namespace detail {
template <typename Outcome>
inline constexpr bool kIsResult = false;
template <typename T>
inline constexpr bool kIsResult<Result<T>> = true;
template <typename Outcome>
constexpr void check_outcome() {
  if constexpr (HandlerTask<Outcome>::kIs) {
    using Value = typename HandlerTask<Outcome>::Value;
    static_assert(std::is_void_v<Value> || std::is_same_v<Value, Result<void>>,
                  "weft: a handler that is a coroutine returns rt::Task<> or rt::Task<Result<>>");
  } else {
    static_assert(std::is_void_v<Outcome> || kIsResult<Outcome>,
                  "weft: a handler returns void, a Result, rt::Task<> or rt::Task<Result<>>");
  }
}
}  // namespace detail

// A frame that lives as long as its handler, and the function that receives the outcome: report(outcome,
// cancelled, frame).
template <typename Frame, typename Report>
struct KeptFrame {
  Frame frame;
  Report report;
  void handle_end(const Error& outcome, bool cancelled) noexcept { report(outcome, cancelled, frame); }
};

template <typename Block, typename Caller, typename Task>
Result<void> start_made(Caller& caller, typename Block::ThisPtr block, Task task) {
  if (!task) {
    return Error(Errc::invalid_argument, "the task was moved from");
  }
  return caller.start_handler(Block::with_task(std::move(block), std::move(task)));
}

// Copies the frame, calls handler(copy), which returns a coroutine, and passes that to
// caller.start_handler(SessionTask::Ptr). The copy lives until the coroutine has ended, so references to it
// stay valid. On an error no coroutine was started, and `report` is not called.
template <typename Caller, typename Frame, typename Handler, typename Report>
Result<void> start_with_frame(Caller& caller, const Frame& frame, Handler&& handler, Report report) {
  using Outcome = std::invoke_result_t<Handler&, const Frame&>;
  using Block = SessionTaskOf<typename HandlerTask<Outcome>::Value, KeptFrame<Frame, Report>>;
  auto block = Block::make({frame, std::move(report)}, frame.body.size());
  if (block == nullptr) {
    return Error(Errc::resource_exhausted, "no memory for the handler");
  }
  Frame& copy = block->kept().frame;
  copy_bytes(block->room(), frame.body);
  copy.body = Bytes(block->room(), frame.body.size());
  Outcome outcome = handler(std::as_const(copy));
  if constexpr (requires { outcome.error(); }) {
    if (!outcome) {
      return outcome.error();
    }
    return start_made<Block>(caller, std::move(block), *std::move(outcome));
  } else {
    return start_made<Block>(caller, std::move(block), std::move(outcome));
  }
}

}  // namespace weft::serve
