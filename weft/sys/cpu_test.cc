// SPDX-License-Identifier: MIT
#include "weft/sys/cpu.h"

#include <pthread.h>
#include <sched.h>

#include <thread>

#include <gtest/gtest.h>

namespace weft::sys {
namespace {

TEST(Cpu, ReadsQuotaTexts) {
  EXPECT_DOUBLE_EQ(parse_cpu_max("200000 100000\n"), 2.0);
  EXPECT_DOUBLE_EQ(parse_cpu_max("50000 100000"), 0.5);
  for (const char* unlimited : {"max 100000\n", "", "100000", "0 100000", "-1 100000", "100000 0", "x y"}) {
    EXPECT_DOUBLE_EQ(parse_cpu_max(unlimited), 0.0) << unlimited;
  }
}

TEST(Cpu, AllowsAtLeastOneAndNoMoreThanTheMask) {
  cpu_set_t mask;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mask, &mask), 0);
  EXPECT_GE(allowed_cpus(), 1u);
  EXPECT_GE(machine_cpus(), allowed_cpus());
  EXPECT_LE(allowed_cpus(), static_cast<unsigned>(CPU_COUNT(&mask)));
  EXPECT_TRUE(quota_limited() || allowed_cpus() == static_cast<unsigned>(CPU_COUNT(&mask)));
}

TEST(Cpu, NamesThreadsWithinTheLimit) {
  std::thread([] {
    name_thread("weft-a-name-beyond-the-limit");
    char name[32] = {};
    ::pthread_getname_np(::pthread_self(), name, sizeof name);
    EXPECT_STREQ(name, "weft-a-name-bey");
  }).join();
}

}  // namespace
}  // namespace weft::sys
