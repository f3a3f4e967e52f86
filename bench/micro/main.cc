// SPDX-License-Identifier: MIT
// bench_micro --list              prints one JSON object per row
// bench_micro --count NAME...     under callgrind: runs the named one-thread rows, with N and then 2 N iterations, and
//                                 dumps the counts after each. A NAME is a ROW (Weft's contender) or a ROW:CONTENDER
// bench_micro --benchmark_...     Google Benchmark's options; names are ROW:CONTENDER
#include <alloca.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

#include "bench/json.h"
#include "bench/micro/callgrind.h"
#include "bench/micro/micro.h"

namespace {

using bench::Row;

constexpr std::int64_t kCounted = 5'000;
constexpr std::uintptr_t kPage = 4096;

void list() {
  for (const Row& row : bench::rows()) {
    bench::Json contenders = bench::Json::array();
    for (const auto& contender : row.contenders) {
      contenders.push_back(contender.name);
    }
    bench::Json bars = bench::Json::array();
    for (const auto& bar : row.bars) {
      bars.push_back({{"rival", bar.rival}, {"ratio", bar.ratio}, {"placement", bar.placement}});
    }
    bench::print_line({{"row", row.name}, {"threads", row.threads}, {"contenders", contenders}, {"bars", bars}});
  }
}

benchmark::internal::Benchmark* enlist(const Row& row, const bench::Contender& contender) {
  benchmark::internal::Benchmark* entry =
      benchmark::RegisterBenchmark((row.name + ":" + contender.name).c_str(), contender.body);
  if (row.threads > 1) {
    entry->Threads(row.threads)->UseRealTime();
  }
  return entry;
}

// Dumps the instructions executed since the last dump, under the name of the benchmark that has just run.
class Dumper final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override {
    CALLGRIND_ZERO_STATS;
    return true;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    const std::string name = runs.front().benchmark_name();
    CALLGRIND_DUMP_STATS_AT(name.c_str());
    bench::CountedPart::count_on();
    CALLGRIND_ZERO_STATS;
  }
};

[[gnu::noinline]] int count(std::span<char*> names) {
  const auto named = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const Row& row : bench::rows()) {
    for (const auto& contender : row.contenders) {
      const bool ours = &contender == &row.contenders.front();
      if (row.threads != 1 || !(named(row.name + ":" + contender.name) || (ours && named(row.name)))) {
        continue;
      }
      enlist(row, contender)->Iterations(1);  // pays the costs of the first run: symbols bound, pools filled
      enlist(row, contender)->Iterations(kCounted);
      enlist(row, contender)->Iterations(2 * kCounted);
    }
  }
  Dumper dumper;
  return benchmark::RunSpecifiedBenchmarks(&dumper) == 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--list") == 0) {
    list();
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "--count") == 0) {
    // The address at which the stack begins depends on the environment and the program's path, and the cost of
    // a copy depends on the addresses of its bytes. From here on, frames lie as if the stack began with a page.
    void* skipped = alloca(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) % kPage);
    benchmark::DoNotOptimize(skipped);
    return count(std::span<char*>(argv + 2, static_cast<std::size_t>(argc - 2)));
  }
  for (const Row& row : bench::rows()) {
    for (const auto& contender : row.contenders) {
      enlist(row, contender);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
