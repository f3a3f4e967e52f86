// SPDX-License-Identifier: MIT
#include "weft/rt/exec/executor.h"

#include <iterator>
#include <string>

namespace weft::rt {

namespace {
constexpr CounterRow kExecutorRows[] = {WEFT_EXECUTOR_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(std::size(kExecutorRows) == sync::count_of_rows<ExecutorCounts>());
}  // namespace

constinit const CounterTable kExecutorTable = {
    "executor", "A thread pool, strand or inline executor of `weft/rt/exec`: `admin->add(name, executor)`.",
    kExecutorRows};

CounterSource Executor::counter_source() const {
  return [this](std::string_view name, CounterReadings& into) {
    into.push_back({&kExecutorTable, {{"executor", std::string(name)}}, sync::read_counters(counts())});
  };
}

}  // namespace weft::rt
