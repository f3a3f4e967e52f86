// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::sys {

namespace detail {
enum class FenceMode : std::uint8_t { unknown, symmetric, asymmetric };
extern std::atomic<FenceMode> fence_mode;
FenceMode decide_fence_mode() noexcept;  // registers with membarrier once; every caller sees the same answer
}  // namespace detail

// A store before the fence and a load after it stay in that order for every thread, without a partner fence.
inline void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not know fences. On the machine a sequentially consistent read-modify-write is one.
  static thread_local std::atomic<int> word{0};
  word.fetch_add(0, std::memory_order_seq_cst);
  asm volatile("" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// The asymmetric pair: a light_fence() on one side and a heavy_fence() on the other order as two full fences
// do (Dekker's pattern). Two light fences do not order each other.
// The light side is a compiler barrier where the kernel has membarrier(2) PRIVATE_EXPEDITED, otherwise a full fence.
// The heavy side is membarrier (about 1 us; interrupts the running threads of this process), otherwise a full fence.
// WEFT_NO_MEMBARRIER=1 in the environment, read when the library is loaded, forces full fences on both sides.
inline void light_fence() noexcept {
  auto mode = detail::fence_mode.load(std::memory_order_relaxed);  // set once; a stale value is right as well
  if (mode != detail::FenceMode::asymmetric) [[unlikely]] {
    mode = mode == detail::FenceMode::unknown ? detail::decide_fence_mode() : mode;
    if (mode != detail::FenceMode::asymmetric) {
      full_fence();
    }
  }
  asm volatile("" ::: "memory");
}
void heavy_fence() noexcept;

// Whether light_fence() is free.
[[nodiscard]] bool asymmetric_fences() noexcept;

}  // namespace weft::sys
