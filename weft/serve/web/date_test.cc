// SPDX-License-Identifier: MIT
#include "weft/serve/web/date.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace weft::serve::web {
namespace {

std::string date_of(std::int64_t seconds) {
  const auto text = http_date(std::chrono::sys_seconds(std::chrono::seconds(seconds)));
  return {text.data(), text.size()};
}

TEST(WebDate, IsTheFormOfRfc9110) {
  EXPECT_EQ(date_of(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(date_of(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(date_of(1709251199), "Thu, 29 Feb 2024 23:59:59 GMT");
  EXPECT_EQ(date_of(4102444800), "Fri, 01 Jan 2100 00:00:00 GMT");
}

TEST(WebDate, IsMadeOnceASecond) {
  DateClock clock;
  const Instant now = Instant() + std::chrono::hours(1);
  const std::string first(clock.text(now));
  EXPECT_EQ(first.size(), kDateSize);
  EXPECT_TRUE(first.ends_with(" GMT"));
  EXPECT_EQ(clock.text(now), first);
}

}  // namespace
}  // namespace weft::serve::web
