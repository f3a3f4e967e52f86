// SPDX-License-Identifier: MIT
#include "weft/sys/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "weft/sys/call.h"
#include "weft/sys/cpu.h"
#include "weft/sys/fork.h"

namespace weft::sys {

namespace {

constexpr int kHighestNice = -20;

struct Work {
  void (*run)(void*);
  void* argument;
};

bool is_real_time(int policy) noexcept { return policy == SCHED_FIFO || policy == SCHED_RR; }

// In all of these calls Linux takes 0 for the calling thread, not for the process.
void schedule(int wanted_policy, int priority) noexcept {
  const int policy = wanted_policy >= 0 ? wanted_policy : ::sched_getscheduler(0);
  sched_param parameters{};
  if (is_real_time(policy)) {
    parameters.sched_priority = std::max(priority, ::sched_get_priority_min(policy));
  }
  (void)::sched_setscheduler(0, policy, &parameters);
  if (priority > 0 && !is_real_time(policy)) {
    (void)::setpriority(PRIO_PROCESS, 0, kHighestNice);
  }
}

void pin(const std::bitset<ThreadOptions::kCpusMax>& cpus) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (std::size_t cpu = 0; cpu < std::min<std::size_t>(cpus.size(), CPU_SETSIZE); ++cpu) {
    if (cpus[cpu]) {
      CPU_SET(cpu, &set);
    }
  }
  (void)::sched_setaffinity(0, sizeof set, &set);
}

void* run_work(void* pointer) {
  const Work work = *std::unique_ptr<Work>(static_cast<Work*>(pointer));
  work.run(work.argument);
  return nullptr;
}

}  // namespace

void set_up_thread(const char* name, const ThreadOptions& options) noexcept {
  char full[64];
  const bool prefixed = options.name_prefix[0] != '\0';
  std::snprintf(full, sizeof full, "%s%s%s", options.name_prefix, prefixed ? "/" : "", name);
  name_thread(full);
  // By default the kernel extends a sleep with a timeout by up to 50 us.
  (void)::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  if (options.policy >= 0 || options.priority >= 0) {
    schedule(options.policy, options.priority);
  }
  if (options.cpus.any()) {
    pin(options.cpus);
  }
}

Result<Thread> Thread::start(void (*run)(void*), void* argument) noexcept {
  std::unique_ptr<Work> work(new (std::nothrow) Work{run, argument});
  if (work == nullptr) {
    return Errc::resource_exhausted;
  }
  Thread thread;
  if (const int failed = ::pthread_create(&thread.id_, nullptr, &run_work, work.get()); failed != 0) {
    return Error(Errc::resource_exhausted, "starting a thread", failed);
  }
  (void)work.release();  // the new thread owns it
  thread.birth_ = Birth();
  thread.joinable_ = true;
  return thread;
}

Thread::Thread(Thread&& other) noexcept
    : id_(other.id_), birth_(other.birth_), joinable_(std::exchange(other.joinable_, false)) {}

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    join();
    id_ = other.id_;
    birth_ = other.birth_;
    joinable_ = std::exchange(other.joinable_, false);
  }
  return *this;
}

void Thread::join_cancellably() {
  if (joinable_ && !birth_.elsewhere() && ::pthread_equal(id_, ::pthread_self()) == 0) {
    ::pthread_join(id_, nullptr);
    joinable_ = false;
  }
  join();
}

void Thread::join() noexcept {
  if (!std::exchange(joinable_, false) || birth_.elsewhere()) {
    return;
  }
  if (::pthread_equal(id_, ::pthread_self()) != 0) {
    ::pthread_detach(id_);
  } else {
    const CancellationOff off;  // pthread_join() is a cancellation point
    ::pthread_join(id_, nullptr);
  }
}

}  // namespace weft::sys
