// SPDX-License-Identifier: MIT
// Ops that take more than one turn.
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/topic/hub/session.h"
#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

// A hub's state without a socket: each turn is a call.
class TurnsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto store = store::Store::open({}, now_);
    if (!store && store.error() == Errc::not_supported) {
      GTEST_SKIP() << "this build has no SQLite";
    }
    ASSERT_TRUE(store) << store.error().message();
    session_ = std::make_unique<HubSession>(
        *std::move(store), HubOptions(), now_,
        [this](const std::string& client, Message& message) {
          const OwnedOp op(std::move(message));
          deliveries_[client] += op.op.kind == OpKind::delivery ? 1 : 0;
          return HubSession::Sent::yes;
        },
        counters_);
  }
  void handle(const std::string& client, Op op) {
    op.id = op.id == 0 ? ++last_id_ : op.id;
    std::vector<std::uint8_t> bytes(encoded_size(op));
    encode_op(op, bytes);
    session_->handle(client, bytes, now_);
  }
  void declare(std::string_view name) {
    StreamSettings settings;
    settings.survives = Survives::nothing;
    const std::string text = write_settings(settings);
    Op op;
    op.kind = OpKind::declare;
    op.name = name;
    op.body = as_bytes(text);
    handle("writer", op);
    (void)session_->finish_turn(now_);
  }
  void append(std::string_view stream, std::string_view topic) {
    handle("writer", TestMember::append_op(stream, topic, ""));
  }
  void read(const std::string& client, std::string_view stream, std::string_view settings) {
    Op op;
    op.kind = OpKind::read;
    op.name = stream;
    op.body = as_bytes(settings);
    op.number = 1'000'000;  // credit
    handle(client, op);
  }

  store::Now now_{WallTime(std::chrono::hours(24)), Instant(std::chrono::hours(1))};
  HubCounters counters_;
  std::unique_ptr<HubSession> session_;
  std::map<std::string, int> deliveries_;  // by client
  std::uint32_t last_id_ = 0;
};

constexpr std::size_t kTurnScan = HubSession::kScansMax * HubSession::kScanMax;

TEST_F(TurnsTest, AReaderThatPassesManyMessagesKeepsNoOtherReaderWaiting) {
  declare("large");
  for (std::size_t i = 0; i < 10 * kTurnScan; ++i) {
    append("large", "topic." + std::to_string(i % 1000));  // more than a row of messages lists
  }
  declare("small");
  read("1", "small", "");
  read("2", "large", "filter=none\n");
  read("2", "small", "");
  read("3", "small", "");
  (void)session_->finish_turn(now_);
  append("small", "a");
  EXPECT_TRUE(session_->finish_turn(now_)) << "the scan goes on";
  EXPECT_TRUE(session_->finish_turn(now_));
  for (const char* client : {"1", "2", "3"}) {
    EXPECT_EQ(deliveries_[client], 1) << client;
  }
}

TEST_F(TurnsTest, AReaderThatFindsFewMessagesAmongManyPassesABoundedNumberOfThemInATurn) {
  declare("s");
  for (std::size_t i = 0; i < 10 * kTurnScan; ++i) {
    append("s", i % 64 == 0 ? "wanted" : "other");
  }
  (void)session_->finish_turn(now_);
  read("1", "s", "filter=wanted\n");
  EXPECT_TRUE(session_->finish_turn(now_));
  EXPECT_GE(deliveries_["1"], static_cast<int>(kTurnScan / 2 / 64));
  EXPECT_LE(deliveries_["1"], static_cast<int>((kTurnScan + HubSession::kScanMax) / 64 + 1));
}

TEST_F(TurnsTest, AnOpWithATransactionOfItsOwnIsTheLastOneOfItsTurn) {
  declare("s");
  Op op;
  op.name = "s";
  for (const OpKind kind : {OpKind::declare, OpKind::purge, OpKind::remove}) {
    append("s", "a");
    EXPECT_FALSE(session_->turn_full());
    op.kind = kind;
    op.number = 1;
    handle("writer", op);
    EXPECT_TRUE(session_->turn_full());
    (void)session_->finish_turn(now_);
    EXPECT_FALSE(session_->turn_full());
  }
}

TEST_F(HubTest, AFilterThatMatchesTheLastOfManyMessagesFindsItInSeveralTurns) {
  TestMember m = member();
  StreamSettings in_memory;
  in_memory.survives = Survives::nothing;
  ASSERT_EQ(m.declare("s", in_memory), Errc::ok);
  constexpr std::uint64_t kCount = 6 * HubSession::kScansMax * HubSession::kScanMax;
  Op unwanted = TestMember::append_op("s", "a", "");
  unwanted.flags = OpFlags::quiet;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    (void)m.send(unwanted);
  }
  ASSERT_EQ(m.request(TestMember::append_op("s", "b", "")).op.number, kCount + 1);
  Op read = op_of(OpKind::read, "s", "", "filter=b\n");
  read.number = 10;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  const std::string settings = write_settings(ConsumerSettings{.filter = "b"});
  Op consume = op_of(OpKind::consume, "s", "c", settings);
  consume.number = 10;
  ASSERT_EQ(m.request(consume).op.error(), Errc::ok);
  int found = 0;
  int caught_up = 0;
  while (found < 2 || caught_up < 1) {
    const OwnedOp op = m.next();
    ASSERT_NE(op.op.error(), Errc::timed_out);
    found += op.op.kind == OpKind::delivery && op.op.number == kCount + 1 ? 1 : 0;
    caught_up += op.op.kind == OpKind::caught_up ? 1 : 0;
  }
}

TEST_F(HubTest, AMemberThatBeginsWithTheNewestOfAFilterIsAnsweredBehindTheSearch) {
  TestMember m = member();
  StreamSettings in_memory;
  in_memory.survives = Survives::nothing;
  ASSERT_EQ(m.declare("s", in_memory), Errc::ok);
  constexpr int kTopics = 5 * static_cast<int>(HubSession::kScanMax);
  for (int i = 0; i < kTopics; ++i) {
    const std::string topic = (i % 2 == 0 ? "a." : "b.") + std::to_string(i);
    Op append = TestMember::append_op("s", topic, "");
    append.flags = OpFlags::quiet;
    (void)m.send(append);
  }
  Op probe = op_of(OpKind::probe);
  ASSERT_EQ(m.request(probe).op.error(), Errc::ok);
  Op read = op_of(OpKind::read, "s", "", "filter=a.*\nfrom=last\n");
  read.number = 10;
  const std::uint32_t reading = m.send(read);
  const std::string settings = write_settings(ConsumerSettings{.filter = "a.*", .from = From::last()});
  Op consume = op_of(OpKind::consume, "s", "c", settings);
  consume.number = 10;
  const std::uint32_t consuming = m.send(consume);
  const std::uint32_t closed = m.send(read);
  Op end = op_of(OpKind::end);
  end.id = closed;
  (void)m.send(end);
  probe.id = 0;
  const std::uint32_t probing = m.send(probe);
  std::map<std::uint32_t, std::vector<Errc>> answers;
  std::map<std::uint32_t, std::vector<std::uint64_t>> delivered;
  // The answer to the probe is after the one to the end of a channel.
  while (!answers.contains(probing) || !delivered.contains(reading) || !delivered.contains(consuming)) {
    const OwnedOp op = m.next();
    ASSERT_NE(op.op.error(), Errc::timed_out);
    if (op.op.kind == OpKind::answer) {
      answers[op.op.id].push_back(op.op.error());
    } else if (op.op.kind == OpKind::delivery) {
      delivered[op.op.id].push_back(op.op.number);
    }
  }
  for (const std::uint32_t id : {reading, consuming}) {
    EXPECT_EQ(delivered[id], std::vector<std::uint64_t>{kTopics - 1}) << id;
    EXPECT_EQ(answers[id], std::vector<Errc>{Errc::ok}) << id;
  }
  EXPECT_EQ(answers[probing], std::vector<Errc>{Errc::ok});
  ASSERT_TRUE(answers.contains(closed));
  const bool was_open = answers[closed].front() == Errc::ok;  // the end was sent late: the search was over
  EXPECT_TRUE(was_open || !delivered.contains(closed));
}

TEST_F(HubTest, APurgeIsAnsweredWhenItsRoomIsFree) {
  TestMember m = member();
  StreamSettings settings;
  settings.survives = Survives::process;
  settings.when_full = Discard::refuse;
  settings.bytes_max = 4 * 1024 * 1024;
  ASSERT_EQ(m.declare("s", settings), Errc::ok);
  const std::string body(10'000, 'x');
  std::uint64_t count = 0;
  while (m.request(TestMember::append_op("s", "a", body)).op.error() == Errc::ok) {
    ++count;
  }
  ASSERT_GT(count, 300U);
  Op purge = op_of(OpKind::purge, "s");
  purge.number = count + 1;
  const OwnedOp purged = m.request(purge);
  EXPECT_EQ(purged.op.error(), Errc::ok);
  EXPECT_EQ(purged.op.number, count + 1);
  const std::string large(1'000'000, 'y');
  EXPECT_EQ(m.request(TestMember::append_op("s", "a", large)).op.number, count + 1);
}

TEST_F(HubTest, AppendsThatWaitForTheHubShareItsCommits) {
  hub_.reset();
  std::promise<void> stored;
  std::promise<void> release;
  options_.on_stored = [&stored, released = release.get_future().share(),
                        told = false](std::vector<store::ReadMessage>&& messages) mutable {
    if (!std::exchange(told, true)) {
      stored.set_value();
      released.wait();
    }
    return messages.size();
  };
  hub_ = host();
  ASSERT_NE(hub_, nullptr);
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  (void)m.send(TestMember::append_op("s", "a", "stop"));
  stored.get_future().wait();
  const std::uint64_t turns = hub_->counters().turns.load();
  constexpr std::uint64_t kMessages = 1000;
  std::uint32_t last = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    last = m.send(TestMember::append_op("s", "a", "x"));
  }
  release.set_value();
  ASSERT_EQ(m.answer_to(last).op.number, kMessages + 1);
  EXPECT_LT(hub_->counters().turns.load() - turns, kMessages / 2);
}

TEST_F(HubTest, LargeOpsThatTheHubHasNotTakenAreBounded) {
  hub_.reset();
  std::promise<void> stored;
  std::promise<void> release;
  options_.on_stored = [&stored, released = release.get_future().share(),
                        told = false](std::vector<store::ReadMessage>&& messages) mutable {
    if (as_text(messages.front().message.body).starts_with("stop") && !std::exchange(told, true)) {
      stored.set_value();
      released.wait();
    }
    return messages.size();
  };
  hub_ = host();
  ASSERT_NE(hub_, nullptr);
  TestMember m = member();
  StreamSettings in_memory;
  in_memory.survives = Survives::nothing;
  ASSERT_EQ(m.declare("s", in_memory), Errc::ok);
  Socket flood = *context_.socket(SocketType::dealer);
  ASSERT_TRUE(flood.set(option::send_high_water_mark, 1));
  ASSERT_TRUE(flood.set(option::linger, Duration::zero()));
  ASSERT_TRUE(flood.set(option::send_timeout, Duration(std::chrono::milliseconds(500))));
  ASSERT_TRUE(flood.connect(Hub::endpoint(directory_)));
  const auto send = [&flood](const Op& op) {
    auto message = Message::with_size(encoded_size(op));
    encode_op(op, message->mutable_bytes());
    return flood.send(*std::move(message));
  };
  ASSERT_TRUE(send(op_of(OpKind::probe)));
  ASSERT_TRUE(flood.recv());
  const std::string body(1'000'000, 'x');
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", body)).op.error(), Errc::ok);
  // Itself a large one: else the hub may take many again, if it comes a second after the one before.
  (void)m.send(TestMember::append_op("s", "a", "stop" + std::string(HubOptions::kLargeOp, 'x')));
  stored.get_future().wait();
  const Op op = TestMember::append_op("s", "a", body);
  int sent = 0;
  constexpr int kMost = HubOptions::kLargeOpsWaitingMax + 64;  // including those in the kernel and in the sender
  for (; sent < kMost; ++sent) {
    if (!send(op)) {
      break;
    }
  }
  EXPECT_LT(sent, kMost);
  release.set_value();
}

}  // namespace
}  // namespace weft::topic
