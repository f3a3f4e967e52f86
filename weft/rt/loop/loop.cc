// SPDX-License-Identifier: MIT
#include "weft/rt/loop/loop.h"

#include <algorithm>
#include <new>

#include "weft/base/injected_delay.h"
#include "weft/sys/clock.h"
#include "weft/sys/cpu.h"
#include "weft/sys/fence.h"
#include "weft/sys/fork.h"
#include "weft/sys/signals.h"

namespace weft::rt {

namespace {
constinit thread_local Loop* this_threads_loop = nullptr;
}  // namespace

Loop* Loop::current() noexcept { return this_threads_loop; }

Result<std::unique_ptr<Loop>> Loop::make(const char* thread_name, const sys::ThreadOptions& thread_options,
                                         sys::PollerKind kind) {
  try {
    auto poller = WEFT_TRY(sys::make_poller(kind));
    std::unique_ptr<Loop> made(new (std::nothrow) Loop(std::move(poller), thread_name, thread_options));
    if (made != nullptr) {
      return made;
    }
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as below
  }
  return Error(Errc::resource_exhausted, "no memory for a loop");
}

Loop::Loop(sys::MadePoller poller, const char* thread_name, const sys::ThreadOptions& thread_options)
    : poller_(std::move(poller.poller)),
      poller_choice_(poller.choice),
      timers_(sys::now()),
      now_(sys::now()),
      thread_{.name = thread_name, .options = thread_options} {}

Loop::~Loop() {
  mail_.stop();
  wait_for_end();
  if (thread_.runs_in.load(std::memory_order_acquire) == Thread::callers &&
      thread_.over.load(std::memory_order_acquire)) {
    while (!thread_.left.load(std::memory_order_acquire)) {
      sys::yield();  // until the thread of run() has done its last step with the loop, which is a wake-up
    }
  }
  thread_.own.join();
  if (!elsewhere()) {  // else the mailbox's lock may be held for ever
    close_mail();
  }
}

// Beside its operator delete, which GCC does not match with the global operator new.
[[gnu::noinline]] void* Loop::operator new(std::size_t size, const std::nothrow_t& tag) noexcept {
  return ::operator new(size, tag);
}
void Loop::operator delete(void* memory, const std::nothrow_t& tag) noexcept { ::operator delete(memory, tag); }
// The thread that runs the loop destroys it, when the call that is under way has returned and the loop has ended.
void Loop::operator delete(Loop* loop, std::destroying_delete_t /*tag*/) noexcept {
  if (loop->runs_around_this_call()) {
    loop->hook_ = nullptr;
    loop->orphan_ = true;
    if (!loop->elsewhere()) {  // else the parent's poller would lose them
      loop->release_descriptors();
    }
    loop->timers_.silence();
    loop->mail_.stop();
    return;
  }
  loop->~Loop();
  ::operator delete(static_cast<void*>(loop));
}

// Whether a call of this loop is under way in this thread, perhaps outside of another loop's.
bool Loop::runs_around_this_call() const noexcept {
  const Loop* loop = this_threads_loop;
  while (loop != nullptr && loop != this) {
    loop = loop->outer_;
  }
  return loop != nullptr;
}

// Whether the thread that runs the loop is in the parent of this process.
bool Loop::elsewhere() const noexcept {
  return thread_.runs_in.load(std::memory_order_acquire) != Thread::none && thread_.birth.elsewhere();
}

Result<void> Loop::claim(TurnHook* hook) noexcept {
  if (thread_.begun.exchange(true, std::memory_order_relaxed)) {
    return Error(Errc::invalid_state, "the loop was started before");
  }
  hook_ = hook;
  thread_.birth = sys::Birth();
  return {};
}

Result<void> Loop::start(TurnHook* hook) noexcept {
  WEFT_TRY(claim(hook));
  const sys::SignalsBlocked blocked;  // signals are for the application's threads
  auto started = sys::Thread::start(
      [](void* argument) {
        auto* const self = static_cast<Loop*>(argument);
        self->run_turns();
        self->end_thread();
      },
      this);
  if (!started) {
    thread_.begun.store(false, std::memory_order_relaxed);
    return started.error();
  }
  thread_.own = std::move(started).value();
  thread_.runs_in.store(Thread::own, std::memory_order_release);  // pairs with the acquire in wait_for_end()
  return {};
}

Result<void> Loop::run(TurnHook* hook, sync::WaitMode mode, const LatencyOptions& latency) noexcept {
  WEFT_TRY(claim(hook));
  wait_mode_ = mode;
  poll_budget_.set(latency);
  poll_every_ = kPollEvery;
  thread_.runs_in.store(Thread::callers, std::memory_order_release);  // pairs with the acquire in wait_for_end()
  run_turns();
  end_thread();
  return {};
}

// Last: another thread may destroy the loop then.
void Loop::end_thread() noexcept {
  if (orphan_) {
    while (thread_.runs_in.load(std::memory_order_acquire) == Thread::none) {
      sys::yield();  // start() has not returned in its thread
    }
    thread_.over.store(true, std::memory_order_relaxed);
    thread_.left.store(true, std::memory_order_relaxed);
    delete this;
    return;
  }
  thread_.over.store(true, std::memory_order_release);  // pairs with the acquire in wait_for_end()
  thread_.end.wake_with_fence();
  thread_.left.store(true, std::memory_order_release);  // pairs with the acquire in ~Loop()
}

void Loop::stop() {
  mail_.stop();
  if (thread_.runs_in.load(std::memory_order_acquire) == Thread::own) {
    wait_for_end();
  }
}

// Does not wait in a call of the loop, and in a forked child, which does not have the thread.
void Loop::wait_for_end() noexcept {
  if (thread_.runs_in.load(std::memory_order_acquire) == Thread::none || thread_.birth.elsewhere()) {
    return;
  }
  while (!thread_.over.load(std::memory_order_acquire) && !runs_around_this_call()) {
    const auto ticket = thread_.end.announce_futex(false);
    if (!thread_.over.load(std::memory_order_acquire)) {
      thread_.end.sleep(ticket, Duration(-1));
    }
  }
}

void Loop::post(Job job) {
  if (const auto taken = try_post(job); !taken && taken.error() == Errc::resource_exhausted) [[unlikely]] {
    throw std::bad_alloc();
  }
}

Result<void> Loop::try_post(Job& job) noexcept {
  using Post = Mailbox<Job>::Post;
  if (elsewhere()) {  // the lock may be held for ever
    return Error(Errc::closed, "a forked child does not have the loop's thread");
  }
  switch (job ? mail_.post(job) : Post::no_memory) {
    case Post::done: return {};
    case Post::closed: return Error(Errc::closed, "the loop has ended");
    case Post::no_memory: break;
  }
  return Error(Errc::resource_exhausted, "no memory for the job");
}

namespace {
constexpr Error kStrange(Errc::invalid_state, "descriptors are watched in the loop's thread");
}  // namespace

// Whether the loop runs, or has run, in another thread.
bool Loop::is_strange() const noexcept {
  return thread_.id.load(std::memory_order_acquire) != std::thread::id() && !on_loop_thread();
}

Result<Loop::WatchId> Loop::watch(int fd, sys::Interest interest, bool edge_triggered, Watcher* watcher) {
  if (is_strange()) {
    return kStrange;
  }
  if (watcher == nullptr) {
    return Error(Errc::invalid_argument, "a descriptor is watched by a watcher");
  }
  if (free_slots_.empty() && !add_slot()) {
    return Error(Errc::resource_exhausted, "no memory to watch a descriptor");
  }
  const std::uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[index];
  const WatchId id = (static_cast<WatchId>(slot.generation) << 32) | index;
  if (auto added = poller_->add(fd, interest, edge_triggered, id); !added) {
    free_slots_.push_back(index);
    return added.error();
  }
  slot.watcher = watcher;
  slot.fd = fd;
  return id;
}

// Every slot has a place in free_slots_, so that unwatch() needs no memory.
bool Loop::add_slot() noexcept {
  try {
    if (free_slots_.capacity() == slots_.size()) {
      free_slots_.reserve(std::max<std::size_t>(16, 2 * slots_.size()));
    }
    slots_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  free_slots_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  return true;
}

Loop::Slot* Loop::find(WatchId id) noexcept {
  const auto index = static_cast<std::uint32_t>(id);
  if (id == 0 || index >= slots_.size() || slots_[index].generation != static_cast<std::uint32_t>(id >> 32) ||
      slots_[index].watcher == nullptr) {
    return nullptr;
  }
  return &slots_[index];
}

Result<void> Loop::rewatch(WatchId id, sys::Interest interest, bool edge_triggered) {
  if (is_strange()) {
    return kStrange;
  }
  Slot* slot = find(id);
  if (slot == nullptr) {
    return Error(Errc::invalid_argument, "no watch has this id");
  }
  return poller_->modify(slot->fd, interest, edge_triggered, id);
}

void Loop::unwatch(WatchId id) noexcept {
  Slot* slot = find(id);
  if (slot == nullptr) {
    return;
  }
  (void)poller_->remove(slot->fd);  // fails only for a descriptor that is already closed, and so not watched any more
  slot->watcher = nullptr;
  slot->generation = slot->generation == UINT32_MAX - 1 ? 1 : slot->generation + 1;
  free_slots_.push_back(static_cast<std::uint32_t>(id));
}

// Returns false if the call threw.
template <typename Call>
bool Loop::guard(Call call) noexcept {
  try {
    call();
    return true;
  } catch (...) {
    counters_.threw.add();
    detail::handle_exception(on_exception_);
    return false;
  }
}

void Loop::dispatch(const sys::PollEvent& event) noexcept {
  if (Slot* slot = find(event.tag); slot != nullptr) {
    guard([&] { slot->watcher->handle_event(event); });
  }
}

bool Loop::run_jobs() noexcept {
  if (!mail_.open(opened_)) {
    return false;
  }
  for (Job& job : opened_) {
    guard([&job] { job(); });
  }
  const std::size_t ran = opened_.size();
  opened_.clear();
  jobs_ran_ += ran;  // after their ends, which may post
  return true;
}

void Loop::run_timers() noexcept {
  constexpr std::size_t kTimersPerTurn = 256;
  guard([&] { timers_.advance(now_, kTimersPerTurn); });  // those that are left are due in the next turn
}

Instant Loop::run_hook() noexcept {
  if (hook_ == nullptr) {
    return kNever;
  }
  Instant wanted = now_ + kNapMax;  // of a hook that throws
  guard([&] { wanted = hook_->handle_turn(now_); });
  return wanted;
}

// It is also the loop's own part of the last check before a sleep.
bool Loop::has_mail() const noexcept { return mail_.has_work() || tasks_.has_posted(); }

// Whether stop() was called and all coroutines have ended.
bool Loop::ended() noexcept {
  if (!mail_.saw_stop()) [[likely]] {
    if (!mail_.see_stop()) [[likely]] {
      return false;
    }
    run_jobs();
    tasks_.cancel_all();
  }
  return tasks_.idle();
}

// Shows the sleep to the other threads, then checks for work once more. Returns false if the loop must not sleep.
bool Loop::announce_sleep(Duration timeout) noexcept {
  const bool nap = timeout >= Duration::zero() && timeout <= kNapMax;
  mail_.announce(nap);
  if (has_mail()) {
    return false;
  }
  return hook_ == nullptr || ((nap || !hook_->has_work()) && hook_->may_sleep());
}

// The time to spin in this wait.
Duration Loop::spin_time(Duration timeout) noexcept {
  Duration time = std::chrono::microseconds(spin_budget_.budget_us(wait_mode_));
  if (wait_mode_ == sync::WaitMode::latency && time != Duration::zero()) {
    time = poll_budget_.allowed(now_);
  }
  return timeout > Duration::zero() ? std::min(time, timeout) : time;
}

// Spins before a sleep: checks the mailboxes kChecksPerPoll times, then polls the descriptors once and yields.
bool Loop::spin_for_work(Duration timeout, std::size_t& event_count) {
  constexpr int kChecksPerPoll = 16;
  const auto budget_us = static_cast<std::uint64_t>(spin_time(timeout) / std::chrono::microseconds(1));
  if (budget_us == 0) {
    return false;
  }
  const Instant begin = sys::now();
  const auto mailed = [this] { return (hook_ != nullptr && hook_->has_work()) || has_mail(); };
  sync::SpinTurns turns(budget_us);
  bool found = false;
  while (!found && turns.begin()) {
    for (int i = 0; i < kChecksPerPoll && !found; ++i) {
      sys::pause();
      found = mailed();
    }
    if (!found) {
      event_count = poll(Duration::zero());
      found = event_count != 0;
    }
    if (!found) {
      turns.give_way();
    }
  }
  spin_budget_.record(turns.end(found));
  const Duration polled = sys::now() - begin;
  poll_budget_.spend(polled);
  counters_.polled_ns.add(static_cast<std::uint64_t>(polled.count()));
  return found;
}

std::size_t Loop::poll(Duration timeout) { return poller_->wait(events_, timeout).value_or(std::size_t{0}); }

void Loop::wait(Instant wanted) {
  const Duration timeout = time_left(wanted, now_);
  if (timeout != Duration::zero()) {
    activity()->end_turn();
    activity()->note_lag(sys::now() - works_since_);
  }
  std::size_t count = 0;
  const bool found = timeout != Duration::zero() && spin_for_work(timeout, count);
  if (!found && timeout != Duration::zero()) {
    const bool parks = announce_sleep(timeout);
    counters_.parks.add(parks ? 1 : 0);
    count = poll(parks ? timeout : Duration::zero());
    mail_.end_sleep();
  } else if (count == 0) {
    const Instant now = found ? sys::now() : now_;
    works_since_ = found ? now : works_since_;
    if (now - polled_at_ < poll_every_) {
      return;
    }
    count = poll(Duration::zero());
  }
  now_ = sys::now();
  if (timeout == Duration::zero()) {
    activity()->note_lag(now_ - works_since_);
  }
  polled_at_ = works_since_ = now_;
  activity()->begin_turn(now_);
  dispatch_all(count);
}

void Loop::dispatch_all(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    dispatch(events_[i]);
  }
}

// A timer that is late by as much was held up, by a handler or by other programs. A peer's bytes, for which the timer
// waits, may have come meanwhile, so events go first.
constexpr Duration kHeldUp = std::chrono::milliseconds(1);

void Loop::turn() noexcept {
  injected_delay();
  now_ = sys::now();
  activity()->begin_turn(now_);
  const bool ran_jobs = run_jobs();
  if (time_left(now_, timers_due_) > kHeldUp) [[unlikely]] {
    dispatch_all(poll(Duration::zero()));
  }
  run_timers();
  tasks_.turn();
  const Instant hook_wants = run_hook();
  const bool has_work = ran_jobs || tasks_.has_ready() || (mail_.saw_stop() && tasks_.idle());
  timers_due_ = orphan_ ? kNever : timers_.next_deadline();
  wait(has_work ? now_ : std::min(hook_wants, timers_due_));
}

void Loop::run_turns() noexcept {
  outer_ = std::exchange(this_threads_loop, this);
  thread_.id.store(std::this_thread::get_id(), std::memory_order_release);
  if (thread_.name != nullptr) {
    sys::set_up_thread(thread_.name, thread_.options);
  }
  works_since_ = sys::now();
  while (!ended()) {
    turn();
  }
  run_jobs();
  while (!tasks_.idle()) {
    turn();
  }
  close_mail();
  while (!tasks_.idle()) {  // a dropped job's destructor may have spawned a task
    turn();
  }
  release_descriptors();
  activity()->end_turn();
  this_threads_loop = outer_;
}

// Drops the jobs that are left outside the mutex: a destructor may post, and is refused.
void Loop::close_mail() noexcept {
  std::vector<Job> left;
  mail_.close(left);
}

// A watcher may close its descriptor on another thread when this one has ended. So the poller drops all of them here.
void Loop::release_descriptors() {
  for (Slot& slot : slots_) {
    if (std::exchange(slot.watcher, nullptr) != nullptr) {
      (void)poller_->remove(slot.fd);
    }
  }
}

}  // namespace weft::rt
