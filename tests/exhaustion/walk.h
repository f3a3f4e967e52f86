// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>

#include "tests/exhaustion/failing_memory.h"
#include "weft/base/result.h"
#include <gtest/gtest.h>

namespace weft::test {

// Calls use(memory) again and again: each time another allocation fails, alone or with all later ones. `use` may call
// memory.end() and then check that the part still works.
template <typename Use>
void walk(Use use) {
  constexpr std::size_t kAllocationsMax = 20'000;
  for (const auto length : {FailingMemory::Length::one, FailingMemory::Length::all}) {
    for (std::size_t spared = 0;; ++spared) {
      SCOPED_TRACE(spared);
      ASSERT_LT(spared, kAllocationsMax);
      FailingMemory memory(spared, length);
      use(memory);
      memory.end();
      if (testing::Test::HasFailure() || !memory.failed()) {
        break;
      }
    }
  }
}

template <typename T>
bool made(const Result<T>& result) {
  EXPECT_TRUE(result || result.error() == Errc::resource_exhausted) << result.error().message();
  return result.has_value();
}

}  // namespace weft::test
