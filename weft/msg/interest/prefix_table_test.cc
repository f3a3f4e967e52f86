// SPDX-License-Identifier: MIT
#include "weft/msg/interest/prefix_table.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "weft/base/random.h"
#include <gtest/gtest.h>

namespace weft::msg {
namespace {

using Table = PrefixTable<int>;

int& insert(Table& table, std::string_view prefix) {
  bool is_new = false;
  return *table.insert(as_bytes(prefix), is_new);
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
  *table.insert(as_bytes("a"), is_new) = 5;
  EXPECT_TRUE(is_new);
  EXPECT_EQ(*table.insert(as_bytes("a"), is_new), 5);
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

TEST(PrefixTable, FirstGivesOneAfterTheOtherUntilTheTableIsEmpty) {
  Table table;
  int sum = 0;
  for (int i = 0; i < 100; ++i) {
    insert(table, std::string(static_cast<std::size_t>(i % 7), 'x') + std::to_string(i)) = i;
  }
  std::string prefix;
  for (int* value = table.first(prefix); value != nullptr; value = table.first(prefix)) {
    EXPECT_EQ(table.find(as_bytes(prefix)), value);
    sum += *value;
    table.erase(as_bytes(prefix));
  }
  EXPECT_EQ(sum, 99 * 100 / 2);
  EXPECT_EQ(table.size(), 0u);
}

TEST(PrefixTable, PrefixesOfAnyLengthAndManyChildrenAreFound) {
  Table table;
  const std::string deep(70'000, 'd');
  for (const std::size_t size : {70'000, 300, 255, 256, 24, 25, 1, 0, 69'999}) {
    insert(table, deep.substr(0, size)) = static_cast<int>(size);
  }
  for (int byte = 0; byte < 256; ++byte) {
    insert(table, deep.substr(0, 100) + static_cast<char>(byte) + "leaf") = 1000 + byte;
  }
  EXPECT_EQ(matches(table, deep), (std::vector<int>{0, 1, 24, 25, 255, 256, 300, 69'999, 70'000}));
  EXPECT_EQ(matches(table, deep.substr(0, 100) + "\x7fleaf"), (std::vector<int>{0, 1, 24, 25, 1127}));
  for (int byte = 0; byte < 256; ++byte) {
    table.erase(as_bytes(deep.substr(0, 100) + static_cast<char>(byte) + "leaf"));
  }
  for (const std::size_t size : {24, 25, 255, 0, 70'000, 256, 1, 300}) {
    table.erase(as_bytes(deep.substr(0, size)));
  }
  EXPECT_EQ(matches(table, deep), (std::vector<int>{69'999}));
}

// A tree as deep as 10,000 nodes is freed without recursion.
TEST(PrefixTable, EveryPrefixOfALongTopicMayBeInTheTable) {
  Table table;
  const std::string topic(20'000, 'd');
  for (std::size_t size = topic.size(); size > 0; size -= 2) {
    insert(table, std::string_view(topic).substr(0, size)) = 1;
  }
  EXPECT_EQ(matches(table, topic).size(), 10'000u);
}

std::int64_t cleared = 0;
void add_cleared(std::int64_t& value) noexcept { cleared += value; }

TEST(PrefixTable, ClearVisitsEachValueAndEmptiesTheTable) {
  PrefixTable<std::int64_t> table;
  std::int64_t expected = cleared;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 1000; ++i) {
      bool is_new = false;
      *table.insert(as_bytes(std::to_string(i * i) + static_cast<char>(i)), is_new) = i;
      expected += i;
    }
    table.clear<&add_cleared>();
    EXPECT_EQ(cleared, expected);
    EXPECT_EQ(table.size(), 0u);
    EXPECT_FALSE(table.matches(as_bytes("1")));
  }
}

// Random inserts and erases, beside a std::map. The table grows and shrinks by turns.
template <typename Value>
void agree_with_map(std::uint64_t letters, std::uint64_t stride, std::size_t letters_max) {
  SCOPED_TRACE(std::to_string(letters) + " letters, values of " + std::to_string(sizeof(Value)) + " bytes");
  Random random(letters);
  PrefixTable<Value> table;
  std::map<std::string, Value> reference;
  const auto random_text = [&] {
    std::string text;
    for (std::size_t left = random.below(letters_max + 1); left > 0; --left) {
      text += static_cast<char>(random.below(letters) * stride);
      if (random.below(20) == 0) {
        text += std::string(random.below(random.below(20) == 0 ? 300 : 20), 'a');  // some paths outgrow a node
      }
    }
    return text;
  };
  for (int step = 1; step <= 1500; ++step) {
    std::string prefix = random_text();
    if (const auto near = reference.lower_bound(prefix); near != reference.end() && random.below(2) == 0) {
      prefix = near->first.substr(0, random.below(near->first.size() + 2));
    }
    if (random.below(8) < (step / 500 % 2 == 0 ? 6u : 2u)) {
      bool is_new = false;
      Value& value = *table.insert(as_bytes(prefix), is_new);
      ASSERT_EQ(is_new, !reference.contains(prefix));
      ASSERT_EQ(value, is_new ? Value() : reference[prefix]);
      value = reference[prefix] = static_cast<Value>(step);
    } else {
      table.erase(as_bytes(prefix));
      reference.erase(prefix);
    }
    ASSERT_EQ(table.size(), reference.size());
    std::vector<Value> expected;
    const std::string topic = prefix + random_text();
    for (std::size_t size = 0; size <= topic.size(); ++size) {
      if (const auto found = reference.find(topic.substr(0, size)); found != reference.end()) {
        expected.push_back(found->second);
      }
    }
    std::vector<Value> found;
    table.match(as_bytes(topic), [&](Value value) {
      found.push_back(value);
      return true;
    });
    ASSERT_EQ(found, expected) << "step " << step;
    for (std::string after : {prefix, topic, topic.substr(0, topic.size() / 2)}) {
      const auto next = reference.upper_bound(after);
      const Value* const value = table.next(after);
      ASSERT_EQ(value != nullptr, next != reference.end()) << "step " << step;
      ASSERT_TRUE(value == nullptr || (after == next->first && *value == next->second)) << "step " << step;
    }
  }
  for (const auto& [prefix, value] : reference) {
    Value* const found = table.find(as_bytes(prefix));
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*found, value);
  }
  std::string prefix;
  for (Value* value = table.first(prefix); value != nullptr; value = table.first(prefix)) {
    ASSERT_EQ(reference.erase(prefix), 1u);
    table.erase(as_bytes(prefix));
  }
  EXPECT_TRUE(reference.empty());
}

TEST(PrefixTable, AgreesWithAMapWhateverTheLetters) {
  for (const std::uint64_t letters : {1, 2, 10, 26, 255}) {
    for (const std::uint64_t stride : {std::uint64_t{1}, 255 / letters}) {
      agree_with_map<std::uint32_t>(letters, stride, letters > 10 ? 3 : 6);
      agree_with_map<std::int64_t>(letters, stride, letters > 10 ? 3 : 6);
    }
  }
}

TEST(PrefixTable, AgreesWithASearchThroughAllOfThem) {
  Random random(5);
  Table table;
  std::map<std::string, int> reference;
  const auto random_text = [&](std::size_t letters_max) {
    std::string text;
    for (std::size_t left = random.below(letters_max + 1); left > 0; --left) {
      text += random.below(2) == 0 ? "a" : "bcdefghijk";  // some paths outgrow a node
    }
    return text;
  };
  for (int step = 0; step < 5000; ++step) {
    const std::string prefix = random_text(6);
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
    std::vector<int> found;
    const Table::Scope scope = table.match(as_bytes(topic), [&](int value) {
      found.push_back(value);
      return true;
    });
    if (const std::string other = random_text(8);
        scope.whole ? other == topic : as_text(as_bytes(other)).starts_with(topic.substr(0, scope.size))) {
      ASSERT_EQ(matches(table, other), found) << other << " in the scope of " << topic;
    }
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(found, expected) << "topic " << topic << " at step " << step;
    ASSERT_EQ(table.matches(as_bytes(topic)), !expected.empty());
    ASSERT_EQ(table.size(), reference.size());
  }
}

}  // namespace
}  // namespace weft::msg
