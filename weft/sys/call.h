// SPDX-License-Identifier: MIT
#pragma once

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "weft/base/error.h"
#include "weft/base/result.h"
#include "weft/base/time.h"

namespace weft::sys {

// The Error for `os_errno`. `what` is static text that names the attempted step. Never Errc::ok.
[[nodiscard]] Error make_error(int os_errno, StaticText what) noexcept;

// The return value of a system call, with errno beside it. Only this header reads errno.
template <typename Value>
struct SyscallResult {
  Value value;
  int os_errno;  // 0 on success

  [[nodiscard]] bool failed() const noexcept { return os_errno != 0; }
};

// The errno that a library's call left, for libraries that do not tell it.
[[nodiscard]] inline int last_errno() noexcept { return errno; }
inline void set_errno(int os_errno) noexcept { errno = os_errno; }

// CancellationOff: pthread_cancel() does not end the calling thread while one exists. Many functions of the C library
// are cancellation points, and a thread that ended in one of them would leave Weft's objects half changed.
// Affinity: the thread that made it. Cost: two atomic operations.
class CancellationOff {
 public:
  CancellationOff() noexcept { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  CancellationOff(const CancellationOff&) = delete;
  CancellationOff& operator=(const CancellationOff&) = delete;
  ~CancellationOff() { ::pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = 0;
};

// Calls once and reports EINTR: for waits, whose callers decide, and for close(), which must not be repeated.
template <typename Function>
auto call_once(Function&& function) noexcept {
  using Value = decltype(function());
  const CancellationOff off;
  const Value value = function();
  return SyscallResult<Value>{value, value == static_cast<Value>(-1) ? errno : 0};
}

// Calls until the result is not EINTR: for calls that do not wait.
template <typename Function>
auto call(Function&& function) noexcept {
  for (;;) {
    const auto result = call_once(function);
    if (result.os_errno != EINTR) [[likely]] {
      return result;
    }
  }
}

inline constexpr long kSignalMaskBytes = 8;  // the size that the kernel expects of a signal mask
template <typename T>
[[nodiscard]] long raw_argument(T* pointer) noexcept {
  return reinterpret_cast<long>(pointer);
}
template <typename T>
  requires(std::integral<T> || std::is_enum_v<T>)
[[nodiscard]] constexpr long raw_argument(T value) noexcept {
  return static_cast<long>(value);
}
[[nodiscard]] constexpr long raw_argument(std::nullptr_t) noexcept { return 0; }

// One raw system call. Unlike a function of the C library it is never a cancellation point.
inline constexpr auto kRawCallOnce = [](long number, auto... arguments) noexcept {
  const long value = ::syscall(number, raw_argument(arguments)...);
  return SyscallResult<long>{value, value == -1 ? errno : 0};
};
template <typename... Arguments>
SyscallResult<long> raw_call_once(long number, Arguments... arguments) noexcept {
  return kRawCallOnce(number, arguments...);
}

// One raw system call that is a cancellation point, for the waits of an application's thread. After pthread_cancel()
// the stack unwinds from within the call, so that no function on the way to it is noexcept.
[[nodiscard]] SyscallResult<long> call_cancellably(long number, long first, long second, long third, long fourth,
                                                   long fifth, long sixth);

// `call` with the value or the Error as a Result.
template <typename Function>
auto checked_call(StaticText what, Function&& function) noexcept -> Result<decltype(function())> {
  const auto result = call(function);
  if (result.failed()) [[unlikely]] {
    return make_error(result.os_errno, what);
  }
  return result.value;
}

// A Duration that is not negative as a timespec.
[[nodiscard]] inline timespec to_timespec(Duration duration) noexcept {
  constexpr Duration::rep kNanosecondsPerSecond = 1'000'000'000;
  timespec spec{};
  spec.tv_sec = static_cast<time_t>(duration.count() / kNanosecondsPerSecond);
  spec.tv_nsec = static_cast<decltype(spec.tv_nsec)>(duration.count() % kNanosecondsPerSecond);
  return spec;
}

}  // namespace weft::sys
