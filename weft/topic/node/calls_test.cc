// SPDX-License-Identifier: MIT
#include "weft/topic/node/calls.h"

#include "weft/topic/mesh/requests.h"
#include "weft/topic/wire/control.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

constexpr Error kLost(Errc::connection_closed, "lost");
constexpr Error kRefused(Errc::not_permitted, "refused");
constexpr Error kClosed(Errc::closed, "closed");

IntrusivePtr<SubscriptionCore> queue() { return make_intrusive<SubscriptionCore>(Full::drop_newest, 1, 1000); }

TEST(Calls, AReplyFindsItsRequestUntilItEnds) {
  Calls calls;
  const auto replies = queue();
  ASSERT_TRUE(calls.begin(7, replies));
  EXPECT_EQ(calls.replies_of(7).get(), replies.get());
  calls.end(7);
  EXPECT_EQ(calls.replies_of(7), nullptr);
  EXPECT_TRUE(replies->status());
}

TEST(Calls, ARequestThatFailsEndsItsRepliesAlone) {
  Calls calls;
  const auto one = queue();
  const auto other = queue();
  ASSERT_TRUE(calls.begin(1, one));
  ASSERT_TRUE(calls.begin(2, other));
  calls.fail(1, kLost);
  calls.fail(1, kLost);
  EXPECT_EQ(one->status().error(), kLost);
  EXPECT_TRUE(other->status());
  EXPECT_EQ(calls.replies_of(1), nullptr);
  calls.fail_all(kLost);
  EXPECT_EQ(other->status().error(), kLost);
  EXPECT_NE(calls.replies_of(2), nullptr);  // until it ends
}

TEST(Calls, ARefusedSubjectFailsEachRequestToIt) {
  Calls calls;
  const auto one = queue();
  const auto two = queue();
  const auto other = queue();
  ASSERT_TRUE(calls.begin(1, one, "a"));
  ASSERT_TRUE(calls.begin(2, two, "a"));
  ASSERT_TRUE(calls.begin(3, other, "ab"));
  calls.end(2);
  calls.fail_subject("a", kRefused);
  EXPECT_EQ(one->status().error(), kRefused);
  EXPECT_TRUE(two->status());
  EXPECT_TRUE(other->status());
}

TEST(Calls, RefusedRepliesAndAnswersHoldUntilTheyArePermitted) {
  Calls calls;
  calls.refuse_replies(kRefused);
  EXPECT_EQ(calls.begin(1, queue()).error(), Errc::not_permitted);
  EXPECT_TRUE(calls.answers());
  calls.refuse_answers(kRefused);
  EXPECT_EQ(calls.answers().error(), kRefused);
  calls.permit();
  EXPECT_TRUE(calls.answers());
  EXPECT_TRUE(calls.begin(1, queue()));
}

TEST(Calls, RequestsAndServicesHaveABound) {
  Calls calls;
  const auto shared = queue();
  for (std::uint64_t id = 1; id <= Requests::kRequestsMax; ++id) {
    ASSERT_TRUE(calls.begin(id, shared));
  }
  EXPECT_EQ(calls.begin(0, shared).error(), Errc::resource_exhausted);
  for (std::uint64_t id = 1; id <= Roster::kServicesMax; ++id) {
    ASSERT_TRUE(calls.add_service(id, {shared, 1}));
  }
  EXPECT_EQ(calls.add_service(0, {shared, 1}).error(), Errc::resource_exhausted);
  calls.end(1);
  calls.remove_service(1);
  EXPECT_TRUE(calls.begin(0, shared));
  EXPECT_TRUE(calls.add_service(0, {shared, 1}));
}

TEST(Calls, AServiceIsTakenOutOnce) {
  Calls calls;
  const auto requests = queue();
  ASSERT_TRUE(calls.add_service(5, {requests, 3}));
  EXPECT_EQ(calls.service(5).queue_max, 3U);
  EXPECT_EQ(calls.service(6).requests, nullptr);
  calls.fail_service(5, kRefused);
  EXPECT_EQ(requests->status().error(), kRefused);
  EXPECT_EQ(calls.take_out(*requests), 5U);
  EXPECT_EQ(calls.take_out(*requests), 0U);
  EXPECT_EQ(calls.service(5).requests, nullptr);
}

TEST(Calls, TheCloseHasTheReasonOfAllAndNoneBeginsAfterIt) {
  Calls calls;
  const auto replies = queue();
  const auto requests = queue();
  ASSERT_TRUE(calls.begin(1, replies));
  ASSERT_TRUE(calls.add_service(2, {requests, 1}));
  calls.close(kClosed);
  EXPECT_EQ(replies->status().error(), kClosed);
  EXPECT_EQ(requests->status().error(), kClosed);
  EXPECT_EQ(calls.begin(3, queue()).error(), kClosed);
  EXPECT_EQ(calls.add_service(4, {queue(), 1}).error(), kClosed);
}

}  // namespace
}  // namespace weft::topic
