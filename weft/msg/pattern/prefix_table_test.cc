// SPDX-License-Identifier: MIT
#include "weft/msg/pattern/prefix_table.h"

#include <algorithm>
#include <map>
#include <string>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using Table = PrefixTable<int>;

int& insert(Table& table, std::string_view prefix) {
  bool is_new = false;
  return table.insert(as_bytes(prefix), is_new);
}

std::vector<int> matches(Table& table, std::string_view topic) {
  std::vector<int> found;
  table.match(as_bytes(topic), [&](int value) {
    found.push_back(value);
    return true;
  });
  return found;
}

TEST(PrefixTable, FindsEveryPrefixOfATopicFromShortToLong) {
  Table table;
  insert(table, "abc") = 3;
  insert(table, "") = 0;
  insert(table, "a") = 1;
  insert(table, "abd") = 4;
  insert(table, "abcdef") = 6;
  EXPECT_EQ(matches(table, "abcd"), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(matches(table, "abcdef"), (std::vector<int>{0, 1, 3, 6}));
  EXPECT_EQ(matches(table, "b"), (std::vector<int>{0}));
  EXPECT_EQ(matches(table, ""), (std::vector<int>{0}));
}

TEST(PrefixTable, InsertReportsANewPrefixAndKeepsTheValue) {
  Table table;
  bool is_new = false;
  table.insert(as_bytes("a"), is_new) = 5;
  EXPECT_TRUE(is_new);
  EXPECT_EQ(table.insert(as_bytes("a"), is_new), 5);
  EXPECT_FALSE(is_new);
  EXPECT_EQ(table.size(), 1u);
}

TEST(PrefixTable, AnErasedPrefixIsGoneAndTheOthersStay) {
  Table table;
  insert(table, "ab") = 1;
  insert(table, "cd") = 2;
  table.erase(as_bytes("ab"));
  table.erase(as_bytes("never there"));
  EXPECT_EQ(table.find(as_bytes("ab")), nullptr);
  ASSERT_NE(table.find(as_bytes("cd")), nullptr);
  EXPECT_EQ(matches(table, "abc"), std::vector<int>{});
  EXPECT_EQ(matches(table, "cde"), std::vector<int>{2});
  table.erase(as_bytes("cd"));
  EXPECT_EQ(table.size(), 0u);
  EXPECT_FALSE(table.matches(as_bytes("cde")));
}

TEST(PrefixTable, MatchStopsWhenTheVisitorReturnsFalse) {
  Table table;
  insert(table, "") = 0;
  insert(table, "a") = 1;
  int visits = 0;
  table.match(as_bytes("a"), [&](int) { return ++visits < 1; });
  EXPECT_EQ(visits, 1);
}

TEST(PrefixTable, EraseIfVisitsEveryEntryAndTakesTheChosenOnes) {
  Table table;
  for (int i = 0; i < 100; ++i) {
    insert(table, std::string(static_cast<std::size_t>(i % 7), 'x') + std::to_string(i)) = i;
  }
  table.erase_if([](std::string_view, int value) { return value % 3 == 0; });
  EXPECT_EQ(table.size(), 66u);
  int sum = 0;
  table.for_each([&](std::string_view, int& value) {
    EXPECT_NE(value % 3, 0);
    sum += value;
  });
  EXPECT_EQ(sum, 99 * 100 / 2 - 3 * (33 * 34 / 2));
}

TEST(PrefixTable, AgreesWithASearchThroughAllOfThem) {
  Random random(5);
  Table table;
  std::map<std::string, int> reference;
  const auto random_text = [&](std::size_t size_max) {
    std::string text(random.below(size_max + 1), ' ');
    for (char& c : text) {
      c = static_cast<char>('a' + random.below(2));
    }
    return text;
  };
  for (int step = 0; step < 5000; ++step) {
    const std::string prefix = random_text(5);
    if (random.below(2) == 0) {
      insert(table, prefix) = step;
      reference[prefix] = step;
    } else {
      table.erase(as_bytes(prefix));
      reference.erase(prefix);
    }
    const std::string topic = random_text(8);
    std::vector<int> expected;
    for (const auto& [key, value] : reference) {
      if (topic.starts_with(key)) {
        expected.push_back(value);
      }
    }
    std::vector<int> found = matches(table, topic);
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(found, expected) << "topic " << topic << " at step " << step;
    ASSERT_EQ(table.matches(as_bytes(topic)), !expected.empty());
    ASSERT_EQ(table.size(), reference.size());
  }
}

}  // namespace
}  // namespace weft::msg
