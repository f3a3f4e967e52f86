// SPDX-License-Identifier: MIT
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::sys::test {

inline constexpr int kUringCalls[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register};
inline constexpr int kSendDatagrams = SYS_sendmmsg;

template <std::size_t kSize>
bool use_filter(sock_filter (&filter)[kSize]) noexcept {
  const sock_fprog program{.len = kSize, .filter = filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

// From now on system call `number` fails with `error` in the calling thread. Returns false if the system accepts no
// filter.
inline bool refuse_call(int number, int error) noexcept {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return use_filter(filter);
}

// The same for the calls whose argument with that index has `value` in its low 32 bits.
inline bool refuse_call_with(int number, unsigned argument, unsigned value, int error) noexcept {
  static_assert(std::endian::native == std::endian::little);
  const auto at = static_cast<unsigned>(offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return use_filter(filter);
}

}  // namespace weft::sys::test
