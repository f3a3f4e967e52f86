// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace weft::sys {

// Tells the core that this is a spin loop.
inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

// Fetches the line at `address` for a store that follows. Stores leave a core in order, each when its line has come;
// lines that were asked for before come side by side.
inline void prefetch_for_write(const void* address) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(address)));  // a no-op where it is unknown
#else
  __builtin_prefetch(address, 1);
#endif
}

void yield() noexcept;  // sched_yield

// Processors that this process may use at once: its affinity mask, bounded by the CPU quota of its control group (v1 or
// v2) rounded down. At least 1. Read once.
[[nodiscard]] unsigned allowed_cpus() noexcept;
// Whether the quota, and not the mask, is the bound: spinning then burns time that another thread of ours needs.
[[nodiscard]] bool quota_limited() noexcept;

// The CPUs granted by the text of cgroup v2's cpu.max ("200000 100000"); 0 when unlimited ("max") or unreadable.
[[nodiscard]] double parse_cpu_max(std::string_view text) noexcept;

// Names the calling thread for debuggers; the first 15 bytes count.
void name_thread(const char* name) noexcept;

}  // namespace weft::sys
