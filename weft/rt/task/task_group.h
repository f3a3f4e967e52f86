// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "weft/base/result.h"
#include "weft/rt/task/closure_await.h"
#include "weft/rt/task/task.h"

namespace weft::rt {

namespace detail {

template <typename T>
using Kept = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <typename T>
Kept<T> take_kept(Task<T>& task) {
  if constexpr (std::is_void_v<T>) {
    task.handle().promise().take();
    return {};
  } else {
    return task.handle().promise().take();
  }
}

// TaskGroup: tasks that run beside each other, and the coroutine that waits for the last of them. Part of an awaiter.
class TaskGroup {
 public:
  enum class Until : bool { all, first };
  static constexpr std::size_t kNone = ~std::size_t{0};

  class Member final : public Join, public Ready {
   public:
    Member() noexcept : Join(handle_done), Ready(handle_start) {}

   private:
    friend class TaskGroup;
    static std::coroutine_handle<> handle_done(Join& join) noexcept {
      auto& self = static_cast<Member&>(join);
      return self.group_->end_one(self);
    }
    static void handle_start(Ready& ready) noexcept {
      auto& self = static_cast<Member&>(ready);
      self.group_->start_late(self);
    }
    TaskGroup* group_ = nullptr;
    PromiseBase* promise_ = nullptr;
    std::coroutine_handle<> coroutine_;
    std::size_t index_ = 0;
  };

  explicit TaskGroup(Until until) noexcept : until_(until) {}

  void begin(CancelScope& outer, std::coroutine_handle<> parent, std::size_t count) noexcept {
    scope_.open(outer);
    parent_ = parent;
    left_ = count + 1;  // one for begin() itself
  }
  template <typename T>
  void start(Member& member, Task<T>& task, std::size_t index) noexcept {
    if (first_ != kNone) {
      --left_;  // the group is cancelled already: the task does not begin
      return;
    }
    if (!task.may_begin()) [[unlikely]] {
      refused_ = true;
      first_ = index;
      scope_.cancel();
      --left_;
      return;
    }
    auto& promise = task.handle().promise();
    member.group_ = this;
    member.promise_ = &promise;
    member.index_ = index;
    member.coroutine_ = task.handle();
    promise.start_in(scope_, member);
    if (nested_too_deep()) {
      scope_.runner().add(member);
    } else {
      resume(task.handle());
    }
  }
  // After every start(). Returns false if all have ended already.
  [[nodiscard]] bool wait() noexcept { return --left_ != 0; }
  // Throws std::logic_error if a task could not begin.
  void close() {
    scope_.close();
    if (refused_) [[unlikely]] {
      throw std::logic_error("weft: a Task that was moved from, or awaited before, is in a group");
    }
  }
  // The index of the task that ended first; with Until::all, of the one that threw first.
  [[nodiscard]] std::size_t first() const noexcept { return first_; }

 private:
  void start_late(const Member& member) noexcept {
    if (first_ == kNone) {
      resume(member.coroutine_);
    } else if (--left_ == 0) {  // cancelled meanwhile: as in start()
      resume(parent_);
    }
  }
  std::coroutine_handle<> end_one(const Member& member) noexcept {
    if (first_ == kNone && (until_ == Until::first || member.promise_->exception())) {
      first_ = member.index_;
      scope_.cancel();
    }
    return --left_ == 0 ? parent_ : std::noop_coroutine();
  }

  Until until_;
  CancelScope scope_;
  std::coroutine_handle<> parent_;
  std::size_t left_ = 0;
  std::size_t first_ = kNone;
  bool refused_ = false;
};

template <typename... Ts>
class [[nodiscard]] TupleGroup {
 public:
  explicit TupleGroup(TaskGroup::Until until, Task<Ts>... tasks) noexcept
      : until_(until), group_(until), tasks_(std::move(tasks)...) {}
  TupleGroup(TupleGroup&& other) noexcept
      : until_(other.until_), group_(other.until_), tasks_(std::move(other.tasks_)) {}
  TupleGroup& operator=(TupleGroup&&) = delete;
  ~TupleGroup() = default;

  [[nodiscard]] bool await_ready() const noexcept { return sizeof...(Ts) == 0; }
  template <TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
    group_.begin(parent.promise().scope(), parent, sizeof...(Ts));
    start(std::index_sequence_for<Ts...>());
    return group_.wait();
  }

 protected:
  template <std::size_t... kIndex>
  void start(std::index_sequence<kIndex...> /*indices*/) noexcept {
    (group_.start(members_[kIndex], std::get<kIndex>(tasks_), kIndex), ...);
  }

  TaskGroup::Until until_;
  TaskGroup group_;
  std::tuple<Task<Ts>...> tasks_;
  std::array<TaskGroup::Member, sizeof...(Ts)> members_;
};

template <typename T>
class [[nodiscard]] VectorGroup {
 public:
  VectorGroup(TaskGroup::Until until, std::vector<Task<T>> tasks)
      : until_(until), group_(until), tasks_(std::move(tasks)), members_(tasks_.size()) {}
  VectorGroup(VectorGroup&& other) noexcept
      : until_(other.until_),
        group_(other.until_),
        tasks_(std::move(other.tasks_)),
        members_(std::move(other.members_)) {}
  VectorGroup& operator=(VectorGroup&&) = delete;
  ~VectorGroup() = default;

  [[nodiscard]] bool await_ready() const noexcept { return tasks_.empty(); }
  template <TaskPromise Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
    group_.begin(parent.promise().scope(), parent, tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      group_.start(members_[i], tasks_[i], i);
    }
    return group_.wait();
  }

 protected:
  TaskGroup::Until until_;
  TaskGroup group_;
  std::vector<Task<T>> tasks_;
  std::vector<TaskGroup::Member> members_;
};

// --- awaiters in a group ---

template <typename A>
inline constexpr bool kIsTask = false;
template <typename T>
inline constexpr bool kIsTask<Task<T>> = true;

// Awaited: the type of the value of `co_await` on an awaiter, or on a task.
template <typename A>
struct Awaited {};
template <typename A>
  requires requires(A& awaiter) { awaiter.await_resume(); }
struct Awaited<A> {
  using Type = std::remove_cvref_t<decltype(std::declval<A&>().await_resume())>;
};
template <typename T>
struct Awaited<Task<T>> {
  using Type = T;
};
template <typename A>
using AwaitedValue = typename Awaited<std::remove_cvref_t<A>>::Type;

// GroupMember: a task, an awaiter that can be moved before it is awaited, and a named one, which outlives the
// await of the group.
template <typename A>
concept GroupMember = (kIsTask<A>) || (!kIsTask<std::remove_cvref_t<A>> && requires { typename AwaitedValue<A>; } &&
                                       (std::is_lvalue_reference_v<A> || std::is_move_constructible_v<A>));
template <typename... As>
concept MixedGroup = (GroupMember<As> && ...) && !(kIsTask<As> && ...);

template <typename A>
Task<AwaitedValue<A>> await_kept(A awaiter) {
  co_return co_await awaiter;
}
template <typename A>
Task<AwaitedValue<A>> await_named(A* awaiter) {
  co_return co_await *awaiter;
}
template <typename A>
Task<AwaitedValue<A>> as_task(A&& member) {
  if constexpr (kIsTask<A>) {
    return std::forward<A>(member);
  } else if constexpr (std::is_lvalue_reference_v<A>) {
    return await_named(&member);
  } else {
    static_assert(!kAwaitedByName<A>,
                  "weft: GCC 12 destroys an owning closure of a co_await expression twice: name the call, and give the "
                  "group that: auto calling = runtime.call(...); co_await when_all(calling, ...)");
    return await_kept(std::forward<A>(member));
  }
}
template <typename A>
std::vector<Task<AwaitedValue<A>>> as_tasks(std::vector<A> awaiters) {
  std::vector<Task<AwaitedValue<A>>> tasks;
  tasks.reserve(awaiters.size());
  for (A& awaiter : awaiters) {
    tasks.push_back(await_kept(std::move(awaiter)));
  }
  return tasks;
}

}  // namespace detail

template <typename... Ts>
class [[nodiscard]] AllOf : public detail::TupleGroup<Ts...> {
 public:
  using detail::TupleGroup<Ts...>::TupleGroup;
  std::tuple<detail::Kept<Ts>...> await_resume() {
    this->group_.close();
    return take(std::index_sequence_for<Ts...>());
  }

 private:
  template <std::size_t... kIndex>
  std::tuple<detail::Kept<Ts>...> take(std::index_sequence<kIndex...> /*indices*/) {
    if (const std::size_t failed = this->group_.first(); failed != detail::TaskGroup::kNone) {
      (void)((kIndex == failed && (static_cast<void>(detail::take_kept(std::get<kIndex>(this->tasks_))), true)) || ...);
    }
    return {detail::take_kept(std::get<kIndex>(this->tasks_))...};
  }
};

template <typename... Ts>
class [[nodiscard]] AnyOf : public detail::TupleGroup<Ts...> {
 public:
  using detail::TupleGroup<Ts...>::TupleGroup;
  using Value = std::variant<detail::Kept<Ts>...>;
  Value await_resume() {
    this->group_.close();
    return take<0>();
  }

 private:
  template <std::size_t kIndex>
  Value take() {
    if constexpr (kIndex + 1 < sizeof...(Ts)) {
      if (this->group_.first() != kIndex) {
        return take<kIndex + 1>();
      }
    }
    return Value(std::in_place_index<kIndex>, detail::take_kept(std::get<kIndex>(this->tasks_)));
  }
};

template <typename T>
class [[nodiscard]] AllOfVector : public detail::VectorGroup<T> {
 public:
  using detail::VectorGroup<T>::VectorGroup;
  std::vector<detail::Kept<T>> await_resume() {
    this->group_.close();
    if (const std::size_t failed = this->group_.first(); failed != detail::TaskGroup::kNone) {
      static_cast<void>(detail::take_kept(this->tasks_[failed]));
    }
    std::vector<detail::Kept<T>> values;
    values.reserve(this->tasks_.size());
    for (Task<T>& task : this->tasks_) {
      values.push_back(detail::take_kept(task));
    }
    return values;
  }
};

// First: the index of the task that ended first, and its value.
template <typename T>
struct First {
  std::size_t index = 0;
  T value;
};

template <typename T>
class [[nodiscard]] AnyOfVector : public detail::VectorGroup<T> {
 public:
  using detail::VectorGroup<T>::VectorGroup;
  Result<First<detail::Kept<T>>> await_resume() {
    this->group_.close();
    if (this->tasks_.empty()) {
      return Error(Errc::invalid_argument, "there is no task to wait for");
    }
    const std::size_t first = this->group_.first();
    return First<detail::Kept<T>>{first, detail::take_kept(this->tasks_[first])};
  }
};

// Runs all tasks beside each other. They begin in the order given, each until it first waits; inside many groups and
// tasks that start each other, in the next turn. Returns their results in
// the same order: a tuple, or a vector; void is std::monostate. If a task throws, the group cancels the others, waits
// for them and rethrows the first exception. A Result that is an error cancels nothing.
// Cost: for tasks given one by one, no allocation except their frames.
template <typename... Ts>
AllOf<Ts...> when_all(Task<Ts>... tasks) noexcept {
  return AllOf<Ts...>(detail::TaskGroup::Until::all, std::move(tasks)...);
}
template <typename T>
AllOfVector<T> when_all(std::vector<Task<T>> tasks) {
  return AllOfVector<T>(detail::TaskGroup::Until::all, std::move(tasks));
}
// The same for awaiters, or tasks and awaiters: `co_await when_all(runtime.call(1, f), runtime.call(2, g))`. A named
// awaiter outlives the await. Cost: a frame for each awaiter.
template <typename... As>
  requires detail::MixedGroup<As...>
AllOf<detail::AwaitedValue<As>...> when_all(As&&... members) {
  return AllOf<detail::AwaitedValue<As>...>(detail::TaskGroup::Until::all,
                                            detail::as_task<As>(std::forward<As>(members))...);
}
template <typename A>
  requires(!detail::kIsTask<A> && detail::GroupMember<A>)
AllOfVector<detail::AwaitedValue<A>> when_all(std::vector<A> awaiters) {
  return when_all(detail::as_tasks(std::move(awaiters)));
}

// Runs the tasks until one has ended, then cancels the others and waits for them. Returns the first task's result: a
// variant whose index() names the task, or for a vector a First (invalid_argument: the vector is empty). Rethrows the
// first task's exception. The results and exceptions of the others are dropped. So a task that must not lose a value
// takes it only after it was resumed without kCancelled.
template <typename... Ts>
  requires(sizeof...(Ts) > 0)
AnyOf<Ts...> when_any(Task<Ts>... tasks) noexcept {
  return AnyOf<Ts...>(detail::TaskGroup::Until::first, std::move(tasks)...);
}
template <typename T>
AnyOfVector<T> when_any(std::vector<Task<T>> tasks) {
  return AnyOfVector<T>(detail::TaskGroup::Until::first, std::move(tasks));
}
// The same for awaiters, see when_all(): `co_await when_any(read(), sleep(1s))`.
template <typename... As>
  requires detail::MixedGroup<As...>
AnyOf<detail::AwaitedValue<As>...> when_any(As&&... members) {
  return AnyOf<detail::AwaitedValue<As>...>(detail::TaskGroup::Until::first,
                                            detail::as_task<As>(std::forward<As>(members))...);
}
template <typename A>
  requires(!detail::kIsTask<A> && detail::GroupMember<A>)
AnyOfVector<detail::AwaitedValue<A>> when_any(std::vector<A> awaiters) {
  return when_any(detail::as_tasks(std::move(awaiters)));
}

}  // namespace weft::rt
