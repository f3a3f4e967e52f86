// SPDX-License-Identifier: MIT
// The filters of a handle without memory: each allocation fails once, alone and with all later ones.

#include <cstddef>
#include <vector>

#include "tests/exhaustion/walk.h"
#include "weft/topic/node/interest.h"

namespace weft {
namespace {

using test::FailingMemory;
using test::made;
using test::walk;

TEST(TopicsExhaustion, TheInterestHasTheFiltersThatItTook) {
  const std::vector<Filter> filters = {*Filter::parse("a.b"), *Filter::parse("a.*"), *Filter::parse("a.>"),
                                       *Filter::glob("a*b"),  *Filter::prefix("a."), *Filter::prefix("a.long.one")};
  walk([&](FailingMemory& memory) {
    memory.end();
    topic::Interest interest;
    const auto s = make_intrusive<topic::SubscriptionCore>(Full::drop_oldest, 4, 1000);
    std::vector<IntrusivePtr<const topic::OwnFilter>> own;
    for (const Filter& filter : filters) {
      own.push_back(make_intrusive<const topic::OwnFilter>("", filter));
    }
    memory.resume();
    std::size_t patterns = 0;
    bool has[6] = {};
    for (std::size_t i = 0; i < filters.size(); ++i) {
      has[i] = made(interest.add(*s, own[i]));
      patterns += has[i] && i != 0 ? 1 : 0;
    }
    memory.end();
    EXPECT_EQ(interest.patterns(), patterns);
    for (std::size_t i = 0; i < filters.size(); ++i) {
      EXPECT_EQ(interest.remove(*s, filters[i]), has[i]) << i;
    }
    EXPECT_EQ(interest.count("a.b"), 0u);
  });
}

}  // namespace
}  // namespace weft
