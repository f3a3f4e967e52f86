// SPDX-License-Identifier: MIT
#include <rapidcheck.h>

#include <cstdlib>
#include <map>
#include <vector>

#include "weft/base/slot_map.h"
#include <gtest/gtest.h>

namespace weft {
namespace {

// Every run has the same cases.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=5", 0);

// Few generations, so that slots wear out too.
template <unsigned kGenerationBits>
void check_against_a_map() {
  SlotMap<int, kGenerationBits> map(200);
  std::map<std::uint64_t, int> expected;
  std::vector<SlotId> stale;
  const int steps = *rc::gen::inRange(0, 600);
  for (int step = 0; step < steps; ++step) {
    const auto which = *rc::gen::arbitrary<std::uint32_t>();
    const int kind = *rc::gen::inRange(0, 5);
    if (kind < 3) {
      const auto id = map.emplace(step);
      RC_ASSERT(id.has_value() == (expected.size() < 200));
      if (id) {
        RC_ASSERT(expected.emplace(id->value, step).second);
      }
    } else if (kind == 3 && !expected.empty()) {
      const auto victim = std::next(expected.begin(), static_cast<std::ptrdiff_t>(which % expected.size()));
      RC_ASSERT(*map.find({victim->first}) == victim->second);
      RC_ASSERT(map.erase({victim->first}));
      stale.push_back({victim->first});
      expected.erase(victim);
    } else if (!stale.empty()) {
      RC_ASSERT(map.find(stale[which % stale.size()]) == nullptr);
      RC_ASSERT(expected.count(stale[which % stale.size()].value) == 0);
    }
    RC_ASSERT(map.size() == expected.size());
  }
  std::map<std::uint64_t, int> walked;
  map.for_each([&](SlotId id, int value) { RC_ASSERT(walked.emplace(id.value, value).second); });
  RC_ASSERT(walked == expected);
}

TEST(SlotMapProperty, BehavesAsAMapWhoseKeysNeverComeBack) {
  EXPECT_TRUE(rc::check("32 bits of generation", check_against_a_map<32>));
  EXPECT_TRUE(rc::check("2 bits of generation", check_against_a_map<2>));
}

}  // namespace
}  // namespace weft
