// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "weft/serve/dispatch/id_table.h"
#include <gtest/gtest.h>

namespace weft::serve {
namespace {

[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=6", 0);

TEST(IdTableProperty, AnyIdsAreFoundAsInAMap) {
  EXPECT_TRUE(rc::check([] {
    // Small ids, neighbours, multiples, and any ids.
    const auto ids = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::oneOf(
        rc::gen::inRange<std::uint32_t>(0, 1100), rc::gen::inRange<std::uint32_t>(0xFFFFFFF0, 0xFFFFFFFF),
        rc::gen::map(rc::gen::inRange<std::uint32_t>(0, 64), [](std::uint32_t n) { return n << 26U; }),
        rc::gen::arbitrary<std::uint32_t>()));
    IdTable<int> table;
    std::map<std::uint32_t, int> model;
    int next = 0;
    for (const std::uint32_t id : ids) {
      ++next;
      RC_ASSERT(table.add(id, next).has_value() == model.emplace(id, next).second);
    }
    RC_ASSERT(table.size() == model.size());
    for (const std::uint32_t id : ids) {
      for (const std::uint32_t around : {id - 1, id, id + 1, id ^ 0x8000'0000U}) {
        const auto expected = model.find(around);
        const int* found = table.find(around);
        RC_ASSERT((found != nullptr) == (expected != model.end()));
        RC_ASSERT((found == nullptr || *found == expected->second));
      }
    }
  }));
}

TEST(IdTableProperty, ItHoldsItsBoundAndRefusesOneMore) {
  IdTable<std::uint32_t> table;
  for (std::uint32_t i = 0; i < IdTable<std::uint32_t>::kSizeMax; ++i) {
    ASSERT_TRUE(table.add(i * 65'537, i + 1));
  }
  EXPECT_EQ(table.add(3, 1).error(), Errc::resource_exhausted);
  for (std::uint32_t i = 0; i < IdTable<std::uint32_t>::kSizeMax; ++i) {
    ASSERT_EQ(*table.find(i * 65'537), i + 1);
  }
}

}  // namespace
}  // namespace weft::serve
