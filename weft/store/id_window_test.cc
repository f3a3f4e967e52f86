// SPDX-License-Identifier: MIT
#include "weft/store/id_window.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::store {
namespace {

using namespace std::chrono_literals;

TEST(IdWindow, KnowsAnIdUntilItsTimeHasPassed) {
  IdWindow window;
  window.add("a", 1, WallTime(10s));
  window.add("b", 2, WallTime(11s));
  EXPECT_EQ(window.find("a"), 1U);
  window.forget_before(WallTime(10s));
  EXPECT_EQ(window.find("a"), 1U);
  window.forget_before(WallTime(10s + 1ns));
  EXPECT_EQ(window.find("a"), std::nullopt);
  EXPECT_EQ(window.find("b"), 2U);
}

TEST(IdWindow, AnIdOfAnEarlierTimeIsUnknownBeforeItIsForgotten) {
  IdWindow window;
  window.add("a", 1, WallTime(10s));
  window.add("b", 2, WallTime(11s));
  EXPECT_EQ(window.find("a", WallTime(10s)), 1U);
  EXPECT_EQ(window.find("a", WallTime(11s)), std::nullopt);
  window.add("a", 3, WallTime(12s), WallTime(11s));
  window.add("b", 4, WallTime(12s), WallTime(11s));
  EXPECT_EQ(window.find("a"), 3U);
  EXPECT_EQ(window.find("b"), 2U);
  window.forget_before(WallTime(12s), 1);
  EXPECT_EQ(window.find("b"), 2U) << "only one goes: the first entry of a";
  window.forget_before(WallTime(12s), 1);
  EXPECT_EQ(window.find("b"), std::nullopt);
  EXPECT_EQ(window.find("a"), 3U);
  EXPECT_EQ(window.first_sequence(), 3U);
}

TEST(IdWindow, IsFreedInParts) {
  IdWindow window;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    window.add(std::to_string(i), i, WallTime(1s));
  }
  EXPECT_FALSE(window.free_some(9));
  EXPECT_EQ(window.size(), 1U);
  EXPECT_TRUE(window.free_some(1));
}

TEST(IdWindow, KeepsTheFirstSequenceOfAnIdAndNoEmptyId) {
  IdWindow window;
  window.add("a", 1, WallTime(10s));
  window.add("a", 2, WallTime(11s));
  window.add("", 3, WallTime(11s));
  EXPECT_EQ(window.find("a"), 1U);
  EXPECT_EQ(window.find(""), std::nullopt);
  EXPECT_EQ(window.size(), 1U);
}

TEST(IdWindow, AnIdThatIsRenewedIsKnownByItsLaterSequenceAlone) {
  IdWindow window;
  window.add("a", 1, WallTime(10s));
  window.add("b", 2, WallTime(11s));
  window.renew("a", 3, WallTime(20s));
  window.renew("c", 4, WallTime(20s));
  window.renew("b", 1, WallTime(20s));  // not later
  EXPECT_EQ(window.find("a"), 3U);
  EXPECT_EQ(window.find("b"), 2U);
  std::string seen;
  window.visit_from(1, [&seen](const std::string& id, std::uint64_t sequence, WallTime) {
    seen += id + std::to_string(sequence) + " ";
  });
  EXPECT_EQ(seen, "b2 a3 c4 ");
  for (int i = 0; i < 100; ++i) {  // grows
    window.add("d" + std::to_string(i), 5, WallTime(20s));
  }
  window.forget_before(WallTime(20s));
  EXPECT_EQ(window.find("b"), std::nullopt);
  EXPECT_EQ(window.find("a"), 3U);
  window.forget_from(0);
  EXPECT_EQ(window.size(), 0U);
}

TEST(IdWindow, TakesTheNewestBack) {
  IdWindow window;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    window.add("id" + std::to_string(i), i, WallTime(1s));
  }
  window.forget_from(7);
  EXPECT_EQ(window.size(), 6U);
  EXPECT_EQ(window.find("id6"), 6U);
  EXPECT_EQ(window.find("id7"), std::nullopt);
  window.add("id7", 7, WallTime(2s));
  EXPECT_EQ(window.find("id7"), 7U);
}

TEST(IdWindow, KnowsTheSameAsAListWhateverComesAndGoes) {
  IdWindow window(200);
  std::deque<std::pair<std::string, std::uint64_t>> list;
  Random random(7);
  const auto known = [&](const std::string& id) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.first == id; });
    return found == list.end() ? std::nullopt : std::optional(found->second);
  };
  for (std::uint64_t i = 1; i <= 20'000; ++i) {
    const std::string id = std::to_string(random.below(400));
    ASSERT_EQ(window.find(id), known(id)) << i;
    window.add(id, i, WallTime(std::chrono::seconds(i)));
    if (!known(id)) {
      list.emplace_back(id, i);
      if (list.size() > 200) {
        list.pop_front();
      }
    }
    if (i % 97 == 0 && i > 50) {
      window.forget_from(i - 20);
      std::erase_if(list, [&](const auto& each) { return each.second >= i - 20; });
    }
    if (i % 89 == 0 && i > 100) {
      window.forget_before(WallTime(std::chrono::seconds(i - 100)));
      std::erase_if(list, [&](const auto& each) { return each.second < i - 100; });
    }
    ASSERT_EQ(window.size(), list.size());
  }
}

TEST(IdWindow, HasBoundsAndCountsWhatTheyPushOut) {
  IdWindow by_count(100, 1'000'000);
  IdWindow by_bytes(1'000'000, 1000);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::string id = "an id of 20 b " + std::to_string(100'000 + i);
    by_count.add(id, i, WallTime(1s));
    by_bytes.add(id, i, WallTime(1s));
  }
  EXPECT_EQ(by_count.size(), 100U);
  EXPECT_EQ(by_count.overflowed(), 900U);
  EXPECT_EQ(by_bytes.size(), 50U);
  EXPECT_EQ(by_bytes.find("an id of 20 b 100999"), 999U);
}

}  // namespace
}  // namespace weft::store
