// SPDX-License-Identifier: MIT
// Topics whose messages reach single sessions of a server, on every fleet.
#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "side.h"
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

using serve::HeaderCodec;
using serve::SharedFrame;
using serve::test::Client;
using serve::test::HeaderSession;

Result<SharedFrame> session_frame(const TopicMessage& message) {
  if (message.text() == "throw") {
    throw 1;
  }
  if (message.text() == "refuse") {
    return Error(Errc::invalid_argument, "the test refuses it");
  }
  return SharedFrame::encode(HeaderCodec(), {9, 0}, message.body());
}

// The topics of the sessions of one core.
struct OfCore {
  SessionTopics* topics = nullptr;  // the core's
  std::promise<bool> ready;
  TopicsStatistics at_end;
};

// Until the topic "stop" has a message.
rt::Task<Result<void>> run_core(rt::Core* core, Context* context, TopicsOptions options, serve::Server* server,
                                OfCore* of) {
  Result<AsyncTopics> topics = co_await AsyncTopics::open(*core, *context, options);
  if (!topics) {
    of->ready.set_value(false);
    co_return topics.error();
  }
  Result<SessionTopics> sessions = topics->session_topics(*server, session_frame);
  Result<AsyncSubscription> stop = topics->subscribe("stop");
  of->topics = sessions ? &*sessions : nullptr;
  of->ready.set_value(sessions && stop);
  const Result<TopicMessage> told = co_await stop->next();
  of->topics = nullptr;
  of->at_end = topics->statistics();
  co_return told ? Result<void>() : Result<void>(told.error());
}

// A client's frame is a command to the topics of its core; each has an answer.
enum Command : std::uint16_t { kAdd = 1, kRemove, kTopic, kCount, kStatus, kAddAbroad };

class OfSessions : public serve::test::ServerTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    ServerTest::SetUp();
    script_.on_frame = [this](HeaderSession& session, const HeaderCodec::Frame& frame) {
      const std::string answer = perform(session, frame.header.id, std::string(as_text(frame.body)));
      EXPECT_TRUE(session.send({frame.header.id, 0}, as_bytes(answer)));
    };
    script_.on_close = [this](HeaderSession& session, const Error&) {
      if (SessionTopics* const topics = here().topics; topics != nullptr && forgets_) {
        topics->remove_all(session.id());
      }
      if (session.id() == added_) {
        ended_.give();
      }
    };
    endpoint_ = listen();
    topics_.emplace(fleet_.open(context_));
    Context* const of_cores = GetParam() == "inproc" ? &context_ : &second_;
    for (unsigned i = 0; i < cores_.size(); ++i) {
      running_.push_back(*rt::spawn(
          runtime_->core(i), run_core(&runtime_->core(i), of_cores, fleet_.options(), server_.get(), &cores_[i])));
      ASSERT_TRUE(cores_[i].ready.get_future().get());
    }
    stop_.emplace(*topics_->publisher("stop", {.when_full = WhenFull::wait}));
    ASSERT_TRUE(stop_->wait_subscribers(cores_.size(), soon()));
  }
  void TearDown() override {
    if (stop_) {
      EXPECT_TRUE(stop_->publish("now"));
      for (auto& each : running_) {
        const Result<void> ended = each.get();
        EXPECT_TRUE(ended) << ended.error().message();
      }
      for (const OfCore& each : cores_) {
        const TopicsStatistics& all = each.at_end;
        EXPECT_EQ(all.matched, all.delivered + all.dropped() + all.queued);
      }
    }
    stop_.reset();
    topics_.reset();
    ServerTest::TearDown();
  }

  OfCore& here() { return cores_.at(rt::Core::current()->index()); }
  std::string perform(HeaderSession& session, std::uint64_t command, const std::string& text) {
    SessionTopics& topics = *here().topics;
    core_ = rt::Core::current()->index();
    switch (command) {
      case kAdd: added_ = session.id(); return text_of(topics.add(text, session.id()));
      case kRemove: return text_of(topics.remove(text, session.id()));
      case kTopic: return topics.topic_of(session.id());
      case kCount: return std::to_string(topics.topics());
      case kStatus: return text_of(topics.status());
      default:
        return text_of(topics.add(
            text, serve::SessionId::make(1 - session.id().core(), session.id().slot(), session.id().epoch())));
    }
  }
  static std::string text_of(const Result<void>& result) { return result ? "ok" : result.error().message(); }
  static std::string ask(Client& client, Command command, std::string_view text = "") {
    client.send(command, text);
    return client.receive().value_or("nothing");
  }
  // Publishes when this many subscriptions are known.
  Publisher publisher(const std::string& topic, std::size_t subscribers = 1) {
    Publisher made = *topics_->publisher(topic, {.when_full = WhenFull::wait});
    EXPECT_TRUE(made.wait_subscribers(subscribers, soon()));
    return made;
  }
  std::uint64_t not_forwarded() const { return cores_[0].at_end.not_forwarded + cores_[1].at_end.not_forwarded; }

  TestFleet fleet_{GetParam()};
  Context context_;
  Context second_;
  std::atomic<unsigned> core_{0};  // of the last command
  std::atomic<bool> forgets_{true};
  std::atomic<serve::SessionId> added_{};  // the session of the last kAdd
  serve::test::Signal ended_;              // that session has
  std::string endpoint_;
  std::optional<Topics> topics_;
  std::array<OfCore, 2> cores_;
  std::vector<rt::Future<void>> running_;
  std::optional<Publisher> stop_;
};

WEFT_ON_FLEETS(OfSessions, kFleets);

TEST_P(OfSessions, EachUserGetsItsOwnMessagesInOrderOnEveryCore) {
  std::vector<std::unique_ptr<Client>> clients;
  std::array<int, 2> on{};
  while (clients.size() < 4 || on[0] == 0 || on[1] == 0) {
    ASSERT_LT(clients.size(), 100u);
    clients.push_back(std::make_unique<Client>(endpoint_));
    ASSERT_EQ(ask(*clients.back(), kAdd, "user." + std::to_string(clients.size())), "ok");
    ++on.at(core_.load());
  }
  std::vector<Publisher> users;
  for (std::size_t i = 1; i <= clients.size(); ++i) {
    users.push_back(publisher("user." + std::to_string(i)));
  }
  for (int i = 0; i < 50; ++i) {
    for (Publisher& user : users) {
      ASSERT_TRUE(user.publish(std::string(user.topic()) + "/" + std::to_string(i)));
    }
  }
  for (std::size_t k = 0; k < clients.size(); ++k) {
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(clients[k]->receive(), "user." + std::to_string(k + 1) + "/" + std::to_string(i));
    }
  }
}

TEST_P(OfSessions, AnotherProcessReachesAUser) {
  Client client(endpoint_);
  ASSERT_EQ(ask(client, kAdd, "user.42"), "ok");
  const TopicsOptions options = fleet_.options();
  if (options.fleet.starts_with("inproc")) {
    return;  // a fleet of one process
  }
  Side other({options.fleet, options.runtime_directory.empty() ? "/nowhere" : options.runtime_directory, "publish",
              "user.42", "100", "1"});
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.receive(), std::to_string(i));
  }
  EXPECT_EQ(other.line(), "published 100 dropped 0");
}

TEST_P(OfSessions, ASessionIsReachedByItsIdAndNoOther) {
  Client first(endpoint_);
  Client second(endpoint_);
  const std::string to_first = ask(first, kTopic);
  const std::string to_second = ask(second, kTopic);
  ASSERT_NE(to_first, to_second);
  Publisher one = publisher(to_first);
  Publisher two = publisher(to_second);
  ASSERT_TRUE(one.publish("to the first"));
  ASSERT_TRUE(two.publish("to the second"));
  EXPECT_EQ(first.receive(), "to the first");
  EXPECT_EQ(second.receive(), "to the second");
  EXPECT_EQ(ask(first, kCount), "0");
  EXPECT_NE(ask(first, kAdd, to_first), "ok");
}

TEST_P(OfSessions, AnIdThatIsMalformedOrHasEndedReachesNobody) {
  Client client(endpoint_);
  const std::string topic = ask(client, kTopic);
  const std::string prefix = topic.substr(0, topic.rfind('.') + 1);
  Publisher good = publisher(topic);
  // The last one: another slot of this core.
  for (const std::string& id : {std::string("x"), std::string("0000000000000000"), std::string("ffffffffffffffff"),
                                topic.substr(prefix.size()) + "0", topic.substr(prefix.size(), 15) + "e"}) {
    if (prefix + id != topic) {
      Publisher bad = *topics_->publisher(prefix + id, {.when_full = WhenFull::wait});
      ASSERT_TRUE(bad.publish("nobody"));
    }
  }
  ASSERT_TRUE(good.publish("you"));
  EXPECT_EQ(client.receive(), "you");
}

TEST_P(OfSessions, AllSessionsOfAUserGetAMessageUntilTheyAreRemoved) {
  Client first(endpoint_);
  Client second(endpoint_);
  for (Client* const each : {&first, &second}) {
    ASSERT_EQ(ask(*each, kAdd, "user.7"), "ok");
    ASSERT_EQ(ask(*each, kAdd, "user.7"), "ok");  // still once
    ASSERT_EQ(ask(*each, kAdd, "team"), "ok");
  }
  // Of one core or of two.
  Publisher user = *topics_->publisher("user.7", {.when_full = WhenFull::wait});
  const std::string to_first = ask(first, kTopic);
  const std::string to_second = ask(second, kTopic);
  const bool of_one_core = to_first.substr(0, to_first.rfind('.')) == to_second.substr(0, to_second.rfind('.'));
  const std::size_t handles = of_one_core ? 1 : 2;
  ASSERT_TRUE(user.wait_subscribers(handles, soon()));
  ASSERT_TRUE(user.publish("both"));
  EXPECT_EQ(first.receive(), "both");
  EXPECT_EQ(second.receive(), "both");
  ASSERT_EQ(ask(first, kRemove, "user.7"), "ok");
  EXPECT_NE(ask(first, kRemove, "user.7"), "ok");
  ASSERT_TRUE(user.publish("second only"));
  EXPECT_EQ(second.receive(), "second only");
  Publisher team = publisher("team", handles);
  ASSERT_TRUE(team.publish("team"));
  EXPECT_EQ(first.receive(), "team");
  EXPECT_EQ(second.receive(), "team");
}

TEST_P(OfSessions, ASessionThatEndsLeavesItsTopics) {
  for (const bool forgets : {true, false}) {
    SCOPED_TRACE(forgets);
    forgets_ = forgets;
    const std::string topic = forgets ? "user.1" : "user.2";  // a subscription of the round before does not count
    Client client(endpoint_);
    ASSERT_EQ(ask(client, kAdd, topic), "ok");
    ASSERT_EQ(ask(client, kAdd, topic + ".more"), "ok");
    const unsigned core = core_;
    Publisher user = publisher(topic);
    client.close();
    ASSERT_TRUE(ended_.take());
    ASSERT_TRUE(user.publish("nobody"));
    // A session of the same core sees that the topics are gone.
    std::vector<std::unique_ptr<Client>> others;
    std::string count;
    const Instant end = soon();
    while (count != "0" && sys::now() < end) {
      if (others.empty()) {
        others.push_back(std::make_unique<Client>(endpoint_));
        (void)ask(*others.back(), kStatus);
        if (core_ != core) {
          others.clear();
          continue;
        }
      }
      count = ask(*others.back(), kCount);
    }
    EXPECT_EQ(count, "0");
    others.clear();
  }
}

TEST_P(OfSessions, WhatEncodeRefusesReachesNobody) {
  Client client(endpoint_);
  ASSERT_EQ(ask(client, kAdd, "user.1"), "ok");
  Publisher user = publisher("user.1");
  for (const char* text : {"1", "refuse", "throw", "2"}) {
    ASSERT_TRUE(user.publish(text));
  }
  EXPECT_EQ(client.receive(), "1");
  EXPECT_EQ(client.receive(), "2");
  EXPECT_EQ(ask(client, kStatus), "ok");
}

TEST_P(OfSessions, NamesAndCoresAreChecked) {
  Client client(endpoint_);
  for (const char* name : {"", "user..1", "user.*", "user.>"}) {
    EXPECT_NE(ask(client, kAdd, name), "ok") << name;
  }
  EXPECT_NE(ask(client, kAddAbroad, "user.1"), "ok");
  EXPECT_EQ(ask(client, kCount), "0");
}

}  // namespace
}  // namespace weft::topic
