// SPDX-License-Identifier: MIT
#include "weft/logging/repeats.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weft::logging {
namespace {

constexpr char kEvents[Repeats::kEvents * 2] = {};  // an address for each event
constexpr int kPart = 0;
constexpr int kOther = 0;

TEST(Repeats, AllowsANumberOfLinesOfEachEventInEachSecond) {
  Repeats repeats;
  for (int second = 0; second < 3; ++second) {
    for (const int* part : {&kPart, &kOther}) {
      for (const char* event : {&kEvents[0], &kEvents[1]}) {
        for (int i = 0; i < 10; ++i) {
          EXPECT_EQ(repeats.admit(part, event, second, 4), i < 4);
        }
      }
    }
  }
}

TEST(Repeats, WithoutABoundAllowsAll) {
  Repeats repeats;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(repeats.admit(&kPart, &kEvents[0], 0, 0));
  }
  EXPECT_FALSE(repeats.waiting());
}

TEST(Repeats, ASuppressedLineIsReportedOnceAfterItsSecond) {
  Repeats repeats;
  for (int i = 0; i < 10; ++i) {
    (void)repeats.admit(&kPart, &kEvents[0], 7, 3);
  }
  std::vector<std::uint32_t> told;
  const auto tell = [&told](const Repeats::Entry& entry) {
    EXPECT_EQ(entry.event, &kEvents[0]);
    EXPECT_EQ(entry.component, &kPart);
    told.push_back(entry.suppressed);
  };
  EXPECT_TRUE(repeats.waiting());
  repeats.take(7, false, tell);
  EXPECT_TRUE(told.empty());
  EXPECT_TRUE(repeats.waiting());
  repeats.take(8, false, tell);
  EXPECT_EQ(told, std::vector<std::uint32_t>{7});
  EXPECT_FALSE(repeats.waiting());
  for (int i = 0; i < 5; ++i) {
    (void)repeats.admit(&kPart, &kEvents[0], 9, 3);
  }
  repeats.take(9, true, tell);  // all, at the end
  EXPECT_EQ(told, (std::vector<std::uint32_t>{7, 2}));
}

TEST(Repeats, EventsBeyondTheTableShareOneCount) {
  Repeats repeats;
  for (std::size_t i = 0; i < Repeats::kEvents; ++i) {
    EXPECT_TRUE(repeats.admit(&kPart, &kEvents[i], 0, 1));
  }
  EXPECT_TRUE(repeats.admit(&kPart, &kEvents[Repeats::kEvents], 0, 1));
  EXPECT_FALSE(repeats.admit(&kPart, &kEvents[Repeats::kEvents + 1], 0, 1));
  EXPECT_FALSE(repeats.admit(&kPart, &kEvents[0], 0, 1));  // the first ones keep their own
  std::uint32_t shared = 0;
  std::uint32_t own = 0;
  repeats.take(1, false,
               [&](const Repeats::Entry& entry) { (entry.event == nullptr ? shared : own) += entry.suppressed; });
  EXPECT_EQ(shared, 1U);
  EXPECT_EQ(own, 1U);
}

}  // namespace
}  // namespace weft::logging
