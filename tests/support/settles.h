// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "tests/support/count_allocations.h"
#include <gtest/gtest.h>

#ifdef WEFT_COUNTS_ALLOCATIONS

namespace weft::test {

// Repeats `work` until 20 rounds in a row allocate nothing: the first ones fill pools. With an allocation in each job,
// or in each tenth round, there would be no such rows. Ends early where a round has a fatal failure.
template <typename Work>
::testing::AssertionResult settles(Work work) {
  constexpr int kRounds = 400;
  constexpr int kClean = 20;
  std::size_t last = 0;
  for (int round = 0, clean = 0; round < kRounds && !::testing::Test::HasFatalFailure(); ++round) {
    const std::size_t before = allocations.load();
    work();
    const std::size_t now = allocations.load() - before;
    last = now == 0 ? last : now;
    clean = now == 0 ? clean + 1 : 0;
    if (clean == kClean) {
      return ::testing::AssertionSuccess();
    }
  }
  return ::testing::AssertionFailure() << last << " allocations in the last round that had any";
}

}  // namespace weft::test

#endif
