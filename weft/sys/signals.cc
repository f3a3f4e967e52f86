// SPDX-License-Identifier: MIT
#include "weft/sys/signals.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "weft/sys/clock.h"

namespace weft::sys {

namespace {

constexpr Duration kLongestWait = std::chrono::hours(1);  // then it waits again

sigset_t end_signals(bool hang_up) noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  if (hang_up) {
    ::sigaddset(&set, SIGHUP);
  }
  return set;
}

// Waits for a signal of the set and takes it. Returns 0 at the deadline.
int take_signal(const sigset_t& set, Instant deadline) noexcept {
  for (;;) {
    const Duration until = time_left(deadline, now());
    const Duration left = until < Duration::zero() ? kLongestWait : std::min(until, kLongestWait);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    const timespec timeout{static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
    if (const int taken = ::sigtimedwait(&set, nullptr, &timeout); taken > 0) {
      return taken;
    }
    if (now() >= deadline) {
      return 0;
    }
  }
}

}  // namespace

SignalsBlocked::SignalsBlocked() noexcept {
  static_assert(sizeof(sigset_t) <= sizeof previous_);
  sigset_t all;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGPROF}) {
    ::sigdelset(&all, fault);
  }
  sigset_t previous;
  ::pthread_sigmask(SIG_BLOCK, &all, &previous);
  std::memcpy(previous_.data(), &previous, sizeof previous);
}

SignalsBlocked::~SignalsBlocked() {
  sigset_t previous;
  std::memcpy(&previous, previous_.data(), sizeof previous);
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

EndSignals::EndSignals(bool hang_up) noexcept : hang_up_(hang_up) {
  static_assert(sizeof(sigset_t) <= sizeof previous_.bytes);
  const sigset_t set = end_signals(hang_up);
  sigset_t previous;
  ::pthread_sigmask(SIG_BLOCK, &set, &previous);
  std::memcpy(previous_.bytes.data(), &previous, sizeof previous);
}

EndSignals::~EndSignals() {
  sigset_t previous;
  std::memcpy(&previous, previous_.bytes.data(), sizeof previous);
  ::pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

bool EndSignals::wait_until(Instant deadline) noexcept { return take_signal(end_signals(false), deadline) != 0; }

EndSignals::Taken EndSignals::take_until(Instant deadline) noexcept {
  const int taken = take_signal(end_signals(hang_up_), deadline);
  return taken == 0 ? Taken::none : taken == SIGHUP ? Taken::hang_up : Taken::end;
}

}  // namespace weft::sys
