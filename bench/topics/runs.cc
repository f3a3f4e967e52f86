// SPDX-License-Identifier: MIT
#include "bench/topics/runs.h"

#include <time.h>

#include <sstream>

#include "bench/commands.h"
#include "bench/usage.h"

namespace bench {

void serve_runs(const std::string& version, const std::function<RunResult(std::uint64_t, bool)>& repeat,
                const std::function<double()>& probe, const std::function<void(Json&)>& more) {
  print_line({{"version", version}, {"path", ""}});
  while (const std::optional<Command> command = next_command()) {
    if (command->interval_ns != 0) {
      fail("no such cell has an interval");
    }
    const Json before = probe ? Json(probe()) : Json(nullptr);
    const Usage start = usage_now();
    const RunResult result = repeat(command->count, command->verify_all);
    const Usage used = usage_now() - start;
    const Json after = probe ? Json(probe()) : Json(nullptr);
    Json record = {{"messages", result.messages},
                   {"receivers", result.receivers},
                   {"seconds", result.seconds},
                   {"cpu_seconds", used.cpu_seconds},
                   {"switches", used.switches},
                   {"before_ns", before},
                   {"after_ns", after}};
    if (more) {
      more(record);
    }
    print_line(record);
  }
}

std::uint64_t thread_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

std::size_t size_in(const std::string& cell) {
  std::istringstream words(cell);
  std::string word;
  for (int i = 0; i < 3; ++i) {
    std::getline(words, word, '/');
  }
  const std::size_t size = std::strtoul(word.c_str(), nullptr, 10);
  if (size < 16 || size > (std::size_t{1} << 20)) {
    fail("no cell '" + cell + "'");
  }
  return size;
}

}  // namespace bench
