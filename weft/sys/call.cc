// SPDX-License-Identifier: MIT
#include "weft/sys/call.h"

namespace weft::sys {

Error make_error(int os_errno, StaticText what) noexcept { return {errc_of(os_errno), what, os_errno}; }

// The C library has no wrapper of a futex, and its wrappers of other calls are cancellation points also where they do
// not wait. While the type is asynchronous, the thread may end at any instruction, also between two calls. The unwinder
// ends the process there if the function has a table of its cleanups, so this one has no object with a destructor.
[[gnu::noinline]] SyscallResult<long> call_cancellably(long number, long first, long second, long third, long fourth,
                                                       long fifth, long sixth) {
  int type = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
  const long value = ::syscall(number, first, second, third, fourth, fifth, sixth);
  const int os_errno = value == -1 ? errno : 0;
  ::pthread_setcanceltype(type, nullptr);
  return {value, os_errno};
}

}  // namespace weft::sys
