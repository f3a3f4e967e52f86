// SPDX-License-Identifier: MIT
// The processors of cores.
#include <algorithm>
#include <vector>

#include "weft/rt/core/runtime.h"
#include "weft/rt/core/test_runtime.h"
#include "weft/sys/topology.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

using test::on_core;

TEST(Runtime, ACoreRunsOnItsProcessorOfTheList) {
  std::vector<unsigned> allowed = sys::allowed_cpu_ids();
  allowed.resize(std::min<std::size_t>(allowed.size(), 4));
  std::reverse(allowed.begin(), allowed.end());
  RuntimeOptions options;
  options.cpus = allowed;
  options.pinning = Pinning::never;
  const auto runtime = Runtime::start(options);
  ASSERT_TRUE(runtime) << runtime.error().message();
  ASSERT_EQ((*runtime)->size(), allowed.size());
  for (unsigned i = 0; i < allowed.size(); ++i) {
    std::vector<unsigned> mine;
    on_core(**runtime, i, [&mine] { mine = sys::allowed_cpu_ids(); });
    EXPECT_EQ(mine, std::vector<unsigned>{allowed[i]});
  }
}

TEST(Runtime, RefusesAListWithAProcessorTwiceOrThatIsNotAllowed) {
  const unsigned cpu = sys::allowed_cpu_ids().front();
  for (const auto& cpus : {std::vector<unsigned>{cpu, cpu}, {sys::ThreadOptions::kCpusMax}, {1'000'000}}) {
    RuntimeOptions options;
    options.cpus = cpus;
    EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
  }
  RuntimeOptions options;
  options.cpus = {cpu};
  options.cores = 2;
  EXPECT_EQ(Runtime::start(options).error(), Errc::invalid_argument);
}

}  // namespace
}  // namespace weft::rt
