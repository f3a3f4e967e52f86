// SPDX-License-Identifier: MIT
#include "tests/support/model_explorer.h"

#include <bit>
#include <cstdio>
#include <string_view>

#include "weft/base/assert.h"

namespace weft::model {

namespace {

Explorer* active = nullptr;

constexpr unsigned bit(int thread) noexcept { return 1u << thread; }
constexpr int kRedundant = -1;

}  // namespace

bool Pending::commutes_with(const Pending& other) const noexcept {
  const bool same_place = location >= 0 && location == other.location && (writes || other.writes);
  const bool ordered =
      order != Order::none && other.order != Order::none && (order == Order::total || other.order == Order::total);
  return !same_place && !ordered;
}

Explorer* Explorer::current() noexcept { return active; }

Explorer::Explorer(Options options) : options_(options) {
  for (int i = 0; i < static_cast<int>(kThreadsMax); ++i) {
    starts_[i] = {this, i};
    threads_[i].fiber = std::make_unique<Fiber>(&Explorer::run_fiber, &starts_[i]);
  }
}

Outcome Explorer::run(const std::function<void()>& scenario) {
  threads_[0].body = {[](void* context) { (*static_cast<const std::function<void()>*>(context))(); },
                      const_cast<std::function<void()>*>(&scenario)};
  Outcome outcome;
  WEFT_ASSERT(active == nullptr);
  active = this;
  bool more = true;
  while (more && failure_.empty() && outcome.executions < options_.executions_max) {
    execute();
    ++outcome.executions;
    more = backtrack();
  }
  active = nullptr;
  outcome.complete = !more && failure_.empty();
  outcome.failure = failure_.empty() ? "" : failure_ + "\n" + render_trace();
  return outcome;
}

void Explorer::run_fiber(void* start) {
  const auto [explorer, thread] = *static_cast<FiberStart*>(start);
  for (;;) {
    const detail::Body body = explorer->threads_[thread].body;
    body.run(body.context);
    explorer->finish_thread();
  }
}

void Explorer::execute() {
  memory_.reset();
  heap_.reset();
  trace_.clear();
  depth_ = 0;
  preemptions_ = 0;
  asleep_ = 0;
  running_ = 0;
  abandoned_ = false;
  for (Thread& thread : threads_) {
    thread.state = State::absent;
  }
  threads_[0].state = State::ready;
  current_ = 0;
  root_.switch_to(*threads_[0].fiber);
  if (abandoned_) {
    for (Thread& thread : threads_) {
      if (thread.state != State::absent) {
        thread.fiber->restart();
      }
    }
  } else {
    WEFT_ASSERT(depth_ == path_.size());
    if (heap_.leaks()) {
      failure_ = "memory is leaked";
    }
  }
}

bool Explorer::backtrack() {
  path_.resize(depth_);
  while (!path_.empty()) {
    Decision& last = path_.back();
    if (!last.schedules) {
      if (last.chosen + 1 < last.count) {
        ++last.chosen;
        return true;
      }
    } else {
      last.tried = static_cast<std::uint8_t>(last.tried | bit(last.chosen));
      if (const unsigned left = last.open & ~last.tried; left != 0) {
        last.chosen = static_cast<std::uint8_t>(std::countr_zero(left));
        return true;
      }
    }
    path_.pop_back();
  }
  return false;
}

// --- decisions ---

int Explorer::choose(int count) {
  WEFT_ASSERT(count > 0 && count < 256);
  if (count == 1) {
    return 0;
  }
  if (depth_ == path_.size()) {
    path_.push_back({false, 0, static_cast<std::uint8_t>(count), 0, 0});
  }
  const Decision& decision = path_[depth_++];
  WEFT_ASSERT(!decision.schedules && decision.count == count);
  return decision.chosen;
}

int Explorer::pick(unsigned enabled) {
  const bool goes_on = (enabled & bit(current_)) != 0;
  unsigned open = enabled & ~asleep_;
  if (options_.preemptions != Options::kNoBound && goes_on && preemptions_ == options_.preemptions) {
    open = bit(current_);
  }
  if (open == 0) {
    return kRedundant;
  }
  int next = std::countr_zero(open);
  unsigned tried = 0;
  if (!std::has_single_bit(open)) {
    if (depth_ == path_.size()) {
      const int first = (open & bit(current_)) != 0 ? current_ : next;
      path_.push_back({true, static_cast<std::uint8_t>(first), 0, static_cast<std::uint8_t>(open), 0});
    }
    const Decision& decision = path_[depth_++];
    WEFT_ASSERT(decision.schedules && decision.open == open);
    next = decision.chosen;
    tried = decision.tried;
  }
  preemptions_ += goes_on && next != current_ ? 1 : 0;
  if (options_.preemptions == Options::kNoBound) {
    update_sleep(asleep_ | tried, next);
  }
  return next;
}

// Threads that could have gone first, and were explored so, need not go before something depends on them.
void Explorer::update_sleep(unsigned candidates, int next) {
  asleep_ = 0;
  for (int i = 1; i < static_cast<int>(kThreadsMax); ++i) {
    if ((candidates & bit(i)) != 0 && i != next && threads_[i].pending.commutes_with(threads_[next].pending)) {
      asleep_ |= bit(i);
    }
  }
}

void Explorer::schedule() {
  unsigned enabled = 0;
  for (int i = 0; i < static_cast<int>(kThreadsMax); ++i) {
    enabled |= threads_[i].state == State::ready ? bit(i) : 0;
  }
  if (enabled == 0) {
    fail("every thread sleeps: a wake-up was lost");
  }
  const int next = pick(enabled);
  if (next == kRedundant) {
    abandon();
  }
  switch_to(next);
}

void Explorer::switch_to(int thread) {
  if (thread != current_) {
    Fiber& from = *threads_[current_].fiber;
    current_ = thread;
    from.switch_to(*threads_[thread].fiber);
  }
}

// --- threads ---

void Explorer::before(const Pending& pending) {
  threads_[current_].pending = pending;
  if (starting_) {
    switch_to(0);
  } else if (running_ > 0) {
    schedule();
  }
  if (trace_.size() > kStepsMax) {
    fail("the scenario does not end");
  }
}

void Explorer::block_on(LocationId location) {
  Thread& thread = threads_[current_];
  thread.state = State::blocked;
  thread.blocked_on = location;
  thread.pending = {location, true, Pending::Order::none};  // the thread reads again when it continues
  if (running_ == 0) {
    fail("the scenario itself waits");
  }
  schedule();
}

void Explorer::wake(LocationId location) {
  for (Thread& thread : threads_) {
    if (thread.state == State::blocked && thread.blocked_on == location) {
      thread.state = State::ready;
    }
  }
}

void Explorer::run_bodies(const detail::Body* bodies, int count) {
  WEFT_ASSERT(current_ == 0 && running_ == 0 && count < static_cast<int>(kThreadsMax));
  running_ = count;
  starting_ = true;  // each thread runs up to its first operation: code before that commutes with everything
  for (int i = 1; i <= count; ++i) {
    memory_.fork(0, i);
    threads_[i].body = bodies[i - 1];
    threads_[i].state = State::ready;
    switch_to(i);
  }
  starting_ = false;
  if (running_ > 0) {
    threads_[0].state = State::joining;
    schedule();
  }
  asleep_ = 0;
  for (int i = 1; i <= count; ++i) {
    memory_.join(0, i);
  }
}

void Explorer::finish_thread() {
  threads_[current_].state = State::finished;
  if (current_ == 0) {
    threads_[0].fiber->switch_to(root_);
    return;
  }
  --running_;
  if (starting_) {
    switch_to(0);
    return;
  }
  if (running_ == 0) {
    threads_[0].state = State::ready;
  }
  schedule();
}

void Explorer::abandon() {
  abandoned_ = true;
  threads_[current_].fiber->switch_to(root_);
  std::abort();  // no fiber switches back
}

void Explorer::fail(const char* what) {
  failure_ = what;
  abandon();
}

// --- the report ---

namespace {

const char* name_of(std::memory_order order) noexcept {
  switch (order) {
    case std::memory_order_relaxed: return "relaxed";
    case std::memory_order_consume:
    case std::memory_order_acquire: return "acquire";
    case std::memory_order_release: return "release";
    case std::memory_order_acq_rel: return "acq_rel";
    default: return "seq_cst";
  }
}

}  // namespace

std::string Explorer::render_trace() const {
  std::string text;
  for (const Step& step : trace_) {
    char line[256];
    const char* file = step.where.file_name();
    if (step.location >= 0) {
      std::snprintf(line, sizeof line, "  thread %d  %s:%u  atomic %d  %s(%s) %lld -> %lld\n", step.thread, file,
                    step.where.line(), step.location, step.name, name_of(step.order),
                    static_cast<long long>(step.before), static_cast<long long>(step.after));
    } else {
      std::snprintf(line, sizeof line, "  thread %d  %s:%u  %s\n", step.thread, file, step.where.line(), step.name);
    }
    text += line;
  }
  return text;
}

}  // namespace weft::model
