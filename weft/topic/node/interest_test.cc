// SPDX-License-Identifier: MIT
#include "weft/topic/node/interest.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "tests/support/sanitized.h"
#include "tests/support/thread_time.h"
#include "weft/base/random.h"
#include "weft/base/test_filters.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

IntrusivePtr<SubscriptionCore> make_subscription() {
  return make_intrusive<SubscriptionCore>(Full::drop_oldest, 16, 1 << 20);
}
IntrusivePtr<const OwnFilter> own(const Filter& filter) {
  return make_intrusive<const OwnFilter>(std::string(filter.text()), filter);
}

TEST(InterestTable, AgreesWithATestOfEachFilter) {
  constexpr std::size_t kSubscriptions = 7;
  Random random(5);
  InterestTable interest;
  std::vector<IntrusivePtr<SubscriptionCore>> all;
  std::vector<std::set<Filter>> held(kSubscriptions);
  for (std::size_t i = 0; i < kSubscriptions; ++i) {
    all.push_back(make_subscription());
  }
  std::vector<Filter> filters;
  for (int i = 0; i < 300; ++i) {
    filters.push_back(naive::random_filter(random));
  }
  MatchMemo memo;
  for (int round = 0; round < 4000; ++round) {
    const std::size_t s = random.below(kSubscriptions);
    const Filter& filter = filters[random.below(filters.size())];
    if (random.below(3) != 0) {
      EXPECT_EQ(*interest.add(*all[s], own(filter)), held[s].insert(filter).second);
    } else {
      EXPECT_EQ(interest.remove(*all[s], filter), held[s].erase(filter) != 0);
    }
    const std::string topic = naive::random_text(random, "ab.", 8);
    std::set<const SubscriptionCore*> wanted;
    std::size_t patterns = 0;
    for (std::size_t i = 0; i < kSubscriptions; ++i) {
      for (const Filter& each : held[i]) {
        patterns += each.kind() == FilterKind::exact ? 0 : 1;
        if (each.matches(topic)) {
          wanted.insert(all[i].get());
        }
      }
    }
    EXPECT_EQ(interest.patterns(), patterns);
    EXPECT_EQ(interest.count(topic), wanted.size()) << topic;
    interest.match(topic, memo);
    ASSERT_EQ(memo.matches.size(), wanted.size()) << topic;
    for (const Match& match : memo.matches) {
      EXPECT_TRUE(wanted.contains(match.subscription.get()));
      EXPECT_TRUE(match.filter->wire.matches(topic));
    }
  }
  for (std::size_t i = 0; i < kSubscriptions; ++i) {
    EXPECT_EQ(interest.remove_all(*all[i]).size(), held[i].size());
  }
  EXPECT_EQ(interest.patterns(), 0u);
  EXPECT_EQ(interest.count("a"), 0u);
}

// A glob that takes more steps than its share in the index is decided nevertheless.
TEST(InterestTable, AGlobOfManyStepsMatchesNothingElse) {
  InterestTable interest;
  const auto subscription = make_subscription();
  std::string pattern;
  for (int i = 0; i < 100; ++i) {
    pattern += "*a";
  }
  ASSERT_TRUE(*interest.add(*subscription, own(*Filter::glob(pattern + "b"))));
  EXPECT_EQ(interest.count(std::string(255, 'a')), 0u);
  EXPECT_EQ(interest.count(std::string(200, 'a') + "b"), 1u);
}

// Regression: each message was compared with every filter that is not exact.
TEST(InterestTable, AHundredThousandFiltersCostAMessageNoMoreThanAHundred) {
  constexpr int kFew = 100;
  constexpr int kMany = kSanitized ? 20'000 : 100'000;
  const auto filter = [](int i) {
    const std::string number = std::to_string(i);
    return i % 3 == 0   ? *Filter::parse("room." + number + ".*")
           : i % 3 == 1 ? *Filter::glob("user:" + number + ":*:end")
                        : *Filter::prefix("log/" + number + "/");
  };
  const auto cost = [&](int filters) {
    InterestTable interest;
    const auto subscription = make_subscription();
    for (int i = 0; i < filters; ++i) {
      EXPECT_TRUE(*interest.add(*subscription, own(filter(i))));
    }
    Duration least = std::chrono::hours(1);
    for (int round = 0; round < 5; ++round) {
      const Duration begin = thread_time();
      std::uint64_t found = 0;
      for (int i = 0; i < 200; ++i) {
        const std::string number = std::to_string(i * 31 % filters);
        found += interest.count("room." + number + ".x") + interest.count("user:" + number + ":x:end") +
                 interest.count("log/" + number + "/x");
      }
      least = std::min(least, thread_time() - begin);
      EXPECT_GE(found, 200u);
    }
    return static_cast<double>(least.count());
  };
  const double ratio = cost(kMany) / cost(kFew);
  std::printf("%d filters cost %.1f times what 100 cost\n", kMany, ratio);
  EXPECT_LT(ratio, 40);  // one by one: kMany / 100
}

}  // namespace
}  // namespace weft::topic
