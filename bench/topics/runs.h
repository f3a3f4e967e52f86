// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bench/cell.h"
#include "bench/json.h"
#include "weft/base/result.h"

// For cells that bench/cell_run.h does not run: the commands, and the checks of results.
namespace bench {

// RunResult: of one repetition.
struct RunResult {
  std::uint64_t messages = 0;
  std::uint64_t receivers = 1;
  double seconds = 0;
};

// Prints {"version", "path"}, then answers each `run COUNT INTERVAL_NS VERIFY_ALL` and `count COUNT` on standard input
// with a JSON object, as bench_sockets does. `probe` measures how near the two sides are; none: there is one side.
// `more` adds members. Returns at the end of the input.
void serve_runs(const std::string& version, const std::function<RunResult(std::uint64_t count, bool verify)>& repeat,
                const std::function<double()>& probe = nullptr, const std::function<void(Json&)>& more = nullptr);

// The value, or the end of the program with the error.
template <typename T>
T must(weft::Result<T> result, const char* what) {
  if (!result) {
    fail(std::string(what) + ": " + result.error().message());
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

inline constexpr const char* kFlow = "bench.flow";      // the topic of the messages
inline constexpr const char* kAnswer = "bench.answer";  // and of those that answer them

void run_cores(const std::string& cell, const std::string& engine, std::uint32_t ping_pongs);
void run_same_handle(const std::string& cell, const std::string& engine);
void run_filters(const std::string& cell, const std::string& engine);
// `directory`: of the stream's file. `redis`: the unix socket of a server.
void run_kept(const std::string& cell, const std::string& engine, const std::string& runtime,
              const std::string& directory, const std::string& redis);
// `url`: of a server of NATS.
void run_fleet(const std::string& cell, const std::string& engine, const std::string& url);
void run_fleet_kept(const std::string& cell, const std::string& engine, const std::string& url);
void run_fleet_request(const std::string& cell, const std::string& engine, const std::string& url);

// Processor time of this thread, in nanoseconds: the time of cells of one thread, whatever else the machine runs.
[[nodiscard]] std::uint64_t thread_ns();
[[nodiscard]] std::size_t size_in(const std::string& cell);  // the third part of a cell's name

}  // namespace bench
