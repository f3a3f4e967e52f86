// SPDX-License-Identifier: MIT
#include "weft/base/no_memory.h"

#include <memory>
#include <new>
#include <utility>

#include "weft/base/result.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(NoMemory, TheResultOfACallStaysAsItIs) {
  EXPECT_EQ(or_no_memory([]() -> Result<int> { return 7; }), 7);
  const Result<int> refused = or_no_memory([]() -> Result<int> { return Errc::closed; });
  EXPECT_EQ(refused.error(), Errc::closed);
}

TEST(NoMemory, ACallThatRunsOutOfMemoryFails) {
  const Result<void> failed = or_no_memory([]() -> Result<void> { throw std::bad_alloc(); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(), Errc::resource_exhausted);
}

TEST(NoMemory, ACallThatIsMovedInRunsAsAnRvalue) {
  struct Once {
    Result<int> operator()() && { return *std::exchange(value, nullptr); }
    std::unique_ptr<int> value = std::make_unique<int>(5);
  };
  EXPECT_EQ(or_no_memory(Once()), 5);
}

}  // namespace
}  // namespace weft
