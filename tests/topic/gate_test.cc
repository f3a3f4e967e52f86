// SPDX-License-Identifier: MIT
// A fleet on NATS: overlapping filters, outages, bounds, names, permissions, a cluster.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "weft/rt/core/core_task.h"
#include "weft/rt/core/runtime.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// Foreign: a client of NATS that is not of this library: lines over TCP.
class Foreign {
 public:
  explicit Foreign(const std::string& port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(port)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    write("CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"protocol\":1}\r\n");
  }
  Foreign(const Foreign&) = delete;
  Foreign& operator=(const Foreign&) = delete;
  ~Foreign() { ::close(fd_); }

  void write(const std::string& bytes) const {
    EXPECT_EQ(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Reads until these bytes have come.
  [[nodiscard]] bool expect(const std::string& bytes) {
    char more[4096];
    std::size_t place = got_.find(bytes);
    while (place == std::string::npos) {
      const ssize_t size = ::recv(fd_, more, sizeof more, 0);
      if (size <= 0) {
        return false;
      }
      got_.append(more, static_cast<std::size_t>(size));
      place = got_.find(bytes);
    }
    got_.erase(0, place + bytes.size());
    return true;
  }

  // Takes the next byte.
  [[nodiscard]] bool take(std::string& byte) {
    char one = 0;
    if (!got_.empty()) {
      byte = got_.substr(0, 1);
      got_.erase(0, 1);
    } else if (::recv(fd_, &one, 1, 0) == 1) {
      byte = one;
    } else {
      return false;
    }
    return true;
  }

 private:
  const int fd_;
  std::string got_;
};

class OnNats : public testing::Test {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
  }
  static void expect_balance(const Topics& topics) {
    const TopicsStatistics all = topics.statistics();
    EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
    EXPECT_EQ(all.fleet_published, all.fleet_sent + all.fleet_queued + all.fleet_dropped_oldest +
                                       all.fleet_dropped_refused + all.fleet_dropped_closed + all.fleet_dropped_full);
  }

  TestFleet fleet_{"nats"};
  Context context_;
  Context second_;
};

// A server sends a message once for each of the process' subscriptions that match.
TEST_F(OnNats, OverlappingFiltersOfAProcessBringAMessageOnce) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  Topics c = fleet_.open(second_);  // the same gate
  Subscription one = *b.subscribe({"px.*", "px.>", "px.AAPL"});
  ASSERT_TRUE(one.add(Filter::glob("p*")));
  Subscription two = *c.subscribe("*.AAPL");
  Publisher px = *a.publisher("px.AAPL");
  ASSERT_TRUE(px.wait_subscribers(2, soon()));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(px.publish(std::to_string(i)));
  }
  for (Subscription* const each : {&one, &two}) {
    for (int i = 0; i < 100; ++i) {
      auto m = each->next_until(soon());
      ASSERT_TRUE(m) << m.error().message();
      EXPECT_EQ(m->text(), std::to_string(i));
    }
    EXPECT_EQ(each->try_next().error(), Errc::would_block);
  }
  expect_balance(a);
  expect_balance(b);
}

TEST_F(OnNats, TheFirstMessageAfterWaitSubscribersArrives) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  for (int i = 0; i < 400; ++i) {
    const std::string topic = "first." + std::to_string(i);
    Subscription s = *b.subscribe(topic);
    Publisher p = *a.publisher(topic);
    ASSERT_TRUE(p.wait_subscribers(1, soon()));
    ASSERT_TRUE(p.publish(topic));
    auto m = s.next_until(soon());
    ASSERT_TRUE(m) << i << ": " << m.error().message();
    EXPECT_EQ(m->text(), topic);
  }
}

// Messages for a server that is away wait up to a bound, the oldest make room, and own subscribers get all of them.
TEST_F(OnNats, LocalTrafficGoesOnWhileTheServerIsAway) {
  TopicsOptions options = fleet_.options();
  options.outage_bytes_max = 20'000;
  Topics a = fleet_.open(context_, options);
  Topics near = fleet_.open(context_, options);
  Topics far = fleet_.open(second_);
  Subscription own = *a.subscribe("t");
  Subscription of_near = *near.subscribe("t");
  Subscription of_far = *far.subscribe("t");
  Publisher t = *a.publisher("t");
  ASSERT_TRUE(t.wait_subscribers(3, soon()));
  fleet_.server().kill();
  EXPECT_EQ(a.request("svc", "x", soon()).has_value(), false);
  constexpr int kMessages = 1000;
  const std::string body(100, 'x');
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(t.publish(std::to_string(i) + body));
  }
  for (int i = 0; i < kMessages; ++i) {
    for (Subscription* const each : {&own, &of_near}) {
      auto m = each->next_until(soon());
      ASSERT_TRUE(m) << m.error().message();
      ASSERT_EQ(m->text(), std::to_string(i) + body);
    }
  }
  fleet_.server().restart();
  // Of those that were kept, the newest come, in their order; a message of after the outage is the last.
  ASSERT_TRUE(a.sync(soon()));
  ASSERT_TRUE(far.sync(soon()));
  ASSERT_TRUE(t.wait_subscribers(3, soon()));
  ASSERT_TRUE(t.publish("end"));
  std::string last;
  int count = 0;
  int number = -1;
  for (auto m = of_far.next_until(soon()); m && last != "end"; m = of_far.next_until(soon())) {
    last = std::string(m->text());
    if (last == "end") {
      break;
    }
    ++count;
    const int of_this = std::stoi(last);
    EXPECT_GT(of_this, number);
    number = of_this;
  }
  EXPECT_EQ(last, "end");
  EXPECT_LE(count * 100, 20'000);
  ASSERT_TRUE(a.sync(soon()));
  const TopicsStatistics all = a.statistics();
  EXPECT_EQ(all.fleet_queued, 0u);
  EXPECT_GT(all.fleet_dropped_oldest, 0u);
  EXPECT_GE(all.fleet_connected, 4u);  // two connections, twice
  expect_balance(a);
}

TEST_F(OnNats, AnotherClientOfNatsReadsWritesAsksAndServes) {
  Topics a = fleet_.open(context_);
  Foreign foreign(fleet_.server().port());
  Subscription s = *a.subscribe("px.*");
  Service service = *a.serve("svc.weft", {.group = "workers"},
                             [](const TopicMessage& m) { return Message::copy_of("re:" + std::string(m.text())); });
  ASSERT_TRUE(a.sync(soon()));
  foreign.write("SUB px.* 1\r\nSUB svc.foreign workers 2\r\nSUB answers 3\r\nPING\r\n");
  ASSERT_TRUE(foreign.expect("PONG\r\n"));

  ASSERT_TRUE(a.publisher("px.A")->publish("188"));
  EXPECT_TRUE(foreign.expect("MSG px.A 1 3\r\n188\r\n"));
  Headers headers;
  ASSERT_TRUE(headers.add("n", "v"));
  ASSERT_TRUE(a.publisher("px.A")->publish("1", headers));
  EXPECT_TRUE(foreign.expect("HMSG px.A 1 18 19\r\nNATS/1.0\r\nn: v\r\n\r\n1\r\n"));
  EXPECT_EQ(s.next_until(soon())->text(), "188");  // its own two, once each
  EXPECT_EQ(s.next_until(soon())->text(), "1");

  foreign.write("PUB px.B 5\r\nhello\r\nHPUB px.C to.me 18 20\r\nNATS/1.0\r\nn: w\r\n\r\nhi\r\n");
  auto plain = s.next_until(soon());
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->topic(), "px.B");
  EXPECT_EQ(plain->text(), "hello");
  EXPECT_EQ(plain->reply_to(), "");
  auto asking = s.next_until(soon());
  ASSERT_TRUE(asking);
  EXPECT_EQ(asking->text(), "hi");
  EXPECT_EQ(asking->header("n"), "w");
  EXPECT_EQ(asking->reply_to(), "to.me");

  foreign.write("PUB svc.weft answers 1\r\nq\r\n");
  EXPECT_TRUE(foreign.expect("MSG answers 3 4\r\nre:q\r\n"));
  std::thread answering([&] {
    ASSERT_TRUE(foreign.expect("HMSG svc.foreign 2 _INBOX."));
    std::string inbox = "_INBOX.";
    for (std::string next(1, ' '); foreign.take(next) && next != " ";) {
      inbox += next;
    }
    foreign.write("PUB " + inbox + " 2\r\nno\r\n");
  });
  const auto reply = a.request("svc.foreign", "x", soon());
  answering.join();
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->text(), "no");
  EXPECT_EQ(s.try_next().error(), Errc::would_block);
}

TEST_F(OnNats, AHandleSendsPings) {
  TopicsOptions options = fleet_.options();
  options.ping_every = 0s;
  EXPECT_EQ(Topics::open(context_, options).error(), Errc::invalid_argument);
}

TEST_F(OnNats, NobodyOwnsATopic) {
  Topics topics = fleet_.open(context_);
  EXPECT_EQ(topics.create("world.7", soon()).error(), Errc::not_supported);
}

// A sanitizer's locks are copied into a forked child.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The connections of a forked child are its parent's.
TEST_F(OnNats, AForkedChildClosesItsHandle) {
  Topics a = fleet_.open(context_);
  ASSERT_TRUE(a.sync(soon()));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    a.close();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(a.sync(soon()));
}
#endif

// The reason names the fleet that can, or the missing JetStream.
TEST_F(OnNats, WhatItCannotServeIsRefusedAtOnce) {
  Topics a = fleet_.open(context_);
  const auto expect_refusal = [](const char* call, const auto& result, const char* reason = "fleet") {
    ASSERT_FALSE(result) << call;
    EXPECT_EQ(result.error(), Errc::not_supported) << call << ": " << result.error().message();
    EXPECT_NE(result.error().message().find(reason), std::string::npos) << call << ": " << result.error().message();
  };
  expect_refusal("create", a.create("world.7", kNever));
  expect_refusal("stream", a.stream({.name = "orders", .topics = {"orders.>"}}), "the disk");
  expect_refusal("key_value", a.key_value("config", {.survives = Survives::process}), "JetStream");
  expect_refusal("streams", a.streams(), "JetStream");
  expect_refusal("add_peer", a.add_peer("tcp://127.0.0.1:1"));
  EXPECT_EQ(a.remove_peer("tcp://127.0.0.1:1").error(), Errc::no_such_endpoint);
  expect_refusal("route", a.route("a.>", "tcp://127.0.0.1:1"));
  EXPECT_TRUE(a.list(">")->empty());
  EXPECT_FALSE(a.exists("world.7"));
}

rt::Task<Result<void>> expect_refusals_in_loop(Context* context, TopicsOptions options) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*rt::Core::current(), *context, options);
  if (!topics) {
    co_return topics.error();
  }
  const auto owned = co_await topics->create("world.7", kNever);
  EXPECT_EQ(owned.error(), Errc::not_supported);
  const StreamOptions orders{.name = "orders", .topics = {"orders.>"}};
  const auto stream = co_await topics->stream(orders);
  EXPECT_EQ(stream.error(), Errc::not_supported);
  const auto bucket = co_await topics->key_value("config");
  EXPECT_EQ(bucket.error(), Errc::not_supported);
  const auto streams = co_await topics->streams();
  EXPECT_EQ(streams.error(), Errc::not_supported);
  EXPECT_EQ(topics->add_peer("tcp://127.0.0.1:1").error(), Errc::not_supported);
  EXPECT_EQ(topics->route("a.>", "tcp://127.0.0.1:1").error(), Errc::not_supported);
  co_return Result<void>();
}

TEST_F(OnNats, WhatItCannotServeIsRefusedAtOnceInALoopToo) {
  rt::RuntimeOptions options;
  options.cores = 1;
  auto runtime = *rt::Runtime::start(options);
  auto future = *rt::spawn(runtime->core(0), expect_refusals_in_loop(&context_, fleet_.options()));
  const Result<void> result = future.get();
  EXPECT_TRUE(result) << result.error().message();
}

TEST_F(OnNats, AMessageThatTheServerDoesNotTakeIsRefused) {
  Topics a = fleet_.open(context_);
  ASSERT_TRUE(a.sync(soon()));
  Subscription own = *a.subscribe("t");
  Publisher t = *a.publisher("t");
  EXPECT_EQ(t.publish(std::string((1U << 20U) + 1, 'x')).error(), Errc::message_too_large);
  EXPECT_EQ(own.try_next().error(), Errc::would_block);
  ASSERT_TRUE(t.publish(std::string(1U << 20U, 'x')));
  EXPECT_EQ(own.next_until(soon())->body().size(), 1U << 20U);
}

// The client refuses the requests that the server sent before its end, and the server those after it.
TEST_F(OnNats, NoRequestToAServiceThatEndsIsLost) {
  Topics a = fleet_.open(context_);
  Foreign foreign(fleet_.server().port());
  RequestQueue requests = *a.serve("svc");
  foreign.write("SUB r 1\r\nPING\r\n");
  ASSERT_TRUE(foreign.expect("PONG\r\n"));
  constexpr int kRequests = 10000;
  std::string burst;
  for (int i = 0; i < kRequests; ++i) {
    burst += "PUB svc r 0\r\n\r\n";
  }
  std::thread asks([&] { foreign.write(burst); });
  ASSERT_TRUE(requests.next_until(soon()));  // it is dropped, which refuses it
  requests.close();
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(foreign.expect("MSG r 1 ")) << i;
  }
  asks.join();
}

// A request in flight may have been answered; one without a server is not sent.
TEST_F(OnNats, RequestsFailWhenTheServerDies) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  RequestQueue requests = *b.serve("svc");
  ASSERT_TRUE(b.sync(soon()));
  std::thread killer([&] {
    auto taken = requests.next_until(soon());
    EXPECT_TRUE(taken);
    fleet_.server().kill();
    if (taken) {
      (void)taken->reply("late");
    }
  });
  EXPECT_EQ(a.request("svc", "x", soon()).error(), Errc::connection_closed);
  killer.join();
  EXPECT_EQ(a.request("svc", "x", soon()).error(), Errc::unreachable);
  fleet_.server().restart();
  ASSERT_TRUE(a.sync(soon()));
  ASSERT_TRUE(b.sync(soon()));
  std::thread server([&] {
    // The request of before the death of the server, if its reply was lost, is not served again.
    for (auto taken = requests.next_until(soon()); taken; taken = requests.next_until(soon())) {
      EXPECT_EQ(taken->text(), "again");
      EXPECT_TRUE(taken->reply("yes"));
      return;
    }
  });
  const auto reply = a.request("svc", "again", soon());
  EXPECT_TRUE(reply) << reply.error().message();
  server.join();
}

// SIGSTOP: the connection stands, and nothing is read.
TEST_F(OnNats, APausedServerDelaysMessagesAndLosesNone) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(second_);
  Subscription s = *b.subscribe("t");
  Publisher t = *a.publisher("t");
  ASSERT_TRUE(t.wait_subscribers(1, soon()));
  fleet_.server().pause();
  constexpr int kMessages = 5000;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(t.publish(std::to_string(i)));
  }
  EXPECT_EQ(a.sync(sys::now() + 50ms).error(), Errc::timed_out);
  fleet_.server().resume();
  for (int i = 0; i < kMessages; ++i) {
    auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    ASSERT_EQ(m->text(), std::to_string(i));
  }
  ASSERT_TRUE(a.sync(soon()));
  expect_balance(a);
}

TEST_F(OnNats, NamesOfAnySeparatorAndSpaceComeBackAsTheyWere) {
  TopicsOptions options = fleet_.options();
  options.space = "prod";
  options.separator = ':';
  Topics a = fleet_.open(context_, options);
  Topics b = fleet_.open(second_, options);
  Topics other = fleet_.open(second_);
  Subscription s = *b.subscribe("player:*");
  Subscription all = *other.subscribe(">");
  Publisher p = *a.publisher("player:x.y=z");
  ASSERT_TRUE(p.wait_subscribers(2, soon()));
  ASSERT_TRUE(p.publish("hello"));
  EXPECT_EQ(s.next_until(soon())->topic(), "player:x.y=z");
  EXPECT_EQ(all.next_until(soon())->topic(), "prod.player.x=2Ey=3Dz");
}

// A server that does not permit a subscription ends it; the others of the handle stay.
TEST(OnNatsWithPermissions, ARefusedSubscriptionEnds) {
  if (std::string(WEFT_NATS_SERVER).empty()) {
    GTEST_SKIP() << "there is no nats-server";
  }
  nats::test::NatsServer server(
      "authorization { users: [ { user: u, password: p, permissions: { subscribe: { deny: \"secret.>\" } } } ] }\n");
  Context context;
  TopicsOptions options;
  options.fleet = server.url();
  options.security.user = "u";
  options.security.password = "p";
  Topics topics = *Topics::open(context, options);
  Subscription open = *topics.subscribe("open.>");
  Subscription refused = *topics.subscribe("secret.*");
  EXPECT_EQ(refused.next_until(soon()).error(), Errc::not_permitted);
  ASSERT_TRUE(topics.sync(soon()));
  ASSERT_TRUE(topics.publisher("open.a")->publish("1"));
  EXPECT_EQ(open.next_until(soon())->text(), "1");
}

// A publication has no answer, and a request fails: one that the server refuses is counted, and the next one arrives.
TEST(OnNatsWithPermissions, ARefusedMessageIsCounted) {
  if (std::string(WEFT_NATS_SERVER).empty()) {
    GTEST_SKIP() << "there is no nats-server";
  }
  nats::test::NatsServer server(
      "authorization { users: [ { user: u, password: p, permissions: { publish: { deny: \"secret.>\" } } } ] }\n");
  Context near;
  Context far;
  TopicsOptions options;
  options.fleet = server.url();
  options.security.user = "u";
  options.security.password = "p";
  Topics a = *Topics::open(near, options);
  Topics b = *Topics::open(far, options);
  Subscription s = *b.subscribe(">");
  Publisher open = *a.publisher("open.a");
  Publisher secret = *a.publisher("secret.a");
  ASSERT_TRUE(open.wait_subscribers(1, soon()));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(secret.publish("no"));
  }
  EXPECT_EQ(a.request("secret.b", "no", soon()).error(), Errc::not_permitted);
  ASSERT_TRUE(open.publish("yes"));
  EXPECT_EQ(s.next_until(soon())->text(), "yes");
  ASSERT_TRUE(a.sync(soon()));
  const TopicsStatistics all = a.statistics();
  EXPECT_EQ(all.fleet_dropped_refused, 4U);
  EXPECT_EQ(all.fleet_published, all.fleet_sent + all.fleet_queued + all.fleet_dropped_refused);
}

// The others on other subjects go on, also those that wait at the same time.
TEST(OnNatsWithPermissions, ARefusedRequestFailsAtOnceAndOthersGoOn) {
  if (std::string(WEFT_NATS_SERVER).empty()) {
    GTEST_SKIP() << "there is no nats-server";
  }
  nats::test::NatsServer server(
      "authorization { users: [ { user: u, password: p, permissions: { publish: { deny: \"secret.>\" } } } ] }\n");
  Context near;
  Context far;
  TopicsOptions options;
  options.fleet = server.url();
  options.security.user = "u";
  options.security.password = "p";
  Topics a = *Topics::open(near, options);
  Topics b = *Topics::open(far, options);
  RequestQueue service = *b.serve("open.a");
  ASSERT_TRUE(b.sync(soon()));
  Result<TopicMessage> answer = Error(Errc::timed_out);
  std::thread asker([&] { answer = a.request("open.a", "question", soon()); });
  auto asked = service.next_until(soon());
  for (int i = 0; i < 3; ++i) {
    const Instant deadline = soon();
    const auto refused = a.request("secret.a", "no", deadline);
    EXPECT_EQ(refused.error(), Errc::not_permitted) << refused.error().message();
    EXPECT_EQ(refused.error().fate(), Fate::not_sent);
    EXPECT_LT(sys::now(), deadline);
  }
  EXPECT_TRUE(asked);
  if (asked) {
    EXPECT_TRUE(asked->reply("answer"));
  }
  asker.join();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->text(), "answer");
}

TEST(OnNatsWithPermissions, ARefusedServiceEndsAndAnotherGoesOn) {
  if (std::string(WEFT_NATS_SERVER).empty()) {
    GTEST_SKIP() << "there is no nats-server";
  }
  nats::test::NatsServer server(
      "authorization { users: [ { user: u, password: p, permissions: { subscribe: { deny: \"secret.>\" } } } ] }\n");
  Context near;
  Context far;
  TopicsOptions options;
  options.fleet = server.url();
  options.security.user = "u";
  options.security.password = "p";
  Topics a = *Topics::open(near, options);
  Topics b = *Topics::open(far, options);
  RequestQueue open = *b.serve("open.a");
  {
    RequestQueue refused = *b.serve("secret.a");
    EXPECT_EQ(refused.next_until(soon()).error(), Errc::not_permitted);
    EXPECT_EQ(a.request("secret.a", "x", soon()).error(), Errc::unreachable);
  }
  Result<TopicMessage> answer = Error(Errc::timed_out);
  std::thread asker([&] { answer = a.request("open.a", "question", soon()); });
  auto asked = open.next_until(soon());
  EXPECT_TRUE(asked);
  if (asked) {
    EXPECT_TRUE(asked->reply("answer"));
  }
  asker.join();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->text(), "answer");
}

// In a cluster the interest of a subscription travels between the servers before the answer to the probe.
TEST(OnThreeServers, TheFirstMessageAfterWaitSubscribersArrives) {
  TestFleet fleet("nats3");
  if (fleet.missing() != nullptr) {
    GTEST_SKIP() << fleet.missing();
  }
  Context near;
  Context far;
  TopicsOptions options = fleet.options();
  options.fleet = fleet.server(0).url();  // the handles begin at two servers
  Topics a = fleet.open(near, options);
  options.fleet = fleet.server(1).url();
  Topics b = fleet.open(far, options);
  for (int i = 0; i < 400; ++i) {
    const std::string topic = "first." + std::to_string(i);
    Subscription s = *b.subscribe(topic);
    Publisher p = *a.publisher(topic);
    ASSERT_TRUE(p.wait_subscribers(1, soon()));
    ASSERT_TRUE(p.publish(topic));
    auto m = s.next_until(soon());
    ASSERT_TRUE(m) << i << ": " << m.error().message();
    EXPECT_EQ(m->text(), topic);
  }
}

// In a cluster the servers learn of a service one after the other.
TEST(OnThreeServers, ARequestReachesAServiceAtAnotherServer) {
  TestFleet fleet("nats3");
  if (fleet.missing() != nullptr) {
    GTEST_SKIP() << fleet.missing();
  }
  Context first;
  Context second;
  Topics a = fleet.open(first);
  Topics b = fleet.open(second);
  Service service = *b.serve("svc", {.group = "workers"},
                             [](const TopicMessage& request) { return Message::copy_of(request.text()); });
  const Instant end = soon();
  auto reply = a.request("svc", "x", end);
  while (!reply && reply.error() == Errc::unreachable && sys::now() < end) {
    reply = a.request("svc", "x", end);
  }
  ASSERT_TRUE(reply) << reply.error().message();
  EXPECT_EQ(reply->text(), "x");
}

}  // namespace
}  // namespace weft::topic
