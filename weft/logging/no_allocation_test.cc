// SPDX-License-Identifier: MIT
// Counts every allocation of the test program, to prove that a line makes none.
#include <string>

#include "tests/support/count_allocations.h"
#include "weft/logging/log.h"
#include "weft/sys/clock.h"
#include <gtest/gtest.h>

#ifdef WEFT_COUNTS_ALLOCATIONS

namespace weft::logging {
namespace {

TEST(QuietLog, NeitherALineNorItsWriteAllocates) {
  LogOptions options;
  options.settings.file = "/dev/null";
  options.settings.repeats_max = 0;
  const auto log = Log::make(options).value();
  const Logger logger = log->logger("a").value();
  const std::string text(500, 't');
  const auto write_some = [&] {
    for (int i = 0; i < 100; ++i) {
      logger.info("line", {{"number", i}, {"text", text}, {"ratio", 0.1}});
      logger.debug("not written", {{"text", text}});
    }
    return log->flush_until(sys::now() + std::chrono::seconds(60)).has_value();
  };
  ASSERT_TRUE(write_some());  // the chunk, and the memory that a thread needs once
  const std::size_t before = allocations.load();
  ASSERT_TRUE(write_some());
  EXPECT_EQ(allocations.load() - before, 0U);
  EXPECT_EQ(log->counts().written, 200U);
}

}  // namespace
}  // namespace weft::logging

#endif
