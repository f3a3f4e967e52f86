// SPDX-License-Identifier: MIT
#pragma once

// Attributes by which clang checks locks; `./dev lint` runs the check. Other compilers ignore them.
// A capability is a lock, or another right that one thread has at a time: a baton, a side of a socket.
//   std::size_t size_ WEFT_GUARDED_BY(mutex_) = 0;      // read and written with the lock only
//   Item* first_ WEFT_PT_GUARDED_BY(mutex_) = nullptr;  // the object at the pointer
//   void grow() WEFT_REQUIRES(mutex_);                  // the caller has the lock
//   void stop() WEFT_EXCLUDES(mutex_);                  // the caller does not have it: stop() takes it
//   sync::StdMutex first_mutex_ WEFT_ACQUIRED_BEFORE(second_mutex_);
// clang checks a lambda as a function of its own, which has no lock: assume_locked() (lock.h). It does not check
// constructors and destructors. A function beyond the check has WEFT_NOT_CHECKED, and a comment with the reason.
#if defined(__clang__)
#define WEFT_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define WEFT_THREAD_SAFETY(attribute)
#endif

// Of classes: a lock, by the word for it in a message; a guard, which has the lock as long as it lives.
#define WEFT_CAPABILITY(name) WEFT_THREAD_SAFETY(capability(name))
#define WEFT_SCOPED_CAPABILITY WEFT_THREAD_SAFETY(scoped_lockable)

// Of members.
#define WEFT_GUARDED_BY(lock) WEFT_THREAD_SAFETY(guarded_by(lock))
#define WEFT_PT_GUARDED_BY(lock) WEFT_THREAD_SAFETY(pt_guarded_by(lock))
#define WEFT_ACQUIRED_BEFORE(...) WEFT_THREAD_SAFETY(acquired_before(__VA_ARGS__))
#define WEFT_ACQUIRED_AFTER(...) WEFT_THREAD_SAFETY(acquired_after(__VA_ARGS__))

// Of functions. Without an argument, the lock is the object itself, or that of the guard.
#define WEFT_REQUIRES(...) WEFT_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define WEFT_EXCLUDES(...) WEFT_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
#define WEFT_ACQUIRE(...) WEFT_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define WEFT_TRY_ACQUIRE(...) WEFT_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
#define WEFT_RELEASE(...) WEFT_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define WEFT_RETURNS_LOCK(lock) WEFT_THREAD_SAFETY(lock_returned(lock))
// The function states that its caller has the lock, where clang cannot follow it: the check takes it as a fact.
#define WEFT_ASSERTS(...) WEFT_THREAD_SAFETY(assert_capability(__VA_ARGS__))
#define WEFT_NOT_CHECKED WEFT_THREAD_SAFETY(no_thread_safety_analysis)
