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

TEST(WebDate, IsReadInEachFormOfRfc9110) {
  const auto now = std::chrono::sys_seconds(std::chrono::seconds(1764000000));  // November 2025
  const auto seconds = [now](std::string_view text) {
    const auto time = parse_http_date(text, now);
    return time ? time->time_since_epoch().count() : -1;
  };
  EXPECT_EQ(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(seconds("Sunday, 06-Nov-94 08:49:37 GMT"), 784111777);
  EXPECT_EQ(seconds("Sun Nov  6 08:49:37 1994"), 784111777);
  EXPECT_EQ(seconds("Wednesday, 01-Jan-75 00:00:00 GMT"), 3313526400);  // 2075, 50 years from now
  EXPECT_EQ(seconds("Thursday, 01-Jan-76 00:00:00 GMT"), 189302400);    // 1976
  EXPECT_EQ(seconds("Thu, 29 Feb 2024 23:59:60 GMT"), 1709251200);      // a leap second
  for (const char* text :
       {"", "Sun", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 94 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 30 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 UTC", "Sunday, 06 Nov 1994 08:49:37 GMT",
        "unD, 06 Nov 1994 08:49:37 GMT", "-un, 06 Nov 1994 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT"}) {
    EXPECT_EQ(seconds(text), -1) << text;
  }
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
