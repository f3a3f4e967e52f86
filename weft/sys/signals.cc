// SPDX-License-Identifier: MIT
#include "weft/sys/signals.h"

#include <signal.h>

#include <cstring>

namespace weft::sys {

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

}  // namespace weft::sys
