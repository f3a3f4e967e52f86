// SPDX-License-Identifier: MIT
// A fleet on NATS whose server does not permit all to a user.
#include <string>

#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// TwoUsers: handles of the users u, with permissions, and v, who may do all.
class TwoUsers {
 public:
  explicit TwoUsers(const std::string& permissions)
      : server_("authorization { users: [ { user: v, password: p }, { user: u, password: p, permissions: { " +
                permissions + " } } ] }\n") {}
  Topics open(const char* user) {
    TopicsOptions options;
    options.fleet = server_.url();
    options.security.user = user;
    options.security.password = "p";
    return *Topics::open(user[0] == 'u' ? limited_ : free_, options);
  }

 private:
  nats::test::NatsServer server_;
  Context limited_;
  Context free_;
};

class OnNatsWithTwoUsers : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(WEFT_NATS_SERVER).empty()) {
      GTEST_SKIP() << "there is no nats-server";
    }
  }
  static Result<Message> echo(const TopicMessage& request) { return Message::copy_of(request.body()); }
};

TEST_F(OnNatsWithTwoUsers, AServiceWithThreadsShowsThatItIsRefused) {
  TwoUsers users("subscribe: { deny: \"secret.>\" }");
  Topics a = users.open("u");
  Service refused = *a.serve("secret.a", {}, echo);
  Service open = *a.serve("open.a", {}, echo);
  ASSERT_TRUE(a.sync(soon()));  // the server has answered
  EXPECT_EQ(refused.status().error(), Errc::not_permitted);
  EXPECT_TRUE(open.status());
  open.stop();
  EXPECT_EQ(open.status().error(), Errc::closed);
}

TEST_F(OnNatsWithTwoUsers, ARefusedGroupEndsAloneAndTheOthersGoOn) {
  TwoUsers users(R"(subscribe: { deny: "svc \"bad\"" })");
  Topics a = users.open("u");
  Service bad = *a.serve("svc", {.group = "\"bad\""}, echo);
  Service good = *a.serve("svc", {.group = "good"}, echo);
  ASSERT_TRUE(a.sync(soon()));
  EXPECT_EQ(bad.status().error(), Errc::not_permitted);
  EXPECT_TRUE(good.status());
  Topics b = users.open("v");
  const auto answer = b.request("svc", "question", soon());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->text(), "question");
}

TEST_F(OnNatsWithTwoUsers, ARefusedInboxFailsRequestsAtOnce) {
  TwoUsers users("subscribe: { deny: \"_INBOX.>\" }");
  Topics a = users.open("u");
  Topics b = users.open("v");
  Service service = *b.serve("svc", {}, echo);
  ASSERT_TRUE(b.sync(soon()));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(a.request("svc", "question", kNever).error(), Errc::not_permitted);
  }
  EXPECT_TRUE(b.request("svc", "question", soon()));
}

TEST_F(OnNatsWithTwoUsers, RefusedMessagesBetweenHandlesFailTheWaitsForThem) {
  TwoUsers users("subscribe: { deny: \"_WEFT.>\" }");
  Topics a = users.open("u");
  Topics b = users.open("v");
  Subscription s = *b.subscribe("t");
  Publisher t = *a.publisher("t");
  EXPECT_EQ(t.wait_subscribers(1, kNever).error(), Errc::not_permitted);
  Topics again = users.open("u");
  EXPECT_EQ(again.publisher("t")->wait_subscribers(1, kNever).error(), Errc::not_permitted);
  ASSERT_TRUE(b.sync(soon()));
  ASSERT_TRUE(t.publish("all the same"));
  const auto m = s.next_until(soon());
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->text(), "all the same");
}

TEST_F(OnNatsWithTwoUsers, AReplyThatIsNotPermittedIsCounted) {
  TwoUsers users("publish: { deny: \"_INBOX.>\" }");
  Topics a = users.open("u");
  Topics b = users.open("v");
  Service service = *a.serve("svc", {}, echo);
  ASSERT_TRUE(a.sync(soon()));
  EXPECT_EQ(b.request("svc", "question", sys::now() + 200ms).error(), Errc::timed_out);
  TopicsStatistics all = a.statistics();
  for (const Instant end = soon(); all.fleet_dropped_refused == 0 && sys::now() < end; all = a.statistics()) {
    ASSERT_TRUE(a.sync(soon()));  // the service may be slower than the deadline of the request
  }
  EXPECT_EQ(all.fleet_dropped_refused, 1u);
  EXPECT_EQ(all.fleet_published, all.fleet_sent + all.fleet_queued + all.fleet_dropped_oldest +
                                     all.fleet_dropped_refused + all.fleet_dropped_closed + all.fleet_dropped_full);
}

}  // namespace
}  // namespace weft::topic
