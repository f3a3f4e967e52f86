// SPDX-License-Identifier: MIT
// Topics that are forwarded to the sessions of a server.
#include <algorithm>
#include <atomic>
#include <future>
#include <string>
#include <vector>

#include "weft/rt/core/core.h"
#include "weft/rt/core/core_task.h"
#include "weft/rt/exec/future.h"
#include "weft/serve/frame/header_codec.h"
#include "weft/serve/server/test_client.h"
#include "weft/topic/async_topics.h"
#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using serve::GroupId;
using serve::HeaderCodec;
using serve::SharedFrame;
using serve::test::Client;
using serve::test::HeaderSession;

constexpr GroupId kRoom{7};

Result<SharedFrame> encode(const TopicMessage& message) {
  if (message.text() == "throw") {
    throw 1;
  }
  if (message.text() == "refuse") {
    return Error(Errc::invalid_argument, "the test refuses it");
  }
  return SharedFrame::encode(HeaderCodec(), {1, 0}, message.body());
}

// A forwarding on a core, until the topic "stop" has a message.
rt::Task<Result<void>> forward_until_stop(rt::Core* core, Context* context, TopicsOptions options,
                                          std::vector<std::string> filters, serve::Server* server,
                                          TopicsStatistics* at_end) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    co_return topics.error();
  }
  std::vector<Ongoing> forwardings;
  for (const std::string& filter : filters) {
    Result<Ongoing> forwarding = topics->forward(filter, *server, kRoom, encode);
    if (!forwarding) {
      co_return forwarding.error();
    }
    forwardings.push_back(*std::move(forwarding));
  }
  Result<AsyncSubscription> stop = topics->subscribe("stop");
  const Result<TopicMessage> told = co_await stop->next();
  *at_end = topics->statistics();
  co_return told ? Result<void>() : Result<void>(told.error());
}

// Tells where the handle is, and keeps it until the topic "stop" has a message.
rt::Task<Result<void>> hold_until_stop(rt::Core* core, Context* context, TopicsOptions options,
                                       std::promise<AsyncTopics*>* opened) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    opened->set_value(nullptr);
    co_return topics.error();
  }
  Result<AsyncSubscription> stop = topics->subscribe("stop");
  opened->set_value(&*topics);
  const Result<TopicMessage> told = co_await stop->next();
  co_return told ? Result<void>() : Result<void>(told.error());
}
rt::Task<Result<void>> forward_here(AsyncTopics* topics, serve::Server* server) {
  const Result<Ongoing> forwarding = topics->forward("room.>", *server, kRoom, encode);
  co_return forwarding ? Result<void>() : Result<void>(forwarding.error());
}

class Forward : public serve::test::ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
      if (frame.header.id == 1) {
        EXPECT_TRUE(session.join(kRoom));
      } else {
        session.leave(kRoom);
      }
      core_ = rt::Core::current();
      done_.give();
    };
    endpoint_ = listen(limits_);
    topics_.emplace(fleet_.open(context_));
  }
  void TearDown() override {
    topics_.reset();
    ServerTest::TearDown();
  }
  void start(std::vector<std::string> filters, unsigned core = 0) {
    ended_.emplace(
        *rt::spawn(runtime_->core(core), forward_until_stop(&runtime_->core(core), &second_, fleet_.options(),
                                                            std::move(filters), server_.get(), &at_end_)));
    stop_.emplace(*topics_->publisher("stop", {.when_full = WhenFull::wait}));
    EXPECT_TRUE(stop_->wait_subscribers(1, soon()));
  }
  void stop() {
    ASSERT_TRUE(stop_->publish("now"));
    const Result<void> ended = ended_->get();
    EXPECT_TRUE(ended) << ended.error().message();
    EXPECT_EQ(at_end_.matched, at_end_.delivered + at_end_.dropped() + at_end_.queued);
  }
  std::unique_ptr<Client> join() {
    auto client = std::make_unique<Client>(endpoint_);
    client->send(1, "");
    EXPECT_TRUE(done_.take());
    return client;
  }

  TestFleet fleet_{"local"};
  Context context_;
  Context second_;
  serve::ListenerOptions limits_;
  serve::test::Signal done_;
  std::atomic<rt::Core*> core_{nullptr};  // of the session whose frame came last
  std::string endpoint_;
  std::optional<Topics> topics_;
  std::optional<Publisher> stop_;
  std::optional<rt::Future<void>> ended_;
  TopicsStatistics at_end_;
};

TEST_F(Forward, EachSessionOfTheGroupGetsEachMessageOnEveryCore) {
  start({"room.7.>"}, 1);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<rt::Core*> cores;
  // On both cores, as the kernel spreads them; and on the core of the first session is one that stays.
  while (clients.size() < 6 || std::count(cores.begin() + 1, cores.end() - 1, cores.front()) == 0) {
    ASSERT_LT(clients.size(), 100u);
    clients.push_back(join());
    cores.push_back(core_.load());
  }
  Client outside(endpoint_);
  Publisher room = *topics_->publisher("room.7.chat", {.when_full = WhenFull::wait});
  Publisher other = *topics_->publisher("room.8.chat", {.when_full = WhenFull::wait});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(other.publish("not for room 7"));
    ASSERT_TRUE(room.publish(std::to_string(i)));
  }
  for (auto& client : clients) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(client->receive(), std::to_string(i));
    }
  }
  // A session that leaves gets nothing more, and the others do.
  clients.front()->send(2, "");
  ASSERT_TRUE(done_.take());
  clients.back()->close();
  clients.pop_back();
  ASSERT_TRUE(room.publish("after"));
  for (std::size_t i = 1; i < clients.size(); ++i) {
    EXPECT_EQ(clients[i]->receive(), "after");
  }
  clients.front()->send(1, "");
  ASSERT_TRUE(done_.take());
  ASSERT_TRUE(room.publish("back"));
  EXPECT_EQ(clients.front()->receive(), "back");
  stop();
  EXPECT_EQ(at_end_.not_forwarded, 0u);
}

TEST_F(Forward, AnotherCoreThanTheHandlesIsRefused) {
  std::promise<AsyncTopics*> opened;
  auto held = *rt::spawn(runtime_->core(0), hold_until_stop(&runtime_->core(0), &second_, fleet_.options(), &opened));
  AsyncTopics* const topics = opened.get_future().get();
  ASSERT_NE(topics, nullptr);
  EXPECT_EQ(rt::spawn(runtime_->core(1), forward_here(topics, server_.get()))->get().error(), Errc::invalid_state);
  EXPECT_TRUE(rt::spawn(runtime_->core(0), forward_here(topics, server_.get()))->get());
  Publisher stop = *topics_->publisher("stop");
  ASSERT_TRUE(stop.wait_subscribers(1, soon()));
  ASSERT_TRUE(stop.publish("now"));
  EXPECT_TRUE(held.get());
}

// Two forwardings of one message are two frames; a subscription with filters that overlap is one.
TEST_F(Forward, FiltersThatOverlapForwardOnceEach) {
  start({"a.>", "a.b"});
  const auto client = join();
  Publisher p = *topics_->publisher("a.b", {.when_full = WhenFull::wait});
  Publisher q = *topics_->publisher("a.c", {.when_full = WhenFull::wait});
  ASSERT_TRUE(p.publish("twice"));
  EXPECT_EQ(client->receive(), "twice");
  EXPECT_EQ(client->receive(), "twice");
  ASSERT_TRUE(q.publish("once"));
  ASSERT_TRUE(q.publish("end"));
  EXPECT_EQ(client->receive(), "once");
  EXPECT_EQ(client->receive(), "end");
  stop();
}

TEST_F(Forward, WhatEncodeRefusesIsCountedAndTheRestGoesOn) {
  start({"a"});
  const auto client = join();
  Publisher p = *topics_->publisher("a", {.when_full = WhenFull::wait});
  for (const char* text : {"1", "refuse", "throw", "2"}) {
    ASSERT_TRUE(p.publish(text));
  }
  EXPECT_EQ(client->receive(), "1");
  EXPECT_EQ(client->receive(), "2");
  stop();
  EXPECT_EQ(at_end_.not_forwarded, 2u);
}

// Regression: a forwarding to a server that has stopped went on taking messages.
TEST_F(Forward, AForwardingEndsWithItsServer) {
  start({"a"});
  const auto client = join();
  Publisher p = *topics_->publisher("a", {.when_full = WhenFull::wait});
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(server_->stop(soon()));
  ASSERT_TRUE(p.publish("nobody is there"));
  // The subscription goes: a probe is answered anew when the number changes, and its handle has none then.
  const Instant end = soon();
  while (*p.wait_subscribers(0, soon()) != 0 || !topics_->sync(soon())) {
    ASSERT_LT(sys::now(), end);
    if (p.wait_subscribers(1, sys::now() + 10ms).error() == Errc::timed_out) {
      break;
    }
  }
  stop();
  EXPECT_GE(at_end_.not_forwarded, 1u);
}

// A session that does not read is the matter of its own limits: the others get all.
TEST_F(Forward, ASlowSessionDisturbsNoOther) {
  start({"a"});
  const auto slow = join();
  const auto quick = join();
  Publisher p = *topics_->publisher("a", {.when_full = WhenFull::wait});
  const std::string body(8000, 'x');
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(p.publish(body + std::to_string(i)));
    ASSERT_EQ(quick->receive(), body + std::to_string(i));
  }
  stop();
}

}  // namespace
}  // namespace weft::topic
