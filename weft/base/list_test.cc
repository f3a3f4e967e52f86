// SPDX-License-Identifier: MIT
#include "weft/base/list.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace weft {
namespace {

struct Item : ListHook {
  explicit Item(int n) : number(n) {}
  int number;
};

std::vector<int> drain(List<Item>& list) {
  std::vector<int> numbers;
  while (!list.empty()) {
    Item& item = list.front();
    numbers.push_back(item.number);
    item.unhook();
  }
  return numbers;
}

TEST(List, KeepsTheOrder) {
  List<Item> list;
  Item one(1);
  Item two(2);
  EXPECT_TRUE(list.empty());
  list.push_back(one);
  list.push_back(two);
  EXPECT_TRUE(one.hooked());
  EXPECT_EQ(drain(list), (std::vector{1, 2}));
  EXPECT_FALSE(one.hooked());
}

TEST(List, AnItemThatEndsLeavesItsList) {
  List<Item> list;
  Item one(1);
  auto two = std::make_unique<Item>(2);
  Item three(3);
  list.push_back(one);
  list.push_back(*two);
  list.push_back(three);
  two.reset();
  one.unhook();
  one.unhook();  // idempotent
  EXPECT_EQ(drain(list), (std::vector{3}));
}

TEST(List, SplicesAnotherBehindItself) {
  List<Item> list;
  List<Item> other;
  Item one(1);
  Item two(2);
  Item three(3);
  list.splice_back(other);
  EXPECT_TRUE(list.empty());
  other.push_back(two);
  other.push_back(three);
  list.push_back(one);
  list.splice_back(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(drain(list), (std::vector{1, 2, 3}));
}

TEST(List, IsWalkedAndTakenFromTheFront) {
  List<Item> list;
  Item one(1);
  Item two(2);
  EXPECT_EQ(list.first(), nullptr);
  EXPECT_EQ(list.pop_front(), nullptr);
  list.push_back(one);
  list.push_back(two);
  EXPECT_EQ(list.first(), &one);
  EXPECT_EQ(list.next(one), &two);
  EXPECT_EQ(list.next(two), nullptr);
  EXPECT_EQ(list.pop_front(), &one);
  EXPECT_FALSE(one.hooked());
  EXPECT_EQ(drain(list), (std::vector{2}));
}

TEST(List, LeavesItsItemsWhenItEnds) {
  Item one(1);
  {
    List<Item> list;
    list.push_back(one);
  }
  EXPECT_FALSE(one.hooked());
}

}  // namespace
}  // namespace weft
