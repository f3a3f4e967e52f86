// SPDX-License-Identifier: MIT
// A fleet on NATS whose server does not permit all to a user.
#include <string>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// TwoUsers: handles of the users u, with permissions, and v, who may do all.
class TwoUsers {
 public:
  explicit TwoUsers(const std::string& permissions) : server_(config_of(permissions)) {}
  // The server dies, and comes back with other permissions of u.
  void change(const std::string& permissions) { server_.restart_with(config_of(permissions)); }
  Topics open(const char* user) { return *Topics::open(user[0] == 'u' ? limited_ : free_, options(user)); }
  [[nodiscard]] TopicsOptions options(const char* user) const {
    TopicsOptions options;
    options.fleet = server_.url();
    options.security.user = user;
    options.security.password = "p";
    return options;
  }

 private:
  static std::string config_of(const std::string& permissions) {
    return "authorization { users: [ { user: v, password: p }, { user: u, password: p, permissions: { " + permissions +
           " } } ] }\n";
  }

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

rt::Task<Result<Message>> echo_in_loop(TopicMessage request) { co_return Message::copy_of(request.body()); }

rt::Task<Result<void>> expect_refused_service(Context* context, TopicsOptions options) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*rt::Core::current(), *context, options);
  if (!topics) {
    co_return topics.error();
  }
  Result<Ongoing> refused = topics->serve("secret.a", {}, echo_in_loop);
  Result<Ongoing> open = topics->serve("open.a", {}, echo_in_loop);
  if (!refused || !open) {
    co_return Error(Errc::invalid_state);
  }
  // The refusal comes in a turn of the loop after the answer to sync().
  for (const Instant end = soon(); refused->status() && sys::now() < end;) {
    const auto synced = co_await topics->sync(soon());
    if (!synced) {
      co_return synced.error();
    }
  }
  EXPECT_EQ(refused->status().error(), Errc::not_permitted);
  EXPECT_TRUE(open->status());
  const auto answer = co_await topics->request("open.a", Message(), soon());
  EXPECT_TRUE(answer);
  open->stop();
  EXPECT_EQ(open->status().error(), Errc::closed);
  const Ongoing moved = *std::move(open);
  EXPECT_EQ(open->status().error(), Errc::closed);
  EXPECT_EQ(moved.status().error(), Errc::closed);
  co_return Result<void>();
}

TEST_F(OnNatsWithTwoUsers, AServiceOfALoopShowsThatItIsRefused) {
  const TwoUsers users("subscribe: { deny: \"secret.>\" }");
  rt::RuntimeOptions options;
  options.cores = 1;
  auto runtime = *rt::Runtime::start(options);
  Context context;
  auto future = *rt::spawn(runtime->core(0), expect_refused_service(&context, users.options("u")));
  const Result<void> result = future.get();
  EXPECT_TRUE(result) << result.error().message();
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
  users.change("");
  ASSERT_TRUE(a.sync(soon()));
  ASSERT_TRUE(b.sync(soon()));
  const auto permitted = a.request("svc", "question", soon());
  EXPECT_TRUE(permitted) << permitted.error().message();
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

  users.change("");
  ASSERT_TRUE(again.sync(soon()));
  ASSERT_TRUE(b.sync(soon()));
  for (Topics* const each : {&a, &again}) {
    const auto ready = each->publisher("t")->wait_subscribers(1, soon());
    EXPECT_TRUE(ready) << ready.error().message();
  }
  users.change("subscribe: { deny: \"_WEFT.>\" }");
  Error why;
  for (const Instant end = soon(); why != Errc::not_permitted && sys::now() < end;) {
    const auto ready = t.wait_subscribers(2, sys::now() + 50ms);
    why = ready ? Error() : ready.error();
  }
  EXPECT_EQ(why, Errc::not_permitted) << why.message();
}

// Also while the one that was refused is still there.
TEST_F(OnNatsWithTwoUsers, AnotherSubscriptionToARefusedFilterIsToldTooAndOneLaterMayBePermitted) {
  TwoUsers users("subscribe: { deny: \"secret\" }");
  Topics a = users.open("u");
  Topics b = users.open("v");
  Subscription first = *a.subscribe("secret");
  EXPECT_EQ(first.next_until(soon()).error(), Errc::not_permitted);
  Subscription second = *a.subscribe("secret");
  EXPECT_EQ(second.next_until(soon()).error(), Errc::not_permitted);
  users.change("");
  ASSERT_TRUE(a.sync(soon()));
  ASSERT_TRUE(b.sync(soon()));
  Subscription third = *a.subscribe("secret");
  Publisher secret = *b.publisher("secret");
  ASSERT_TRUE(secret.wait_subscribers(1, soon()));
  ASSERT_TRUE(secret.publish("told"));
  const auto m = third.next_until(soon());
  ASSERT_TRUE(m) << m.error().message();
  EXPECT_EQ(m->text(), "told");
}

TEST_F(OnNatsWithTwoUsers, AReplyThatIsNotPermittedIsCountedAndToldUntilTheServerPermitsIt) {
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
  EXPECT_EQ(service.status().error(), Errc::not_permitted);
  users.change("");
  ASSERT_TRUE(a.sync(soon()));
  EXPECT_TRUE(service.status());
  ASSERT_TRUE(b.sync(soon()));
  EXPECT_TRUE(b.request("svc", "question", soon()));
  service.stop();
  EXPECT_EQ(service.status().error(), Errc::closed);
  all = a.statistics();
  EXPECT_EQ(all.fleet_published, all.fleet_sent + all.fleet_queued + all.fleet_dropped_oldest +
                                     all.fleet_dropped_refused + all.fleet_dropped_closed + all.fleet_dropped_full);
}

rt::Task<Result<void>> expect_refused_reply(Context* context, TopicsOptions options) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*rt::Core::current(), *context, options);
  if (!topics) {
    co_return topics.error();
  }
  Result<AsyncRequestQueue> queue = topics->serve("svc");
  if (!queue) {
    co_return queue.error();
  }
  EXPECT_TRUE(queue->status());
  Result<TakenRequest> request = co_await queue->next();
  if (!request) {
    co_return request.error();
  }
  EXPECT_TRUE(request->reply("answer"));
  for (const Instant end = soon(); queue->status() && sys::now() < end;) {
    const auto synced = co_await topics->sync(soon());
    if (!synced) {
      co_return synced.error();
    }
  }
  EXPECT_EQ(queue->status().error(), Errc::not_permitted);
  co_return Result<void>();
}

TEST_F(OnNatsWithTwoUsers, AQueueOfALoopShowsThatItsRepliesAreRefused) {
  TwoUsers users("publish: { deny: \"_INBOX.>\" }");
  rt::RuntimeOptions options;
  options.cores = 1;
  auto runtime = *rt::Runtime::start(options);
  Context context;
  auto future = *rt::spawn(runtime->core(0), expect_refused_reply(&context, users.options("u")));
  Topics b = users.open("v");
  while (!future.ready()) {
    EXPECT_FALSE(b.request("svc", "question", sys::now() + 200ms));
  }
  const Result<void> result = future.get();
  EXPECT_TRUE(result) << result.error().message();
}

}  // namespace
}  // namespace weft::topic
