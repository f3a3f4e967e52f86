#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The check of locks (thread_safety.py) finds each seeded mistake, and no other."""
import doctest
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import thread_safety  # noqa: E402

START = '''
#include "weft/sync/condition.h"
#include "weft/sync/lock.h"
#include "weft/sync/mutex.h"
using namespace weft::sync;
class Account {
 public:
'''
END = '''
 private:
  void add() WEFT_REQUIRES(first_) { ++sum_; }
  StdMutex first_ WEFT_ACQUIRED_BEFORE(second_);
  Mutex second_;
  Baton baton_;
  Condition changed_;
  int sum_ WEFT_GUARDED_BY(first_) = 0;
  int count_ WEFT_GUARDED_BY(second_) = 0;
  int turn_ WEFT_GUARDED_BY(baton_) = 0;
};
'''
# Member functions, and the words of the finding; none: there is no mistake.
CASES = {
    'a read without the lock': ('int f() { return sum_; }', "requires holding mutex 'first_'"),
    'a write without the lock': ('void f() { sum_ = 1; }', "requires holding mutex 'first_'"),
    'the wrong lock': ('void f() { const LockGuard lock(second_); ++sum_; }', "requires holding mutex 'first_'"),
    'a call without the lock': ('void f() { add(); }', "requires holding mutex 'first_'"),
    'the wrong order': ('void f() { const LockGuard a(second_); const LockGuard b(first_); }',
                        "'first_' must be acquired before 'second_'"),
    'a lock twice': ('void f() { const LockGuard a(first_); const LockGuard b(first_); }', 'already held'),
    'a lock that stays': ('void f() { second_.lock(); }', 'still held at the end'),
    'after an unlock': ('void f() { UniqueLock lock(first_); lock.unlock(); add(); }', "requires holding mutex 'first_'"),
    'inside of Unlocked': ('void f() { const LockGuard lock(first_); const Unlocked out(first_); add(); }',
                           "requires holding mutex 'first_'"),
    'without the baton': ('void f() { if (!baton_.try_take()) { ++turn_; } }', "requires holding baton 'baton_'"),
    'a baton that stays': ('void f() { if (baton_.try_take_or_nudge()) { ++turn_; } }', 'not held on every path'),
    'in a lambda': ('void f() { const LockGuard lock(first_); [this] { ++sum_; }(); }', "requires holding mutex 'first_'"),

    'with the lock': ('void f() { const LockGuard lock(first_); ++sum_; add(); }', None),
    'the right order': ('void f() { const LockGuard a(first_); const LockGuard b(second_); ++sum_; ++count_; }', None),
    'both at once': ('void f() { const ScopedLock lock(first_, second_); ++sum_; ++count_; }', None),
    'a wait': ('void f() { UniqueLock lock(first_); while (sum_ == 0) { changed_.wait(lock); } }', None),
    'with the baton': ('void f() { if (!baton_.try_take()) { return; }'
                       ' do { ++turn_; } while (baton_.release() && baton_.try_take_or_nudge()); }', None),
    'after Unlocked': ('void f() { const LockGuard lock(first_); { const Unlocked out(first_); } add(); }', None),
    'stated in a lambda': ('void f() { const LockGuard lock(first_); [this] { assume_locked(first_); ++sum_; }(); }', None),
}


def main():
    failed = doctest.testmod(thread_safety).failed
    if shutil.which(thread_safety.CLANG) is None:
        print(f'skipped: there is no {thread_safety.CLANG}')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'seeded.cc'
        for name, (function, expected) in CASES.items():
            path.write_text(START + function + END, encoding='utf-8')
            found = thread_safety.check(str(path), [f'-I{thread_safety.ROOT}', '-std=c++20'])
            if (expected is None and found) or (expected is not None and expected not in found):
                print(f'{name}: expected {expected or "nothing"}, found {found or "nothing"}')
                failed += 1
    print(f'{len(CASES)} cases, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
