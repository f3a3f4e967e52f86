// SPDX-License-Identifier: MIT
// Consumers and readers at a hub that ends, comes back, and lies.
#include "weft/topic/kept/channel.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weft/topic/kept/stream_core.h"
#include "weft/topic/kept/test_link.h"
#include "weft/topic/key_value.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class ChannelTest : public KeptTest {
 protected:
  void fill(Stream& stream, int from, int to) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(stream.publish("a." + std::to_string(i % 3), std::to_string(i)));
    }
  }
};

TEST_F(ChannelTest, AReaderReadsWhatIsStoredThenWhatComes) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  fill(stream, 0, 1000);
  Reader reader = *stream.read({.queue_messages_max = 16});
  int count = 0;
  for (;; ++count) {
    auto message = reader.next_stored();
    ASSERT_TRUE(message) << message.error().message();
    if (!*message) {
      break;
    }
    EXPECT_EQ((*message)->text(), std::to_string(count));
    EXPECT_EQ((*message)->sequence(), static_cast<std::uint64_t>(count) + 1);
  }
  EXPECT_EQ(count, 1000);
  EXPECT_TRUE(reader.live());
  EXPECT_EQ(reader.try_next().error(), Errc::would_block);
  fill(stream, 1000, 1001);
  EXPECT_EQ(reader.next_until(soon())->text(), "1000");
}

TEST_F(ChannelTest, AReaderOfAnEmptyStreamIsLive) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Reader reader = *stream.read();
  EXPECT_FALSE(reader.next_stored()->has_value());
  EXPECT_TRUE(reader.live());
}

TEST_F(ChannelTest, AReaderBeginsWhereItIsTold) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  fill(stream, 0, 10);
  EXPECT_EQ(stream.read({.from = From::sequence(7)})->next_until(soon())->text(), "6");
  EXPECT_EQ(stream.read({.from = From::last()})->next_until(soon())->text(), "9");
  EXPECT_EQ(stream.read({.filter = "a.2"})->next_until(soon())->text(), "2");
  Reader newest = *stream.read({.from = From::last_per_topic()});
  for (const char* text : {"7", "8", "9"}) {
    EXPECT_EQ(newest.next_until(soon())->text(), text);
  }
  Reader next = *stream.read({.from = From::next()});
  fill(stream, 10, 11);
  EXPECT_EQ(next.next_until(soon())->text(), "10");
}

TEST_F(ChannelTest, AReaderHasNoGapAndNoDoubleWhenTheHubChanges) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  Reader first = *stream.read({.queue_messages_max = 8});
  Reader next = *stream.read({.from = From::next()});
  std::thread publisher([&] { fill(stream, 0, 400); });
  int count = 0;
  for (int hubs = 0; hubs < 4; ++hubs) {
    for (int i = 0; i < 90; ++i, ++count) {
      const auto message = first.next_until(soon());
      ASSERT_TRUE(message) << message.error().message();
      ASSERT_EQ(message->text(), std::to_string(count));
    }
    hub.reset();
    hub.emplace(context_, endpoint_, store_);
  }
  publisher.join();
  for (; count < 400; ++count) {
    ASSERT_EQ(first.next_until(soon())->text(), std::to_string(count));
  }
  for (int i = 0; i < 400; ++i) {
    ASSERT_EQ(next.next_until(soon())->text(), std::to_string(i)) << "opened at the end of an empty stream";
  }
}

TEST_F(ChannelTest, WhatComesWhileNoHubIsThereIsReadAfterwards) {
  TestLink link(context_, endpoint_);
  TestLink other(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  Reader reader = *stream.read({.from = From::next()});  // nothing was delivered when the hub ends
  hub.reset();
  store_.streams["s"].messages.push_back({"a", "", "", "between", false});
  hub.emplace(context_, endpoint_, store_);
  EXPECT_EQ(reader.next_until(soon())->text(), "between");
}

TEST_F(ChannelTest, MembersShareTheMessagesOfAConsumer) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink one(context_, endpoint_);
  TestLink two(context_, endpoint_);
  Stream stream = one.stream({.name = "s"});
  Stream same = two.stream({.name = "s"});
  Consumer a = *stream.consumer("billing", {.queue_messages_max = 4});
  Consumer b = *same.consumer("billing", {.queue_messages_max = 4});
  EXPECT_EQ(same.consumer("billing", {.tries_max = 3}).error(), Errc::conflict);
  fill(stream, 0, 100);
  std::map<std::string, int> seen;
  while (seen.size() < 100) {
    for (Consumer* each : {&a, &b}) {
      auto delivery = each->try_next();
      if (delivery) {
        EXPECT_EQ(delivery->tries(), 0u);
        ++seen[std::string(delivery->text())];
        delivery->ack();
        delivery->ack();  // nothing
      }
    }
  }
  for (const auto& [text, count] : seen) {
    EXPECT_EQ(count, 1) << text;
  }
}

TEST_F(ChannelTest, WhatIsGivenBackIsDeliveredAgainAndWhatIsRejectedIsNot) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c");
  fill(stream, 0, 2);
  Delivery first = *consumer.next_until(soon());
  first.working();
  first.retry(Duration(0));
  first.ack();  // nothing: it was given back
  Delivery second = *consumer.next_until(soon());
  EXPECT_EQ(second.text(), "1");
  second.reject("broken");
  Delivery again = *consumer.next_until(soon());
  EXPECT_EQ(again.text(), "0");
  EXPECT_EQ(again.tries(), 1u);
  ASSERT_TRUE(again.ack_confirmed());
  EXPECT_EQ(again.ack_confirmed().error(), Errc::invalid_state);
  EXPECT_TRUE(store_.streams["s"].waiting["c"].empty());
}

TEST_F(ChannelTest, AConfirmedAcknowledgementOfAnotherMembersMessageIsNotFound) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c");
  fill(stream, 0, 1);
  Delivery delivery = *consumer.next_until(soon());
  const auto call =
      *HubLink::prepare({.kind = OpKind::ack, .number = 1, .name = "s", .key = "c"}, OnLoss::resend_change, soon());
  ASSERT_TRUE(link->run(call));
  EXPECT_EQ(delivery.ack_confirmed().error(), Errc::not_found);
}

TEST_F(ChannelTest, AfterAChangeOfTheHubWhatWaitsInTheQueueComesOnce) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  // The credit suffices for all that the new hub gives again, so that it comes before the answer to "last".
  Consumer consumer = *stream.consumer("c", {.queue_messages_max = 128});
  fill(stream, 0, 40);
  Delivery held = *consumer.next_until(soon());
  hub.reset();
  hub.emplace(context_, endpoint_, store_);
  ASSERT_TRUE(stream.publish("a", "last"));
  std::map<std::string, int> seen;
  bool last = false;
  while (!last || seen.size() < 41) {
    Delivery delivery = *consumer.next_until(soon());
    ++seen[std::string(delivery.text())];
    last |= delivery.text() == "last";
    delivery.ack();
  }
  EXPECT_EQ(seen["0"], 1) << "it was not acknowledged: the hub gives it again";
  EXPECT_EQ(seen["1"], 1);
  EXPECT_EQ(seen["39"], 1);
  held.ack();
}

TEST_F(ChannelTest, WithABoundOfTriesTheHubHasCountedADeliveryBeforeAProgramGetsIt) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c", {.tries_max = 3});
  fill(stream, 0, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    Delivery delivery = *consumer.next_until(soon());
    ASSERT_EQ(delivery.sequence(), i);
    EXPECT_EQ(hub.tries("s", "c", i), 1u);
    EXPECT_EQ(hub.tries("s", "c", i + 1), 0u) << "in the queue of this member, and nobody has it";
  }
}

TEST_F(ChannelTest, ADeliveryThatBeganIsGivenAtTheDeadlineOfTheCall) {
  std::atomic<bool> blocked{false};
  FakeHub hub(context_, endpoint_, store_,
              [&](FakeHub&, const Op& op) { return !blocked || op.kind != OpKind::begin; });
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c", {.tries_max = 3});
  blocked = true;
  fill(stream, 0, 2);
  Instant wait = sys::now();
  auto delivery = consumer.next_until(wait);
  while (!delivery) {  // the message is under way
    ASSERT_EQ(delivery.error(), Errc::timed_out);
    wait = sys::now() + 1ms;
    delivery = consumer.next_until(wait);
  }
  EXPECT_EQ(delivery->text(), "0");
  auto at_once = consumer.try_next();
  for (const Instant limit = soon(); !at_once && sys::now() < limit; at_once = consumer.try_next()) {
    ASSERT_EQ(at_once.error(), Errc::would_block);  // the message is under way
    std::this_thread::yield();
  }
  ASSERT_TRUE(at_once);
  EXPECT_EQ(at_once->text(), "1") << "a call that does not wait";
}

TEST_F(ChannelTest, AMessageThatAnotherMemberHasIsNotGivenToAProgram) {
  std::atomic<int> begins{0};
  FakeHub hub(context_, endpoint_, store_, [&](FakeHub& self, const Op& op) {
    if (op.kind == OpKind::begin && begins++ == 0) {
      self.send({.kind = OpKind::answer, .id = op.id, .number = 0, .second = op.number});
      return false;
    }
    return true;
  });
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c", {.tries_max = 3});
  fill(stream, 0, 2);
  EXPECT_EQ(consumer.next_until(soon())->text(), "1");
  EXPECT_EQ(link->statistics().dropped_doubles, 1u);
}

TEST_F(ChannelTest, ARecallTakesTheEndOfTheQueueThatNoProgramHasSeen) {
  FakeHub hub(context_, endpoint_, store_, [&](FakeHub& self, const Op& op) {
    if (op.kind == OpKind::append && as_text(op.body) == "4") {
      self.send({.kind = OpKind::recall, .id = 0});  // no channel: nothing
      self.recall(3);
    }
    return true;
  });
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c");
  fill(stream, 0, 4);
  Delivery held = *consumer.next_until(soon());
  EXPECT_EQ(held.text(), "0");
  fill(stream, 4, 5);  // the FakeHub gives them to the only member again
  std::vector<std::string> order;
  while (order.size() < 4) {
    Delivery next = *consumer.next_until(soon());
    EXPECT_EQ(next.tries(), 0u);
    order.emplace_back(next.text());
    next.ack();
  }
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_GE(hub.given_back.load(), 1u);
}

TEST_F(ChannelTest, AMemberThatGaveMessagesBackReportsThatItsProgramWaits) {
  std::atomic<int> reports{0};
  FakeHub hub(context_, endpoint_, store_, [&](FakeHub& self, const Op& op) {
    reports += op.kind == OpKind::credit && op.number == 0 ? 1 : 0;
    if (op.kind == OpKind::append && as_text(op.body) == "2") {
      self.recall(9);
    }
    return true;
  });
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c");
  fill(stream, 0, 3);
  for (const Instant end = soon(); hub.given_back == 0 && sys::now() < end;) {
    fill(stream, 3, 4);
  }
  ASSERT_GE(hub.given_back.load(), 1u);
  EXPECT_EQ(reports.load(), 0);
  while (consumer.try_next()) {
  }
  fill(stream, 4, 5);  // after the report
  EXPECT_EQ(reports.load(), 1);
  while (consumer.try_next()) {
  }
  fill(stream, 5, 6);
  EXPECT_EQ(reports.load(), 1);
}

TEST_F(ChannelTest, AMembersPriorityStandsInTheOpThatOpensItsChannelAfterAChangeOfTheHubToo) {
  std::atomic<int> with{0};
  std::atomic<int> without{0};
  const auto count = [&](FakeHub& /*self*/, const Op& op) {
    if (op.kind == OpKind::consume) {
      (op.has(OpFlags::prioritized) && op.second == 7 ? with : without) += 1;
    }
    return true;
  };
  auto hub = std::make_unique<FakeHub>(context_, endpoint_, store_, count);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  Consumer plain = *stream.consumer("plain");
  EXPECT_EQ(without.load(), 1);
  ConsumerOptions how;
  how.priority = 7;
  Consumer consumer = *stream.consumer("c", how);
  EXPECT_EQ(with.load(), 1);
  hub.reset();
  hub = std::make_unique<FakeHub>(context_, endpoint_, store_, count);
  fill(stream, 0, 1);
  EXPECT_TRUE(consumer.next_until(soon()));
  EXPECT_EQ(with.load(), 2);
}

TEST_F(ChannelTest, AnAcknowledgementHoldsAfterItsConsumerWasClosed) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  fill(stream, 0, 2);
  std::vector<Delivery> held;
  {
    Consumer consumer = *stream.consumer("c");
    held.push_back(*consumer.next_until(soon()));
    held.push_back(*consumer.next_until(soon()));
  }
  held[0].ack();
  ASSERT_TRUE(held[1].ack_confirmed());
  fill(stream, 2, 3);  // answered after the acknowledgements of the loop
  while (hub.waiting("s", "c") != 0) {
    fill(stream, 3, 4);
  }
}

TEST_F(ChannelTest, AStrictOrderHasAnyNumberOfTopicsOneAfterTheOther) {
  TestLink link(context_, endpoint_);
  StreamCore core(link.link(), "s", {});
  for (std::size_t i = 0; i < StreamCore::kStrictTopicsMax + 100; ++i) {
    const std::string topic = "orders." + std::to_string(i);
    ASSERT_TRUE(core.take_turn(topic)) << i;
    EXPECT_EQ(core.take_turn(topic).error(), Errc::would_block);
    core.end_turn(topic, {i + 1, 0, true});
  }
  EXPECT_EQ(core.take_turn("orders." + std::to_string(StreamCore::kStrictTopicsMax + 99))->last,
            StreamCore::kStrictTopicsMax + 100);
}

TEST_F(ChannelTest, AcknowledgementsOutliveAChangeOfTheHub) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  Consumer consumer = *stream.consumer("c");
  fill(stream, 0, 1);
  Delivery delivery = *consumer.next_until(soon());
  hub.reset();
  delivery.ack();  // it goes to no hub
  hub.emplace(context_, endpoint_, store_);
  fill(stream, 1, 2);
  // The new hub delivers the open messages again; then it gets the acknowledgement.
  for (bool done = false; !done;) {
    Delivery next = *consumer.next_until(soon());
    done = next.text() == "1";
    ASSERT_TRUE(next.ack_confirmed() || next.text() == "0");
  }
  EXPECT_TRUE(store_.streams["s"].waiting["c"].empty());
}

TEST_F(ChannelTest, AHubThatSendsWithoutCreditFillsNoQueue) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_, [](FakeHub& self, const Op& op) {
    if (op.kind == OpKind::read) {
      self.send({.kind = OpKind::answer, .id = op.id, .number = 1});
      for (std::uint64_t i = 1; i <= 100; ++i) {
        self.send({.kind = OpKind::delivery, .id = op.id, .number = i, .key = "a"});
      }
      return false;
    }
    return op.kind != OpKind::credit;
  });
  Stream stream = link.stream({.name = "s"});
  Reader reader = *stream.read({.queue_messages_max = 10});
  int count = 0;
  ASSERT_TRUE(stream.publish("a", "behind the flood"));
  while (reader.try_next()) {
    ++count;
  }
  EXPECT_LE(count, 10 + 10);
  EXPECT_GE(link->statistics().dropped_unasked, 80u);
}

// A hub that answers each op with any ops under any ids. No call waits beyond its deadline, and the books balance.
TEST_F(ChannelTest, AHubThatLiesAboutEverythingEndsNothingButItsOwnCalls) {
  std::uint64_t random = 88172645463325252U;
  const auto pick = [&random](std::size_t count) {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    return static_cast<std::size_t>(random % count);
  };
  std::atomic<bool> lies{false};
  FakeHub hub(context_, endpoint_, store_, [&](FakeHub& self, const Op& op) {
    constexpr OpKind kKinds[] = {OpKind::answer, OpKind::delivery, OpKind::caught_up,
                                 OpKind::ended,  OpKind::append,   OpKind::lease_changed,
                                 OpKind::credit, OpKind::delivery, OpKind::delivery};
    const std::string texts[] = {"", "a", "s", std::string(255, 'k'), "kv.b.k", "first=\nconsumer\nfloor=99\n=\n"};
    const std::uint64_t numbers[] = {0, 1, 2, 7, std::uint64_t{1} << 63U, ~std::uint64_t{0}};
    for (int i = 0; lies && i < 8; ++i) {
      const std::string& body = texts[pick(std::size(texts))];
      self.send({.kind = kKinds[pick(std::size(kKinds))],
                 .flags = static_cast<std::uint16_t>(pick(3) == 0 ? OpFlags::erased : 0),
                 .id = pick(3) == 0 ? op.id : static_cast<std::uint32_t>(pick(64)),
                 .number = numbers[pick(std::size(numbers))],
                 .second = numbers[pick(std::size(numbers))],
                 .code = static_cast<std::uint16_t>(pick(80)),
                 .name = texts[pick(4)],
                 .key = texts[pick(5)],
                 .headers = as_bytes(texts[pick(std::size(texts))]),
                 .body = as_bytes(body)});
    }
    return !lies || op.kind != OpKind::append || pick(2) == 0;
  });
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  KeyValue bucket = *KeyValue::declare(link.link(), "b", {});
  lies = true;
  for (int round = 0; round < 300; ++round) {
    (void)stream.publish("a", "x", {.deadline = sys::now() + 20ms});
    auto reader = round % 3 == 0 ? stream.read({.queue_messages_max = 4}) : Result<Reader>(Errc::closed);
    if (reader) {
      (void)reader->next_until(sys::now() + 5ms);
    }
    auto consumer = round % 3 == 1 ? stream.consumer("c", {.queue_messages_max = 4}) : Result<Consumer>(Errc::closed);
    if (consumer) {
      if (auto delivery = consumer->next_until(sys::now() + 5ms)) {
        delivery->ack();
        delivery->retry();
      }
    }
    (void)stream.publish_later("a", "y", {.deadline = sys::now() + 20ms});
  }
  lies = false;
  const auto honest = stream.publish("a", "at last");
  ASSERT_TRUE(honest) << honest.error().text();
  ASSERT_TRUE(bucket.put("k", "v"));
  EXPECT_EQ(bucket.value("k")->text(), "v");
  link.close();
  const KeptStatistics all = link->statistics();
  EXPECT_EQ(all.appended, all.acknowledged + all.refused + all.unknown + all.unsent + all.in_flight);
  EXPECT_EQ(all.in_flight, 0u);
}

TEST_F(ChannelTest, AThreadThatWaitsForADeliveryEndsWithItsConsumerOrHub) {
  TestLink link(context_, endpoint_);
  std::optional<FakeHub> hub(std::in_place, context_, endpoint_, store_);
  Stream stream = link.stream({.name = "s"});
  auto consumer = stream.consumer("c");
  ASSERT_TRUE(consumer);
  std::thread waiting([&] { EXPECT_EQ(consumer->next().error(), Errc::closed); });
  hub.reset();  // a change of the hub ends no wait
  hub.emplace(context_, endpoint_, store_);
  consumer->close();
  waiting.join();
  EXPECT_EQ(consumer->next().error(), Errc::closed);
  EXPECT_EQ(consumer->try_next().error(), Errc::closed);
  consumer->close();
  EXPECT_TRUE(stream.publish("a", "x"));
}

TEST_F(ChannelTest, ADeliveryThatIsNoneAndAnEndAreTaken) {
  TestLink link(context_, endpoint_);
  FakeHub hub(context_, endpoint_, store_, [](FakeHub& self, const Op& op) {
    if (op.kind == OpKind::read) {
      self.send({.kind = OpKind::answer, .id = op.id, .number = 5});
      self.send({.kind = OpKind::delivery, .id = op.id, .number = 4, .key = "a"});  // before the beginning
      self.send({.kind = OpKind::delivery, .id = op.id, .number = 5, .key = "a"});
      self.send({.kind = OpKind::delivery, .id = op.id, .number = 5, .key = "a"});
      self.send({.kind = OpKind::lease_changed, .id = op.id});
      self.send({.kind = OpKind::ended, .id = op.id, .code = static_cast<std::uint16_t>(Errc::not_found)});
      self.send({.kind = OpKind::ended, .id = op.id});
      return false;
    }
    return true;
  });
  Stream stream = link.stream({.name = "s"});
  Reader reader = *stream.read();
  EXPECT_EQ(reader.next_until(soon())->sequence(), 5u);
  EXPECT_EQ(reader.next_until(soon()).error(), Errc::not_found);
  EXPECT_EQ(link->statistics().dropped_doubles, 2u);
}

TEST_F(ChannelTest, LargeMessagesStopTheCredit) {
  FakeHub hub(context_, endpoint_, store_);
  TestLink link(context_, endpoint_);
  Stream stream = link.stream({.name = "s"});
  const std::string body(100'000, 'x');
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stream.publish("a", body));
  }
  ASSERT_TRUE(stream.read({.queue_bytes_max = 1'000'000}));
  Reader reader = *stream.read({.queue_messages_max = 1000, .queue_bytes_max = 400'000});
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(reader.next_until(soon())->body().size(), body.size());
  }
}

TEST(ChannelCredit, IsGivenByHalvesAndStopsAtTheBytes) {
  const auto channel = make_intrusive<KeptChannel>("s", "", ConsumerSettings{}, 16U, std::size_t{64 * 1024});
  EXPECT_EQ(channel->credit_due(), 16u) << "16 messages of the size that is guessed at first";
  channel->credit = 16;
  EXPECT_EQ(channel->credit_due(), 0u);
  channel->credit = 9;
  EXPECT_EQ(channel->credit_due(), 0u);
  channel->credit = 8;
  EXPECT_EQ(channel->credit_due(), 8u);
  channel->credit = 0;
  channel->size_hint = 32 * 1024;
  EXPECT_EQ(channel->credit_due(), 2u);
  channel->size_hint = 1024 * 1024;
  EXPECT_EQ(channel->credit_due(), 1u) << "one message is always permitted";
  const auto names = Names{};
  auto bytes = *Message::with_size(encoded_size({.kind = OpKind::delivery, .number = 1}));
  encode_op({.kind = OpKind::delivery, .number = 1}, bytes.mutable_bytes());
  channel->credit = 1;
  ASSERT_TRUE(channel->take(*KeptMessage::of(std::move(bytes), names)));
  channel->queue_bytes = 64 * 1024;
  EXPECT_EQ(channel->credit_due(), 0u);
}

}  // namespace
}  // namespace weft::topic
