// SPDX-License-Identifier: MIT
#include "weft/sync/counter_block.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "weft/sync/counter.h"
#include <gtest/gtest.h>

namespace weft::sync {
namespace {

// clang-format off
#define WEFT_TEST_COUNTERS(ROW)                                                                   \
  ROW(frames_in, counter, "frames_total", "direction", "in", "frames", "Frames: received.", "a")  \
  ROW(frames_out, counter, "frames_total", "direction", "out", "frames", "Frames: sent.", "a")    \
  ROW(open, gauge, "sessions", "", "", "sessions", "Sessions: those that there are.", "b")
// clang-format on

template <typename Number>
struct TestNumbers {
  WEFT_COUNTER_BLOCK(WEFT_TEST_COUNTERS)
};
using Values = TestNumbers<std::uint64_t>;
constexpr CounterRow kRows[] = {WEFT_TEST_COUNTERS(WEFT_COUNTER_ROW)};
static_assert(count_of_rows<Values>() == std::size(kRows));

TEST(CounterBlock, ValuesAreTheSumOfTheBlocksThatCounted) {
  TestNumbers<Counter> one;
  TestNumbers<std::atomic<std::uint64_t>> other;
  one.frames_in.add(3);
  one.open.add();
  other.frames_in += 4;
  other.frames_out += 5;
  Values sum;
  add_counters(sum, one);
  add_counters(sum, other);
  EXPECT_EQ(read_counters(sum), (std::vector<std::uint64_t>{7, 5, 1}));
  EXPECT_EQ(read_counters(one), (std::vector<std::uint64_t>{3, 0, 1}));
}

TEST(CounterBlock, ADifferenceIsOfCountersAndGaugesStay) {
  const Values before{10, 20, 30};
  const Values difference = counters_since({11, 22, 7}, before, kRows);
  EXPECT_EQ(read_counters(difference), (std::vector<std::uint64_t>{1, 2, 7}));
}

TEST(CounterBlock, ARowSaysWhatItsMetricSharesWithOthers) {
  EXPECT_EQ(kRows[0].member, "frames_in");
  EXPECT_EQ(kRows[0].shared_help(), "Frames");
  EXPECT_EQ(kRows[1].shared_help(), "Frames");
  EXPECT_EQ(kRows[2].shared_help(), "Sessions: those that there are.") << "it shares with none";
  EXPECT_EQ(kRows[2].kind, CounterKind::gauge);
}

}  // namespace
}  // namespace weft::sync
