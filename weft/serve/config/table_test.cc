// SPDX-License-Identifier: MIT
#include "weft/serve/config/table.h"

#include <algorithm>
#include <set>
#include <string>

#include "weft/serve/config/read.h"
#include <gtest/gtest.h>

namespace weft::serve::config {
namespace {

template <typename Of>
void expect_good_rows(std::span<const Row<Of>> rows, const std::string& path) {
  std::set<std::string> names;
  std::set<std::string> variables;
  for (const Row<Of>& row : rows) {
    SCOPED_TRACE(row.key.name);
    EXPECT_TRUE(names.insert(row.key.name).second);
    EXPECT_TRUE(variables.insert(variable_of("WEFT", path + row.key.name)).second);
    EXPECT_FALSE(row.key.doc.empty());
    Of of;
    const Value fallback = row.read(of);
    std::string why;
    EXPECT_TRUE(check_bounds(row.key, fallback, why)) << why;
    EXPECT_TRUE(row.write(of, fallback, why)) << why;
    EXPECT_EQ(to_text(row.read(of)), to_text(fallback));
  }
}

// A value of the key that is not its default.
Value other_value(const Key& key, const Value& fallback) {
  switch (key.kind) {
    case Kind::flag: return !std::get<bool>(fallback);
    case Kind::integer: return std::get<std::int64_t>(fallback) == key.most ? key.least : key.most;
    case Kind::duration: return Duration(key.most);
    case Kind::size: return Size{static_cast<std::uint64_t>(key.most)};
    case Kind::rate: return net::RateLimit{7, 9};
    case Kind::word: return key.words.back();
    case Kind::texts: return std::vector<std::string>{"10.1.0.0/16"};
    default: return std::string("other");
  }
}

template <typename Of>
void expect_own_members(std::span<const Row<Of>> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(rows[i].key.name);
    Of of;
    const Value value = other_value(rows[i].key, rows[i].read(of));
    std::string why;
    ASSERT_TRUE(check_bounds(rows[i].key, value, why)) << why;
    ASSERT_TRUE(rows[i].write(of, value, why)) << why;
    EXPECT_EQ(to_text(rows[i].read(of)), to_text(value));
    for (std::size_t other = 0; other < rows.size(); ++other) {
      if (other != i) {
        EXPECT_EQ(to_text(rows[other].read(of)), to_text(rows[other].read(Of()))) << rows[other].key.name;
      }
    }
  }
}

TEST(ConfigTable, EachKeyIsNamedOnceAndItsDefaultIsInItsBounds) {
  expect_good_rows(settings_rows(), "");
  expect_good_rows(listener_rows(), "listener[0].");
}

TEST(ConfigTable, EachKeySetsAMemberOfItsOwn) {
  expect_own_members(settings_rows());
  expect_own_members(listener_rows());
}

TEST(ConfigTable, AWordIsTheOptionOfItsName) {
  const auto row = std::find_if(listener_rows().begin(), listener_rows().end(),
                                [](const auto& each) { return each.key.name == "limits.slow_consumer"; });
  ListenerSettings listener;
  std::string why;
  ASSERT_TRUE(row->write(listener, std::string("conflate"), why));
  EXPECT_EQ(listener.options.limits.slow_consumer, SlowConsumer::conflate);
}

}  // namespace
}  // namespace weft::serve::config
