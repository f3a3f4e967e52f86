// SPDX-License-Identifier: MIT
// Requests and services, owners and presence, on every kind of fleet.
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weft/topic/test_fleets.h"
#include "weft/topic/topics.h"
#include "weft/topic/wire/control.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class Fleets : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
  }
  [[nodiscard]] Context& other_context() { return GetParam() == "inproc" ? context_ : second_; }
  // Every handle has every other one from here on. The last one has the others first.
  static void meet(const std::vector<Topics*>& handles) {
    for (int round = 0; round < 2; ++round) {
      for (auto each = handles.rbegin(); each != handles.rend(); ++each) {
        ASSERT_TRUE((*each)->sync(soon()));
      }
    }
  }

  TestFleet fleet_{GetParam()};
  Context context_;
  Context second_;
};
class Requests : public Fleets {};
class RequestsOfPeers : public Fleets {};
class Owners : public Fleets {};
class Presence : public Fleets {};
WEFT_ON_FLEETS(Requests, kFleetsOfServices);
WEFT_ON_FLEETS(Presence, kFleets);
WEFT_ON_PEERS(RequestsOfPeers);
WEFT_ON_PEERS(Owners);

RequestHandler echo(std::string name) {
  return [name = std::move(name)](const TopicMessage& request) {
    return Message::copy_of(name + ":" + std::string(request.text()));
  };
}

TEST_P(Requests, OneOfAGroupAnswers) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Topics c = fleet_.open(context_);
  Service first = *b.serve("svc.echo", {.group = "workers"}, echo("b"));
  Service second = *c.serve("svc.echo", {.group = "workers"}, echo("c"));
  meet({&a, &b, &c});
  int of_b = 0;
  int of_c = 0;
  for (int i = 0; i < 40; ++i) {
    const auto reply = a.request("svc.echo", std::to_string(i), soon());
    ASSERT_TRUE(reply) << reply.error().message();
    EXPECT_EQ(reply->text().substr(1), ":" + std::to_string(i));
    (reply->text().front() == 'b' ? of_b : of_c)++;
  }
  if (is_nats(GetParam())) {  // whose servers choose at random
    EXPECT_GT(of_b, 0);
    EXPECT_GT(of_c, 0);
  } else {
    EXPECT_EQ(of_b, 20);
    EXPECT_EQ(of_c, 20);
  }
  EXPECT_EQ(a.statistics().replies, 40u);
  EXPECT_EQ(a.statistics().late_replies, 0u);
}

TEST_P(Requests, NobodyServingIsUnreachableAtOnce) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  meet({&a, &b});
  EXPECT_EQ(a.request("svc.none", "x", kNever).error(), Errc::unreachable);
  {
    Service service = *b.serve("svc.none", {}, echo("b"));
    ASSERT_TRUE(b.sync(soon()));
    ASSERT_TRUE(a.sync(soon()));
    EXPECT_TRUE(a.request("svc.none", "x", soon()));
  }
  ASSERT_TRUE(b.sync(soon()));
  ASSERT_TRUE(a.sync(soon()));
  EXPECT_EQ(a.request("svc.none", "x", kNever).error(), Errc::unreachable);
}

TEST_P(Requests, AHandlesOwnServiceAnswersToo) {
  Topics a = fleet_.open(context_);
  Service service = *a.serve("svc", {}, echo("own"));
  EXPECT_EQ(a.request("svc", "1", soon())->text(), "own:1");
}

TEST_P(Requests, ADeadlinePasses) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  std::atomic<bool> asked{false};
  std::atomic<bool> go_on{false};
  Service service = *b.serve("svc", {}, [&](const TopicMessage&) -> Result<Message> {
    asked = true;
    asked.notify_all();
    go_on.wait(false);
    return Message();
  });
  meet({&a, &b});
  ASSERT_EQ(a.request("svc", "x", sys::now() + 20ms).error(), Errc::timed_out);
  asked.wait(false);
  go_on = true;
  go_on.notify_all();
}

TEST_P(Requests, AnErrorOfAnotherDomainReachesTheAskerWhole) {
  constexpr ErrorDomain kGame("game");
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Service full = *b.serve(
      "svc.full", {}, [&](const TopicMessage&) -> Result<Message> { return Error(kGame, 7, "the room\r\nis full"); });
  meet({&a, &b});
  const Error error = a.request("svc.full", "x", soon()).error();
  EXPECT_EQ(error.domain(), kGame);
  EXPECT_EQ(error.value(), 7);
  EXPECT_EQ(error.code(), Errc::other);
  EXPECT_STREQ(error.text(), "the room??is full");
}

TEST_P(Requests, AnErrorOfTheHandlerIsTheAskersError) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Service refuses = *b.serve(
      "svc.refuse", {}, [](const TopicMessage&) -> Result<Message> { return Error(Errc::not_found, "no such thing"); });
  Service throws = *b.serve("svc.throw", {}, [](const TopicMessage&) -> Result<Message> { throw 1; });
  meet({&a, &b});
  EXPECT_EQ(a.request("svc.refuse", "x", soon()).error(), Errc::not_found);
  EXPECT_EQ(a.request("svc.throw", "x", soon()).error(), Errc::job_threw);
}

TEST_P(Requests, ManyAtATime) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  Service service = *b.serve("svc", {.at_a_time = 4}, echo("b"));
  meet({&a, &b});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string body = std::to_string(t) + "-" + std::to_string(i);
        const auto reply = a.request("svc", body, soon());
        ASSERT_TRUE(reply) << reply.error().message();
        EXPECT_EQ(reply->text(), "b:" + body);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_P(RequestsOfPeers, AHandleThatIsGoneEndsItsRequests) {
  Topics a = fleet_.open(context_);
  auto b = std::make_unique<Topics>(fleet_.open(other_context()));
  std::atomic<bool> asked{false};
  std::atomic<bool> go_on{false};
  Service service = *b->serve("svc", {}, [&](const TopicMessage&) -> Result<Message> {
    asked = true;
    asked.notify_all();
    go_on.wait(false);
    return Message();
  });
  meet({&a, b.get()});
  std::thread closer([&] {
    asked.wait(false);
    b->close();
  });
  EXPECT_EQ(a.request("svc", "x", kNever).error(), Errc::connection_closed);
  closer.join();
  go_on = true;
  go_on.notify_all();
}

TEST_P(Requests, TwoThreadsMayStopAServiceAtOnce) {
  Topics a = fleet_.open(context_);
  for (int i = 0; i < 20; ++i) {
    Service service = *a.serve("svc", {.at_a_time = 2}, echo("a"));
    std::thread other([&] { service.stop(); });
    service.stop();
    // Whoever comes second waits, too: no handler runs any more.
    EXPECT_EQ(a.request("svc", "x", soon()).error(), Errc::unreachable);
    other.join();
  }
}

TEST_P(Requests, OneThatServesAndAsksSharesItsRequestsWithTheOthers) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  std::atomic<int> of_a{0};
  std::atomic<int> of_b{0};
  const auto counting = [](std::atomic<int>& count) {
    return [&count](const TopicMessage&) {
      ++count;
      return Message::copy_of(std::string_view("yes"));
    };
  };
  const Service one = *a.serve("svc", {.group = "w"}, counting(of_a));
  const Service two = *b.serve("svc", {.group = "w"}, counting(of_b));
  Subscription all = *a.subscribe(">");
  Subscription bytes = *b.subscribe(Filter::prefix(""));
  meet({&a, &b});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(a.request("svc", "x", soon()));
  }
  EXPECT_EQ(of_a + of_b, 20);
  if (!is_nats(GetParam())) {
    EXPECT_EQ(of_a, 10);
  }
  // Requests and answers are topics of the handles' own.
  EXPECT_EQ(all.try_next().error(), Errc::would_block);
  EXPECT_EQ(bytes.try_next().error(), Errc::would_block);
}

// Regression: a topic had no owner, and two creators did not find each other.
TEST_P(Owners, TopicCreateConflictsWhileTheOwnerLives) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  meet({&a, &b});
  std::uint64_t epoch = 0;
  {
    Owned world = *a.create("world.7", soon());
    epoch = world.epoch();
    EXPECT_TRUE(world.here());
    EXPECT_TRUE(a.is_local("world.7"));
    EXPECT_EQ(b.create("world.7", soon()).error(), Errc::conflict);
    EXPECT_EQ(a.create("world.7", soon()).error(), Errc::conflict);
    ASSERT_TRUE(b.sync(soon()));
    EXPECT_TRUE(b.exists("world.7"));
    EXPECT_FALSE(b.is_local("world.7"));
    EXPECT_EQ(*b.list("world.*"), std::vector<std::string>{"world.7"});
    EXPECT_TRUE(b.list("other.*")->empty());
  }
  ASSERT_TRUE(b.sync(soon()));
  EXPECT_FALSE(b.exists("world.7"));
  Owned next = *b.create("world.7", soon());
  EXPECT_GT(next.epoch(), epoch);
}

TEST_P(Owners, OfTwoThatCreateAtOnceOneWins) {
  Topics a = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  meet({&a, &b});
  for (int i = 0; i < 20; ++i) {
    const std::string topic = "world." + std::to_string(i);
    std::optional<Result<Owned>> of_a;
    std::optional<Result<Owned>> of_b;
    std::thread other([&] { of_b.emplace(b.create(topic, soon())); });
    of_a.emplace(a.create(topic, soon()));
    other.join();
    EXPECT_NE(of_a->has_value(), of_b->has_value()) << topic;
    EXPECT_EQ((of_a->has_value() ? of_b : of_a)->error(), Errc::conflict);
  }
}

TEST_P(Owners, AHandleThatJustOpenedDeposesNoOwner) {
  for (int i = 0; i < 8; ++i) {
    TestFleet fleet(GetParam());
    Topics a = fleet.open(context_);
    const Owned world = *a.create("world", soon());
    Topics b = fleet.open(i % 2 == 0 ? other_context() : context_);
    EXPECT_EQ(b.create("world", soon()).error(), Errc::conflict);
    EXPECT_TRUE(world.here());
  }
}

TEST_P(Owners, AnOwnerThatIsGoneFreesTheTopic) {
  auto a = std::make_unique<Topics>(fleet_.open(context_));
  Topics keeps = fleet_.open(context_);
  Topics b = fleet_.open(other_context());
  meet({a.get(), &keeps, &b});
  Owned world = *keeps.create("world", soon());
  ASSERT_TRUE(b.sync(soon()));  // and has the owner
  keeps.close();
  EXPECT_FALSE(world.here());
  Result<Owned> next = Errc::conflict;
  const Instant end = soon();
  while (!next && next.error() == Errc::conflict && sys::now() < end) {
    next = b.create("world", soon());
  }
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_GT(next->epoch(), world.epoch());
}

TEST_P(Presence, NodesWithALeaseAreListedAndAnnounced) {
  Topics a = fleet_.open(context_);
  EXPECT_TRUE(a.nodes().empty());
  TopicsOptions options = fleet_.options();
  options.node = "worker";
  options.presence = 10s;
  std::vector<NodeInfo> seen;
  {
    Topics b = fleet_.open(other_context(), options);
    const auto nodes = a.watch_nodes({}, soon());
    ASSERT_TRUE(nodes) << nodes.error().message();
    seen = *nodes;
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen.front().node, "worker");
    EXPECT_EQ(seen.front().instance, b.instance());
    EXPECT_TRUE(b.nodes().empty());  // the first has none
  }
  const auto after = a.watch_nodes(seen, soon());
  ASSERT_TRUE(after) << after.error().message();
  EXPECT_TRUE(after->empty());
}

TEST_P(Owners, OfThreeThatCreateAtOnceOneWins) {
  std::vector<Topics> handles;
  for (int i = 0; i < 3; ++i) {
    handles.push_back(fleet_.open(i == 1 ? other_context() : context_));
  }
  meet({&handles[0], &handles[1], &handles[2]});
  for (int i = 0; i < 10; ++i) {
    const std::string topic = "world." + std::to_string(i);
    std::vector<std::optional<Result<Owned>>> owned(3);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] { owned[t].emplace(handles[t].create(topic, soon())); });
    }
    int owners = 0;
    for (std::size_t t = 0; t < 3; ++t) {
      threads[t].join();
      owners += owned[t]->has_value() ? 1 : 0;
    }
    EXPECT_EQ(owners, 1) << topic;
  }
}

// A socket that is not one of ours speaks as a handle with a lease, falls silent, and stays connected.
TEST_P(Presence, AHandleThatFallsSilentLeavesAfterItsLease) {
  if (GetParam() != "tcp") {
    return;
  }
  Topics a = fleet_.open(context_);
  Socket silent = *second_.socket(SocketType::xsub);
  ASSERT_TRUE(silent.connect(a.endpoint()));
  ASSERT_TRUE(silent.recv_until(soon()));  // the welcome
  Instant said;
  Duration lease = 50ms;
  Result<std::vector<NodeInfo>> seen = Errc::timed_out;
  // A thread that looks after the lease finds no handle: then the next lease is longer.
  for (std::uint64_t round = 1; !seen && lease < 10s; ++round) {
    lease *= 2;
    said = sys::now();
    ASSERT_TRUE(silent.send(*encode_control({.kind = Control::Kind::roster,
                                             .from = 5,
                                             .id = round,
                                             .number = static_cast<std::uint64_t>(lease.count()),
                                             .texts = {"nsilent"}})));
    ASSERT_TRUE(silent.send("\x02 garbage behind the roster"));
    const Instant end = soon();
    while (a.statistics().control_malformed < round && sys::now() < end) {
      std::this_thread::yield();
    }
    ASSERT_EQ(a.statistics().control_malformed, round);
    seen = a.watch_nodes({}, sys::now());
  }
  ASSERT_TRUE(seen) << seen.error().message();
  ASSERT_EQ(seen->size(), 1u);
  EXPECT_EQ(seen->front().node, "silent");
  EXPECT_EQ(seen->front().presence, lease);
  const auto left = a.watch_nodes(*seen, soon());
  ASSERT_TRUE(left) << left.error().message();
  EXPECT_TRUE(left->empty());
  EXPECT_GE(sys::now() - said, lease);
  EXPECT_EQ(a.watch_nodes({}, sys::now() + 10ms).error(), Errc::timed_out);
}

TEST_P(Presence, ALeaseIsRenewedWhileItsHandleLives) {
  Topics a = fleet_.open(context_);
  TopicsOptions options = fleet_.options();
  options.presence = 150ms;
  Topics b = fleet_.open(other_context(), options);
  const auto seen = a.watch_nodes({}, soon());
  ASSERT_TRUE(seen) << seen.error().message();
  ASSERT_EQ(seen->size(), 1u);
  // A busy machine may renew too late; then the handle is back with the next renewal.
  const auto later = a.watch_nodes(*seen, sys::now() + 450ms);
  EXPECT_TRUE(!later || a.watch_nodes(*later, soon())->size() == 1u);
}

}  // namespace
}  // namespace weft::topic
