// SPDX-License-Identifier: MIT
// A line of three fields from one thread, beside a writer that takes the lines: Log_Line. A line below the level of its
// component: Log_LineBelowItsLevel. Both logs write to /dev/null, without a bound on repeats. spdlog is asynchronous
// with `overrun_oldest`, so that neither log waits.
#include "weft/logging/log.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "bench/micro/micro.h"

#ifdef WEFT_RIVAL_spdlog
#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#endif

namespace weft::logging {
namespace {

std::shared_ptr<Log> null_log() {
  LogOptions options;
  options.settings.file = "/dev/null";
  options.settings.repeats_max = 0;
  options.queue_bytes = std::size_t{16} << 20;
  return Log::make(std::move(options)).value();
}

constexpr const char* kPath = "/orders/7/items";

void log_lines(benchmark::State& state) {
  const auto log = null_log();
  const Logger logger = log->logger("web").value();
  std::uint64_t number = 0;
  for (auto _ : state) {
    logger.info("request", {{"path", kPath}, {"status", 200}, {"duration_us", ++number}});
  }
  state.counters["dropped"] = static_cast<double>(log->counts().dropped_queue);
}

void log_below_the_level(benchmark::State& state) {
  const auto log = null_log();
  const Logger logger = log->logger("web").value();
  std::uint64_t number = 0;
  for (auto _ : state) {
    logger.debug("request", {{"path", kPath}, {"status", 200}, {"duration_us", ++number}});
    benchmark::DoNotOptimize(number);
  }
}

const auto kLine = bench::row("Log_Line").run("weft", &log_lines);
const auto kBelow = bench::row("Log_LineBelowItsLevel").run("weft", &log_below_the_level);

#ifdef WEFT_RIVAL_spdlog
template <spdlog::level::level_enum kLevel>
void log_by_spdlog(benchmark::State& state) {
  const auto pool = std::make_shared<spdlog::details::thread_pool>(32 * 1024, 1);
  const auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>("/dev/null");
  const auto logger =
      std::make_shared<spdlog::async_logger>("web", sink, pool, spdlog::async_overflow_policy::overrun_oldest);
  std::uint64_t number = 0;
  for (auto _ : state) {
    logger->log(kLevel, "request path={} status={} duration_us={}", kPath, 200, ++number);
    benchmark::DoNotOptimize(number);
  }
  state.counters["dropped"] = static_cast<double>(pool->overrun_counter());
}
const auto kLineBySpdlog = bench::row("Log_Line").run("spdlog", &log_by_spdlog<spdlog::level::info>);
const auto kBelowBySpdlog = bench::row("Log_LineBelowItsLevel").run("spdlog", &log_by_spdlog<spdlog::level::debug>);
#endif

}  // namespace
}  // namespace weft::logging
