// SPDX-License-Identifier: MIT
#include "weft/topic/node/open_subscriptions.h"

#include <cstdint>
#include <string_view>

#include <gtest/gtest.h>

namespace weft::topic {
namespace {

IntrusivePtr<SubscriptionCore> subscription() {
  return make_intrusive<SubscriptionCore>(Full::drop_newest, 1, std::size_t{1} << 20);
}
void offer(SubscriptionCore& to) {
  TopicMessage message;
  to.offer(std::move(message));
}
std::uint64_t dropped(const OpenSubscriptions& subscriptions) {
  TopicsStatistics counts;
  subscriptions.add_counts(counts);
  return counts.dropped_newest;
}

TEST(OpenSubscriptions, TheCountsOfASubscriptionStayWhenItEnds) {
  OpenSubscriptions subscriptions;
  const auto first = subscription();
  const auto second = subscription();
  subscriptions.add(first);
  subscriptions.add(second);
  for (int i = 0; i < 3; ++i) {
    offer(*first);
  }
  offer(*second);
  offer(*second);
  EXPECT_EQ(dropped(subscriptions), 3U);
  subscriptions.remove(*first);
  EXPECT_EQ(dropped(subscriptions), 3U);
  subscriptions.remove(*first);  // counted once
  EXPECT_EQ(dropped(subscriptions), 3U);
  EXPECT_EQ(subscriptions.all().size(), 1U);
  offer(*first);  // it is not of the handle any longer
  EXPECT_EQ(dropped(subscriptions), 3U);
}

TEST(OpenSubscriptions, TheEndOfAllHasItsReason) {
  OpenSubscriptions subscriptions;
  const auto open = subscription();
  const auto removed = subscription();
  subscriptions.add(open);
  subscriptions.add(removed);
  subscriptions.remove(*removed);
  subscriptions.close_all(Error(Errc::closed, "a test"));
  EXPECT_EQ(open->try_pop().error().text(), std::string_view("a test"));
  EXPECT_EQ(removed->try_pop().error(), Errc::would_block);
  subscriptions.close_all(Error(Errc::closed, "again"));
  EXPECT_EQ(open->try_pop().error().text(), std::string_view("a test"));
}

}  // namespace
}  // namespace weft::topic
