// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weft::sys {

// Tells the processor core that the thread is in a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

// Fetches the line at `address` for a later store. A core retires its stores in order, each after its line
// has arrived; lines that were prefetched arrive side by side.
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // a no-op on older processors
#else
  __builtin_prefetch(address, 1);
#endif
}

void yield() noexcept;  // sched_yield

// The number of processors that this process may use at once: its affinity mask, bounded by the CPU quota of
// its control group (v1 or v2) rounded down. At least 1. Read once.
[[nodiscard]] unsigned allowed_cpus() noexcept;
// Whether the quota, and not the mask, is the bound. If so, spinning burns time that another thread of the
// process needs.
[[nodiscard]] bool quota_limited() noexcept;
// The processors of the machine, also those that this process may not use. At least 1. Read once.
[[nodiscard]] unsigned machine_cpus() noexcept;

// The CPUs granted by the text of cgroup v2's cpu.max ("200000 100000"); 0 when unlimited ("max") or unreadable.
[[nodiscard]] double parse_cpu_max(std::string_view text) noexcept;

// Names the calling thread for debuggers; the kernel keeps the first 15 bytes.
void name_thread(const char* name) noexcept;

}  // namespace weft::sys
