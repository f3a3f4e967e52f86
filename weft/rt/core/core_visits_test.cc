// SPDX-License-Identifier: MIT
#include "weft/rt/core/core_visits.h"

#include <atomic>
#include <stdexcept>

#include "weft/rt/core/test_runtime.h"
#include <gtest/gtest.h>

namespace weft::rt {
namespace {

TEST(CoreVisits, RunOnceOnEachCore) {
  const auto runtime = test::start_runtime(3);
  std::atomic<unsigned> right{0};
  const auto visits = CoreVisits::make(*runtime, [&](unsigned core) -> Result<void> {
    right += Core::current() == &runtime->core(core) ? 1 : 0;
    return {};
  });
  visits->begin();
  visits->begin();
  EXPECT_TRUE(visits->wait(test::in_a_minute()));
  EXPECT_EQ(right, 3u);
}

TEST(CoreVisits, ReturnAnErrorOrAnExceptionOfOneCore) {
  const auto runtime = test::start_runtime(2);
  const auto failed = [](unsigned core) {
    return core == 1 ? Result<void>(Error(Errc::conflict, "no")) : Result<void>();
  };
  EXPECT_EQ(CoreVisits::run(*runtime, failed).error(), Errc::conflict);
  const auto threw = [](unsigned core) -> Result<void> {
    if (core == 0) {
      throw std::runtime_error("no");
    }
    return {};
  };
  EXPECT_EQ(CoreVisits::run(*runtime, threw).error(), Errc::job_threw);
}

TEST(CoreVisits, AWaitEndsAtItsDeadlineAndAnotherOneGetsTheEnd) {
  const auto runtime = test::start_runtime(1);
  test::Blocked blocked(*runtime, 0);
  const auto visits = CoreVisits::make(*runtime, [](unsigned) { return Result<void>(); });
  visits->begin();
  EXPECT_EQ(visits->wait(sys::now()).error(), Errc::timed_out);
  blocked.release();
  EXPECT_TRUE(visits->wait(test::in_a_minute()));
}

TEST(CoreVisits, OutliveTheirOwner) {
  const auto runtime = test::start_runtime(1);
  test::Signal ran;
  {
    test::Blocked blocked(*runtime, 0);
    CoreVisits::make(*runtime, [&](unsigned) {
      ran.give();
      return Result<void>();
    })->begin();
  }
  EXPECT_TRUE(ran.take());
}

TEST(CoreVisits, ACoreThatHasEndedRefusesNoVisit) {
  const auto runtime = test::start_runtime(2);
  ASSERT_TRUE(runtime->stop(test::in_a_minute()));
  std::atomic<unsigned> ran{0};
  EXPECT_TRUE(CoreVisits::run(*runtime, [&](unsigned) {
    ++ran;
    return Result<void>();
  }));
  EXPECT_EQ(ran, 2u);
}

}  // namespace
}  // namespace weft::rt
