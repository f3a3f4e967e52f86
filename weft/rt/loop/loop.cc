// SPDX-License-Identifier: MIT
#include "weft/rt/loop/loop.h"

#include <algorithm>
#include <new>

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
  auto poller = WEFT_TRY(sys::make_poller(kind));
  return std::unique_ptr<Loop>(new Loop(std::move(poller), thread_name, thread_options));
}

Loop::Loop(sys::MadePoller poller, const char* thread_name, const sys::ThreadOptions& thread_options)
    : poller_(std::move(poller.poller)),
      poller_choice_(poller.choice),
      thread_name_(thread_name),
      thread_options_(thread_options),
      timers_(sys::now()),
      now_(sys::now()) {}

Loop::~Loop() {
  stop();
  thread_.join();
  if (!birth_.elsewhere()) {  // else the mailbox's lock may be held for ever
    close_mail();
  }
}

Result<void> Loop::start(TurnHook* hook) noexcept {
  hook_ = hook;
  const sys::SignalsBlocked blocked;  // signals are for the application's threads
  const auto run = [](void* argument) {
    auto* const self = static_cast<Loop*>(argument);
    self->run_turns();
    self->over_.store(true, std::memory_order_release);  // pairs with the acquire in stop()
    self->end_.wake_with_fence();
  };
  thread_ = WEFT_TRY(sys::Thread::start(run, this));
  birth_ = sys::Birth();
  started_.store(true, std::memory_order_release);  // pairs with the acquire in stop()
  return {};
}

void Loop::run(TurnHook* hook, sync::WaitMode mode) {
  hook_ = hook;
  wait_mode_ = mode;
  poll_every_ = kPollEvery;
  run_turns();
}

void Loop::stop() {
  stopping_.store(true, std::memory_order_release);  // pairs with the acquire in ended()
  poller_->wake();
  if (!started_.load(std::memory_order_acquire) || birth_.elsewhere()) {
    return;  // a forked child does not have the thread
  }
  while (!over_.load(std::memory_order_acquire) && !on_loop_thread()) {
    const auto ticket = end_.announce_futex(false);
    if (!over_.load(std::memory_order_acquire)) {
      end_.sleep(ticket, Duration(-1));
    }
  }
}

void Loop::post(Job job) {
  if (const auto taken = try_post(job); !taken && taken.error() == Errc::resource_exhausted) [[unlikely]] {
    throw std::bad_alloc();
  }
}

Result<void> Loop::try_post(Job& job) noexcept {
  constexpr Error kNoMemory(Errc::resource_exhausted, "no memory for the job");
  if (!job) [[unlikely]] {
    return kNoMemory;
  }
  {
    const std::lock_guard lock(mutex_);
    if (closed_) [[unlikely]] {
      return Error(Errc::closed, "the loop has ended");
    }
    try {
      mail_.push_back(std::move(job));
    } catch (const std::bad_alloc&) {
      return kNoMemory;
    }
    has_mail_.store(true, std::memory_order_relaxed);  // ordered by the mutex for the reader that takes it
  }
  wake_sleeper();
  return {};
}

void Loop::wake_sleeper() noexcept {
  sys::full_fence();  // pairs with the fence in announce_sleep(): the caller sees the sleep, or the loop sees the work
  if (sleep_.load(std::memory_order_relaxed) != Sleep::awake) {
    poller_->wake();
  }
}

void Loop::nudge() noexcept {
  sys::full_fence();  // pairs with the fence in announce_sleep()
  Sleep expected = Sleep::deep;
  // Relaxed: the exchange only elects one nudger for the wake. The poller orders the writes before it.
  if (sleep_.load(std::memory_order_relaxed) == Sleep::deep &&
      sleep_.compare_exchange_strong(expected, Sleep::awake, std::memory_order_relaxed)) {
    poller_->wake();
  }
}

Result<Loop::WatchId> Loop::watch(int fd, sys::Interest interest, bool edge_triggered, Watcher* watcher) {
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

void Loop::dispatch(const sys::PollEvent& event) {
  if (Slot* slot = find(event.tag); slot != nullptr) {
    slot->watcher->handle_event(event);
  }
}

bool Loop::run_jobs() {
  if (!has_mail_.load(std::memory_order_relaxed)) {
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    opened_.swap(mail_);
    has_mail_.store(false, std::memory_order_relaxed);
  }
  for (Job& job : opened_) {
    job();
  }
  opened_.clear();
  return true;
}

// The loop's own part of the last check before a sleep.
bool Loop::has_mail() const noexcept {
  return has_mail_.load(std::memory_order_relaxed) || tasks_.has_posted() ||
         (stopping_.load(std::memory_order_relaxed) && !ending_);
}

// Whether stop() was called and all coroutines have ended.
bool Loop::ended() {
  // Acquire pairs with the release in stop(): a job posted before stop() is in the mailbox.
  if (!ending_ && !stopping_.load(std::memory_order_acquire)) [[likely]] {
    return false;
  }
  if (!ending_) {
    ending_ = true;
    run_jobs();
    tasks_.cancel_all();
  }
  return tasks_.idle();
}

// Shows the sleep to the other threads, then checks for work once more. False: do not sleep.
bool Loop::announce_sleep(Duration timeout) noexcept {
  const bool nap = timeout >= Duration::zero() && timeout <= kNapMax;
  sleep_.store(nap ? Sleep::nap : Sleep::deep, std::memory_order_relaxed);
  sys::full_fence();  // pairs with the fences in wake_sleeper() and nudge()
  if (has_mail()) {
    return false;
  }
  return hook_ == nullptr || ((nap || !hook_->has_work()) && hook_->may_sleep());
}

// Spins before a sleep: checks the mailboxes kChecksPerPoll times, then polls the descriptors once and yields.
bool Loop::spin_for_work(Duration timeout, std::size_t& event_count) {
  constexpr int kChecksPerPoll = 16;
  std::uint64_t budget_us = spin_budget_.budget_us(wait_mode_);
  if (timeout > Duration::zero()) {
    budget_us = std::min(budget_us, static_cast<std::uint64_t>(timeout / std::chrono::microseconds(1)));
  }
  if (budget_us == 0) {
    return false;
  }
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
  return found;
}

std::size_t Loop::poll(Duration timeout) { return poller_->wait(events_, timeout).value_or(std::size_t{0}); }

void Loop::wait(Instant wanted) {
  const Duration timeout = time_left(wanted, now_);
  if (timeout != Duration::zero()) {
    activity()->end_turn();
  }
  std::size_t count = 0;
  const bool found = timeout != Duration::zero() && spin_for_work(timeout, count);
  if (!found && timeout != Duration::zero()) {
    count = poll(announce_sleep(timeout) ? timeout : Duration::zero());
    sleep_.store(Sleep::awake, std::memory_order_relaxed);
  } else if (count == 0) {
    if ((found ? sys::now() : now_) - polled_at_ < poll_every_) {
      return;
    }
    count = poll(Duration::zero());
  }
  now_ = sys::now();
  polled_at_ = now_;
  activity()->begin_turn(now_);
  for (std::size_t i = 0; i < count; ++i) {
    dispatch(events_[i]);
  }
}

void Loop::turn() {
  constexpr std::size_t kTimersPerTurn = 256;
  now_ = sys::now();
  activity()->begin_turn(now_);
  const bool ran_jobs = run_jobs();
  timers_.advance(now_, kTimersPerTurn);  // timers beyond the limit are due in the next turn
  tasks_.turn();
  const Instant hook_wants = hook_ != nullptr ? hook_->handle_turn(now_) : kNever;
  const bool has_work = ran_jobs || tasks_.has_ready() || (ending_ && tasks_.idle());
  wait(has_work ? now_ : std::min(hook_wants, timers_.next_deadline()));
}

void Loop::run_turns() {
  this_threads_loop = this;
  thread_id_.store(std::this_thread::get_id(), std::memory_order_release);
  if (thread_name_ != nullptr) {
    sys::set_up_thread(thread_name_, thread_options_);
  }
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
  this_threads_loop = nullptr;
}

// Drops the jobs that are left outside the mutex: a destructor may post, and is refused.
void Loop::close_mail() noexcept {
  std::vector<Job> left;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    left.swap(mail_);
    has_mail_.store(false, std::memory_order_relaxed);
  }
}

// A watcher may close its descriptor on another thread when this one has ended. So the poller drops all of them here.
void Loop::release_descriptors() {
  for (const Slot& slot : slots_) {
    if (slot.watcher != nullptr) {
      (void)poller_->remove(slot.fd);
    }
  }
}

}  // namespace weft::rt
