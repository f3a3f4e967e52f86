// SPDX-License-Identifier: MIT
#include <atomic>
#include <memory>
#include <string>

#include "weft/logging/log.h"
#include "weft/sys/clock.h"
#include "weft/sys/linux/test_child.h"
#include <gtest/gtest.h>

namespace weft::logging {
namespace {

TEST(ForkedLog, ALineOfAChildIsDroppedAndCountedAndNoCallWaits) {
  std::atomic<int> lines{0};
  LogOptions options;
  options.output = [&lines](std::string_view) { ++lines; };
  auto log = Log::make(options).value();
  const Logger logger = log->logger("a").value();
  logger.info("before");
  ASSERT_TRUE(log->flush_until(sys::now() + std::chrono::seconds(60)));
  EXPECT_TRUE(sys::test::holds_in_a_child([&] {
    logger.info("in the child");
    const bool refused = log->flush_until(sys::now() + std::chrono::hours(1)).error() == Errc::invalid_state &&
                         log->logger("b").error() == Errc::invalid_state &&
                         log->set_level("a", Level::off).error() == Errc::invalid_state &&
                         log->apply({}).error() == Errc::invalid_state;
    const bool counted = log->counts().dropped_forked == 1;
    log->reopen();
    log->stop(sys::now() + std::chrono::hours(1));
    log.reset();
    return refused && counted;
  }));
  logger.info("after");
  ASSERT_TRUE(log->flush_until(sys::now() + std::chrono::seconds(60)));
  EXPECT_EQ(lines.load(), 2);
  EXPECT_EQ(log->counts().dropped_forked, 0U);
}

#if !defined(__SANITIZE_THREAD__)  // which permits no thread in a forked child
TEST(ForkedLog, AChildMakesALogOfItsOwn) {
  const auto log = Log::make().value();
  EXPECT_TRUE(sys::test::holds_in_a_child([] {
    std::atomic<int> lines{0};
    LogOptions options;
    options.output = [&lines](std::string_view) { ++lines; };
    const auto own = Log::make(options).value();
    own->logger("a").value().info("line");
    return own->flush_until(sys::now() + std::chrono::seconds(15)) && lines == 1;
  }));
}
#endif

}  // namespace
}  // namespace weft::logging
