// SPDX-License-Identifier: MIT
#include "weft/msg/connection/flusher.h"

#include <array>
#include <optional>

#include <gtest/gtest.h>

namespace weft::msg {
namespace {

constexpr std::array kFlushers = {Flusher::link, Flusher::sender, Flusher::at_once, Flusher::in_turn, Flusher::poller};
constexpr std::array kEvents = {FlushEvent::connect, FlushEvent::disconnect,  FlushEvent::begin, FlushEvent::leave,
                                FlushEvent::done,    FlushEvent::kernel_full, FlushEvent::quiet};
constexpr auto kBug = std::optional<Flusher>();

// The table of the header: a row for each flusher, a column for each event.
constexpr std::optional<Flusher> kTable[kFlushers.size()][kEvents.size()] = {
    {Flusher::sender, Flusher::link, kBug, kBug, kBug, kBug, kBug},
    {kBug, Flusher::link, Flusher::at_once, Flusher::in_turn, Flusher::sender, kBug, kBug},
    {kBug, Flusher::link, Flusher::at_once, Flusher::at_once, Flusher::at_once, Flusher::poller, Flusher::sender},
    {kBug, Flusher::link, Flusher::in_turn, Flusher::in_turn, Flusher::in_turn, Flusher::poller, Flusher::sender},
    {kBug, Flusher::link, Flusher::at_once, Flusher::in_turn, Flusher::sender, kBug, kBug},
};

TEST(Flusher, ChangesAsTheTableSays) {
  for (std::size_t row = 0; row < kFlushers.size(); ++row) {
    for (std::size_t column = 0; column < kEvents.size(); ++column) {
      if (kTable[row][column]) {
        EXPECT_EQ(next_flusher(kFlushers[row], kEvents[column]), kTable[row][column]) << row << ' ' << column;
      }
    }
  }
}

TEST(FlusherDeathTest, AChangeThatTheTableDoesNotHaveAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (std::size_t row = 0; row < kFlushers.size(); ++row) {
    for (std::size_t column = 0; column < kEvents.size(); ++column) {
      if (!kTable[row][column]) {
        EXPECT_DEATH((void)next_flusher(kFlushers[row], kEvents[column]), "internal error") << row << ' ' << column;
      }
    }
  }
}

TEST(Flusher, OnlyTheTwoThatTheIoThreadVisitsAreArmed) {
  for (const Flusher flusher : kFlushers) {
    EXPECT_EQ(is_armed(flusher), flusher == Flusher::at_once || flusher == Flusher::in_turn);
  }
}

}  // namespace
}  // namespace weft::msg
