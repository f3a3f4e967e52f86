// SPDX-License-Identifier: MIT
#pragma once

#include <mutex>

#include "weft/sync/thread_safety.h"

namespace weft::sync {

// StdMutex: std::mutex, as a lock that clang checks (thread_safety.h). `Mutex` (mutex.h) is for data that one thread
// locks nearly always.
class WEFT_CAPABILITY("mutex") StdMutex {
 public:
  constexpr StdMutex() noexcept = default;
  StdMutex(const StdMutex&) = delete;
  StdMutex& operator=(const StdMutex&) = delete;

  void lock() WEFT_ACQUIRE() { mutex_.lock(); }
  [[nodiscard]] bool try_lock() WEFT_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() WEFT_RELEASE() { mutex_.unlock(); }
  // For Condition.
  [[nodiscard]] std::mutex& native() noexcept { return mutex_; }

 private:
  std::mutex mutex_;
};

// LockGuard, UniqueLock, ScopedLock: the guards of the standard library, for locks that clang checks. They take every
// Lockable, also the model checker's mutex.
template <typename Mutex>
class WEFT_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) WEFT_ACQUIRE(mutex) : mutex_(mutex) { mutex.lock(); }
  ~LockGuard() WEFT_RELEASE() { mutex_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Mutex& mutex_;
};

// A guard whose owner may unlock earlier and lock again.
template <typename Mutex>
class WEFT_SCOPED_CAPABILITY UniqueLock {
 public:
  explicit UniqueLock(Mutex& mutex) WEFT_ACQUIRE(mutex) : mutex_(mutex), locked_(true) { mutex.lock(); }
  UniqueLock(Mutex& mutex, std::defer_lock_t /*later*/) WEFT_EXCLUDES(mutex) : mutex_(mutex) {}
  ~UniqueLock() WEFT_RELEASE() {
    if (locked_) {
      mutex_.unlock();
    }
  }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;

  void lock() WEFT_ACQUIRE() {
    mutex_.lock();
    locked_ = true;
  }
  [[nodiscard]] bool try_lock() WEFT_TRY_ACQUIRE(true) {
    locked_ = mutex_.try_lock();
    return locked_;
  }
  void unlock() WEFT_RELEASE() {
    mutex_.unlock();
    locked_ = false;
  }
  [[nodiscard]] bool owns_lock() const noexcept { return locked_; }
  [[nodiscard]] Mutex& mutex() noexcept { return mutex_; }

 private:
  Mutex& mutex_;
  bool locked_ = false;
};

// Takes two locks. Two threads that name them in different orders do not block each other.
template <typename First, typename Second>
class WEFT_SCOPED_CAPABILITY ScopedLock {
 public:
  ScopedLock(First& first, Second& second) WEFT_ACQUIRE(first, second) : locks_(first, second) {}
  ~ScopedLock() WEFT_RELEASE() = default;
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;

 private:
  std::scoped_lock<First, Second> locks_;
};

// Releases a lock of the caller, and takes it again: for a call of foreign code in the middle of a function.
template <typename Mutex>
class WEFT_SCOPED_CAPABILITY Unlocked {
 public:
  explicit Unlocked(Mutex& mutex) WEFT_RELEASE(mutex) : mutex_(mutex) { mutex.unlock(); }
  ~Unlocked() WEFT_RELEASE() { mutex_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  Mutex& mutex_;
};

// States that the caller has the lock, where clang cannot see it: in a lambda, or behind a pointer to a function. The
// check takes it as a fact. Cost: nothing.
template <typename Mutex>
void assume_locked([[maybe_unused]] const Mutex& mutex) noexcept WEFT_ASSERTS(mutex) {}

}  // namespace weft::sync
