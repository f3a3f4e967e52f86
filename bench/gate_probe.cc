// SPDX-License-Identifier: MIT
// Does a known amount of work, for the test of the gate: prints the CPU time of WORK units, in nanoseconds.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

std::uint64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t work = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (work == 0) {
    std::fputs("usage: gate_probe WORK\n", stderr);
    return 2;
  }
  constexpr std::uint64_t kUnit = 1000;
  std::uint64_t state = work;
  const std::uint64_t start = cpu_ns();
  for (std::uint64_t i = 0; i < work * kUnit; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    asm volatile("" : "+r"(state));
  }
  std::printf("%llu\n", static_cast<unsigned long long>(cpu_ns() - start));
  return 0;
}
