// SPDX-License-Identifier: MIT
// Publishing to a hub that loses, doubles, lies, ends and comes back.
#include "weft/topic/kept/hub_link.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weft/topic/kept/test_link.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class HubLinkTest : public KeptTest {};

// Waits until the condition holds. The link's news end the wait; nothing sleeps.
template <typename Condition>
bool eventually(Condition condition) {
  const Instant end = soon();
  while (!condition()) {
    if (sys::now() > end) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

void expect_books_balance(HubLink& link) {
  const KeptStatistics all = link.statistics();
  EXPECT_EQ(all.appended, all.acknowledged + all.refused + all.unknown + all.unsent + all.in_flight);
}

TEST_F(HubLinkTest, APublishGetsItsSequence) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream orders = link.stream({.name = "orders"});
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto published = orders.publish("orders.eu", "x");
    ASSERT_TRUE(published) << published.error().message();
    EXPECT_EQ(published->sequence, i);
    EXPECT_FALSE(published->duplicate);
  }
  EXPECT_EQ(orders.survives(), Survives::power);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, AnIdIsStoredOnce) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream orders = link.stream({.name = "orders"});
  EXPECT_EQ(orders.publish("a", "x", {.id = "17"})->sequence, 1u);
  const auto again = orders.publish("a", "x", {.id = "17"});
  EXPECT_EQ(again->sequence, 1u);
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(orders.publish("a", "y", {.expect_last = 7}).error(), Errc::conflict);
  EXPECT_EQ(orders.publish("a", "y", {.expect_last = 1})->sequence, 2u);
  EXPECT_EQ(orders.publish("b", "y", {.expect_last = 0})->sequence, 3u);
  EXPECT_EQ(link->statistics().refused, 1u);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, TwoHandlesNeverUseOneId) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink one(context_, endpoint_);
  TestLink two(context_, endpoint_);
  Stream first = one.stream({.name = "orders"});
  Stream second = two.stream({.name = "orders"});
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(first.publish("a", "x")->duplicate);
    EXPECT_FALSE(second.publish("a", "x")->duplicate);
  }
}

TEST_F(HubLinkTest, ADeclarationWithOtherSettingsIsAConflict) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream orders = link.stream({.name = "orders"});
  EXPECT_EQ(Stream::declare(link.link(), {.name = "orders", .keep = Keep::work}).error(), Errc::conflict);
  EXPECT_EQ(Stream::declare(link.link(), {.name = "o.*"}).error(), Errc::invalid_argument);
  EXPECT_EQ(Stream::declare(link.link(), {.name = ""}).error(), Errc::invalid_argument);
}

TEST_F(HubLinkTest, WhatNoHubTookIsTimedOutAndWhatWasSentIsUnknown) {
  FakeStore other;
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  hub->mute_answers = true;
  // A deadline that passes before the call sends anything is another error, which no counter has: then once more.
  EXPECT_TRUE(eventually(
      [&] { return orders.publish("a", "x", {.deadline = sys::now() + 30ms}).error() == Errc::outcome_unknown; }));
  const auto question = *HubLink::prepare({.kind = OpKind::info, .name = "orders"}, OnLoss::resend, sys::now() + 30ms);
  EXPECT_EQ(link->run(question).error(), Errc::timed_out) << "a question has no outcome";
  hub.reset();
  // Until the end of the connection is seen, a message may still be sent into it.
  EXPECT_TRUE(eventually([&] {
    const Error error = orders.publish("a", "x", {.deadline = sys::now() + 10ms}).error();
    return error == Errc::timed_out && link->statistics().unsent != 0;
  }));
  EXPECT_EQ(link->statistics().unsent, 1u);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, OnNatsTheTextOfAMissingAnswerNamesTheServersAndWhyNoneIsConnected) {
  Socket silent = *context_.socket(SocketType::router);
  ASSERT_TRUE(silent.bind("inproc://weft.silent"));
  for (const Error& missing : {Error(), Error(Errc::connection_failed, "the port is closed")}) {
    const auto loop = *rt::Loop::make("topics");
    const auto link = std::make_shared<HubLink>(
        *loop, LinkSettings{.endpoint = "inproc://weft.silent",
                            .id = "nats",
                            .make_socket = [this] { return context_.socket(SocketType::dealer); },
                            .direct = true,
                            .servers_missing = [missing] { return missing; }});
    ASSERT_TRUE(loop->start(nullptr));
    for (const OnLoss on_loss : {OnLoss::resend, OnLoss::give_up}) {
      const bool unknown = on_loss == OnLoss::give_up;
      const auto call = *HubLink::prepare({.kind = OpKind::info, .name = "orders"}, on_loss, sys::now() + 30ms);
      const Error error = link->run(call).error();
      const std::string text(error.text());
      EXPECT_EQ(text.find("hub"), std::string::npos) << text;
      EXPECT_NE(text.find("of NATS"), std::string::npos) << text;
      EXPECT_EQ(text.find("the port is closed") != std::string::npos, missing != Errc::ok) << text;
      // A deadline that passes before the call leaves: nothing was sent.
      EXPECT_TRUE(error == Errc::timed_out || (unknown && error == Errc::outcome_unknown)) << text;
      EXPECT_EQ(text.find("may have carried") != std::string::npos, error == Errc::outcome_unknown) << text;
    }
    loop->stop();
    link->close();
  }
}

TEST_F(HubLinkTest, ARefusalWithoutATextNamesTheHubOrTheServersOfNats) {
  for (const bool nats : {false, true}) {
    for (const Errc errc : {Errc::not_found, Errc::conflict, Errc::resource_exhausted, Errc::corrupt,
                            Errc::not_supported, Errc::not_permitted, Errc::would_block}) {
      FakeHub hub(context_, endpoint_, store_, [errc](FakeHub& self, const Op& op) {
        self.send({.kind = OpKind::answer, .id = op.id, .code = static_cast<std::uint16_t>(errc)});
        return false;
      });
      const auto loop = *rt::Loop::make("topics");
      const auto link = std::make_shared<HubLink>(
          *loop, LinkSettings{.endpoint = endpoint_,
                              .id = "refused",
                              .make_socket = [this] { return context_.socket(SocketType::dealer); },
                              .direct = nats});
      ASSERT_TRUE(loop->start(nullptr));
      const auto call = *HubLink::prepare({.kind = OpKind::info, .name = "orders"}, OnLoss::resend, soon());
      const Error error = link->run(call).error();
      const std::string text(error.text());
      EXPECT_EQ(error, errc == Errc::would_block ? Errc::protocol_error : errc) << text;
      EXPECT_EQ(text.find("hub") != std::string::npos, !nats && errc != Errc::would_block) << text;
      EXPECT_EQ(text.find("of NATS") != std::string::npos, nats && errc != Errc::would_block) << text;
      loop->stop();
      link->close();
    }
  }
}

TEST_F(HubLinkTest, LostAnswersAreAskedForAgainWithTheSameIds) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  hub->mute_answers = true;
  std::vector<PendingPublish> pending;
  for (int i = 0; i < 100; ++i) {
    pending.push_back(*orders.publish_later("a", std::to_string(i)));
  }
  ASSERT_TRUE(eventually([&] { return hub->appends == 100; }));
  hub.reset();
  hub.emplace(context_, endpoint_, store_);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const auto published = pending[i].wait();
    ASSERT_TRUE(published) << published.error().message();
    EXPECT_EQ(published->sequence, i + 1);
    EXPECT_TRUE(published->duplicate);
  }
  EXPECT_EQ(store_.streams["orders"].messages.size(), 100u);
  EXPECT_EQ(link->statistics().resent, 100u);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, LostRequestsLeaveAgainInTheirOrder) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  hub.reset();
  // Every third append is lost; then the hub ends, and another one gets all without an answer.
  std::atomic<int> seen{0};
  hub.emplace(context_, endpoint_, store_,
              [&](FakeHub&, const Op& op) { return op.kind != OpKind::append || ++seen < 30; });
  std::vector<PendingPublish> pending;
  for (int i = 0; i < 60; ++i) {
    pending.push_back(*orders.publish_later("a", std::to_string(i)));
  }
  ASSERT_TRUE(eventually([&] { return seen == 60; }));
  hub.reset();
  hub.emplace(context_, endpoint_, store_);
  for (int i = 60; i < 80; ++i) {
    pending.push_back(*orders.publish_later("a", std::to_string(i)));
  }
  for (PendingPublish& each : pending) {
    ASSERT_TRUE(each.wait());
  }
  const auto& messages = store_.streams["orders"].messages;
  ASSERT_EQ(messages.size(), 80u);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].body, std::to_string(i));
  }
}

TEST_F(HubLinkTest, WithoutAWindowNothingIsSentTwice) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders", .same_id_window = Duration(0)});
  hub->mute_answers = true;
  auto pending = *orders.publish_later("a", "x");
  ASSERT_TRUE(eventually([&] { return hub->appends == 1; }));
  hub.reset();
  EXPECT_EQ(pending.wait().error(), Errc::outcome_unknown);
  hub.emplace(context_, endpoint_, store_);
  ASSERT_TRUE(orders.publish("a", "y"));
  EXPECT_EQ(store_.streams["orders"].messages.size(), 2u);
}

TEST_F(HubLinkTest, AnswersThatComeTwiceOrToNothingAreCounted) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_, [](FakeHub& self, const Op& op) {
    if (op.kind == OpKind::append) {
      self.send({.kind = OpKind::answer, .id = op.id + 1000, .number = 77});
      self.send({.kind = OpKind::delivery, .id = op.id, .number = 77});
      self.send({.kind = OpKind::ended, .id = op.id + 7});
      self.send({.kind = OpKind::append, .id = op.id});
    }
    return true;
  });
  hub.answer_times = 2;
  Stream orders = link.stream({.name = "orders"});
  for (std::uint64_t i = 1; i <= 10; ++i) {
    EXPECT_EQ(orders.publish("a", "x")->sequence, i);
  }
  EXPECT_TRUE(eventually([&] { return link->statistics().malformed >= 1 + 10 + 10 + 9; }));
  EXPECT_EQ(link->statistics().dropped_unasked, 10u);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, ARunOfAnswersEndsTheAppendsThatThereAreAndNothingElse) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_, [](FakeHub& self, const Op& op) {
    if (op.kind == OpKind::append) {
      self.send({.kind = OpKind::answer, .flags = OpFlags::run, .id = op.id, .number = 7, .second = 4097});
      self.send({.kind = OpKind::answer, .flags = OpFlags::run, .id = op.id, .number = 7, .second = 0});
      self.send({.kind = OpKind::answer, .flags = OpFlags::run, .id = op.id, .second = 1, .code = 9});
      self.send({.kind = OpKind::answer, .flags = OpFlags::run, .id = op.id - 1, .number = 41, .second = 3});
      return false;
    }
    if (op.kind == OpKind::info) {
      self.send({.kind = OpKind::answer, .flags = OpFlags::run, .id = op.id, .number = 1, .second = 1});
    }
    return true;
  });
  Stream orders = link.stream({.name = "orders"});
  EXPECT_EQ(orders.publish("a", "x")->sequence, 42U);
  EXPECT_TRUE(eventually([&] { return link->statistics().malformed == 4; }));
  EXPECT_TRUE(orders.info());
  EXPECT_EQ(link->statistics().malformed, 5U);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, BytesThatAreNoOpsAreCounted) {
  TestLink link(context_, endpoint_);
  Socket hostile = *context_.socket(SocketType::router);
  ASSERT_TRUE(hostile.bind(endpoint_));
  std::thread thread([&] {
    auto first = hostile.recv_all();
    ASSERT_TRUE(first);
    for (const std::size_t size : {0U, 1U, 31U, 40U, 100'000U}) {
      std::vector<Message> parts;
      parts.push_back((*first)[0].share());
      parts.push_back(*Message::copy_of(std::string(size, '\xff')));
      ASSERT_TRUE(hostile.send_all(parts));
    }
  });
  std::atomic<bool> ended{false};
  std::thread declaring([&] {
    EXPECT_FALSE(Stream::declare(link.link(), {.name = "orders"}));
    ended = true;
  });
  EXPECT_TRUE(eventually([&] { return link->statistics().malformed == 5; }));
  thread.join();
  EXPECT_FALSE(ended);
  link.close();
  declaring.join();
}

TEST_F(HubLinkTest, AtMost4096MessagesAreUnderWay) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  hub.mute_answers = true;
  std::vector<PendingPublish> pending;
  for (std::size_t i = 0; i < HubLink::kInFlightMax; ++i) {
    pending.push_back(*orders.publish_later("a", "x"));
  }
  EXPECT_EQ(orders.publish_later("a", "x", {.deadline = sys::now() + 20ms}).error(), Errc::timed_out);
  EXPECT_EQ(link->statistics().in_flight, HubLink::kInFlightMax);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, AtMost8MebibytesAreUnderWayAndOneMessageAlways) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  hub.mute_answers = true;
  const std::string body(1 << 20, 'x');
  std::vector<PendingPublish> pending;
  for (int i = 0; i < 7; ++i) {
    pending.push_back(*orders.publish_later("a", body));
  }
  EXPECT_EQ(orders.publish_later("a", body, {.deadline = sys::now() + 20ms}).error(), Errc::timed_out);
  EXPECT_EQ(orders.publish_later("a", body + "x").error(), Errc::message_too_large);
}

TEST_F(HubLinkTest, APublisherThatWaitsForAPlaceGetsIt) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  std::vector<PendingPublish> pending;
  for (std::size_t i = 0; i < 3 * HubLink::kInFlightMax; ++i) {
    auto later = orders.publish_later("a", "x");
    ASSERT_TRUE(later) << later.error().message();
    pending.push_back(*std::move(later));
  }
  std::set<std::uint64_t> sequences;
  for (PendingPublish& each : pending) {
    sequences.insert(each.wait()->sequence);
  }
  EXPECT_EQ(sequences.size(), pending.size());
}

TEST_F(HubLinkTest, ClosingEndsEveryWait) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  Consumer consumer = *orders.consumer("c", {.filter = "never"});
  Reader reader = *orders.read({.filter = "never"});
  hub.mute_answers = true;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { EXPECT_EQ(consumer.next().error(), Errc::closed); });
  threads.emplace_back([&] { EXPECT_EQ(reader.next().error(), Errc::closed); });
  threads.emplace_back([&] { EXPECT_EQ(orders.info().error(), Errc::closed); });
  threads.emplace_back([&] {
    const Error error = orders.publish("a", "x").error();
    EXPECT_TRUE(error == Errc::outcome_unknown || error == Errc::closed) << error.message();
  });
  link.close();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(orders.publish("a", "x").error(), Errc::closed);
  EXPECT_EQ(orders.consumer("c").error(), Errc::closed);
  expect_books_balance(*link.link());
}

TEST_F(HubLinkTest, AHandleHostsWhenNobodyAnswersAndAnotherOneWhenItGoes) {
  std::atomic<bool> lock_file{false};
  struct Hosted {
    Hosted(Context& context, const std::string& endpoint, FakeStore& store, std::atomic<bool>& lock)
        : file(lock), hub(std::in_place, context, endpoint, store) {}
    Hosted(const Hosted&) = delete;
    Hosted& operator=(const Hosted&) = delete;
    ~Hosted() {
      hub.reset();
      file = false;
    }
    std::atomic<bool>& file;
    std::optional<FakeHub> hub;
  };
  const auto host = [&](const std::string&) -> Result<Hosting> {
    if (lock_file.exchange(true)) {
      return Errc::would_block;
    }
    return Hosting{std::make_shared<Hosted>(context_, endpoint_, store_, lock_file), [] { return Error(); }, {}};
  };
  TestLink one(context_, endpoint_, host);
  TestLink two(context_, endpoint_, host);
  Stream first = one.stream({.name = "orders"});
  Stream second = two.stream({.name = "orders"});
  EXPECT_EQ(first.publish("a", "1")->sequence, 1u);
  EXPECT_EQ(second.publish("a", "2")->sequence, 2u);
  EXPECT_EQ(one->statistics().hosted + two->statistics().hosted, 1u);
  one.close();
  EXPECT_EQ(second.publish("a", "3")->sequence, 3u);
  EXPECT_EQ(two->statistics().hosted, 1u);
}

// A build without SQLite, or a disk that is not ready: the hub's thread finds it out after the handle hosts.
TEST_F(HubLinkTest, AHubThatCannotOpenItsStoreTellsWhyAndIsTriedAnewByTheNextCall) {
  std::atomic<int> hosts{0};
  TestLink link(context_, endpoint_, [&](const std::string&) -> Result<Hosting> {
    if (++hosts == 1) {
      constexpr Error kWhy(Errc::not_supported, "this build has no SQLite: it keeps no topics");
      return Hosting{std::make_shared<int>(), [kWhy] { return kWhy; }, {}};
    }
    return Hosting{std::make_shared<FakeHub>(context_, endpoint_, store_), [] { return Error(); }, {}};
  });
  const auto declared = Stream::declare(link.link(), {.name = "orders"});
  EXPECT_EQ(declared.error(), Errc::not_supported);
  EXPECT_STREQ(declared.error().text(), "this build has no SQLite: it keeps no topics");
  EXPECT_EQ(link.stream({.name = "orders"}).publish("a", "x")->sequence, 1u);
  EXPECT_EQ(hosts.load(), 2);
}

TEST_F(HubLinkTest, AStoreThatCannotBeOpenedIsToldAtOnce) {
  TestLink link(context_, endpoint_, [](const std::string&) -> Result<Hosting> {
    return Error(Errc::not_supported, "this build has no SQLite: it keeps no topics");
  });
  const auto declared = Stream::declare(link.link(), {.name = "orders"});
  EXPECT_EQ(declared.error(), Errc::not_supported);
  EXPECT_STREQ(declared.error().text(), "this build has no SQLite: it keeps no topics");
}

TEST_F(HubLinkTest, StrictOrderHasOneMessageOfATopicUnderWayAndFencesOthers) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  Stream other = link.stream({.name = "orders"});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 25; ++n) {
        const auto published = orders.publish("a", "x", {.order = Order::strict});
        EXPECT_TRUE(published) << published.error().message();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  ASSERT_TRUE(other.publish("a", "intruder"));
  EXPECT_EQ(orders.publish("a", "x", {.order = Order::strict}).error(), Errc::conflict);
  EXPECT_TRUE(orders.publish("a", "x", {.order = Order::strict})) << "after a conflict it asks for the last sequence";
  EXPECT_EQ(orders.publish_later("a", "x", {.order = Order::strict}).error(), Errc::invalid_argument);
}

TEST_F(HubLinkTest, AStreamInMemoryIsDeclaredAgainToTheNextHub) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream ticks = link.stream({.name = "ticks", .survives = Survives::nothing});
  ASSERT_TRUE(ticks.publish("a", "1"));
  hub.reset();
  store_.streams.clear();
  hub.emplace(context_, endpoint_, store_);
  EXPECT_EQ(ticks.publish("a", "2")->sequence, 1u);
}

TEST_F(HubLinkTest, InfoMessagesAndRemoval) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders", .topics = {"o.>"}});
  Headers headers;
  ASSERT_TRUE(headers.add("Content-Type", "text/plain"));
  ASSERT_TRUE(orders.publish("o.1", "one", {.id = "i", .headers = headers.block()}));
  const auto message = orders.message(1);
  ASSERT_TRUE(message) << message.error().message();
  EXPECT_EQ(message->topic(), "o.1");
  EXPECT_EQ(message->text(), "one");
  EXPECT_EQ(message->id(), "i");
  EXPECT_EQ(message->header("Content-Type"), "text/plain");
  EXPECT_EQ(orders.newest("o.1")->sequence(), 1u);
  EXPECT_EQ(orders.newest("o.2").error(), Errc::not_found);
  EXPECT_EQ(orders.message(2).error(), Errc::not_found);
  EXPECT_EQ(orders.message(0).error(), Errc::not_found);
  const auto info = orders.info();
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->first, 1u);
  EXPECT_EQ(info->next, 2u);
  ASSERT_EQ(info->consumers.size(), 1u);
  EXPECT_EQ(info->consumers[0].floor, 3u);
  EXPECT_EQ(info->settings.topics, std::vector<std::string>{"o.>"});
  ASSERT_TRUE(orders.remove());
  EXPECT_EQ(orders.publish("o.1", "x").error(), Errc::not_found);
}

TEST_F(HubLinkTest, WrongArgumentsAreRefusedBeforeAnythingIsSent) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_);
  Stream orders = link.stream({.name = "orders"});
  EXPECT_EQ(orders.publish("a.*", "x").error(), Errc::invalid_argument);
  EXPECT_EQ(orders.publish("", "x").error(), Errc::invalid_argument);
  EXPECT_EQ(orders.publish("a", "x", {.id = std::string(256, 'i')}).error(), Errc::message_too_large);
  EXPECT_EQ(orders.publish("a", "x", {.headers = "no block"}).error(), Errc::invalid_argument);
  EXPECT_EQ(orders.consumer("").error(), Errc::invalid_argument);
  EXPECT_EQ(orders.consumer("c", {.queue_messages_max = 0}).error(), Errc::invalid_argument);
  EXPECT_EQ(orders.consumer("c", {.filter = "a..b"}).error(), Errc::invalid_argument);
  EXPECT_EQ(orders.read({.queue_bytes_max = 0}).error(), Errc::invalid_argument);
  EXPECT_EQ(link->statistics().appended, 0u);
}

}  // namespace
}  // namespace weft::topic
