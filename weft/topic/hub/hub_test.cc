// SPDX-License-Identifier: MIT
#include "weft/topic/hub/hub.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "weft/sys/path.h"
#include "weft/topic/hub/test_hub.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

using namespace std::chrono_literals;

StreamSettings process_log() {
  StreamSettings settings;
  settings.survives = Survives::process;
  return settings;
}

TEST_F(HubTest, AnAppendIsAnsweredWithItsSequenceAndADuplicateWithTheFirstOne) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  const OwnedOp first = m.request(TestMember::append_op("s", "a.b", "body", "id-1"));
  EXPECT_EQ(first.op.error(), Errc::ok);
  EXPECT_EQ(first.op.number, 1U);
  EXPECT_FALSE(first.op.has(OpFlags::duplicate));
  const OwnedOp again = m.request(TestMember::append_op("s", "a.b", "body", "id-1"));
  EXPECT_EQ(again.op.number, 1U);
  EXPECT_TRUE(again.op.has(OpFlags::duplicate));
  EXPECT_EQ(m.request(TestMember::append_op("none", "a", "")).op.error(), Errc::not_found);
  EXPECT_EQ(m.request(TestMember::append_op("s", "a..b", "")).op.error(), Errc::invalid_argument);
  Op expects = TestMember::append_op("s", "a.b", "");
  expects.flags = OpFlags::expect_last;
  expects.number = 7;
  EXPECT_EQ(m.request(expects).op.error(), Errc::conflict);
  Op get = op_of(OpKind::get, "s", "a.b");
  const OwnedOp found = m.request(get);
  EXPECT_EQ(as_text(found.op.body), "body");
  EXPECT_EQ(found.op.message_id, "id-1");
  get.flags = OpFlags::by_sequence;
  get.number = 9;
  EXPECT_EQ(m.request(get).op.error(), Errc::not_found);
}

TEST_F(HubTest, AReaderGetsWhatIsStoredThenThatItCaughtUpThenWhatComes) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  for (const char* body : {"1", "2", "3"}) {
    ASSERT_EQ(m.request(TestMember::append_op("s", "a", body)).op.error(), Errc::ok);
  }
  Op read = op_of(OpKind::read, "s", "", "filter=a\nfrom=sequence\nfrom_value=2\n");
  read.number = 3;
  const std::uint32_t channel = m.send(read);
  EXPECT_EQ(m.answer_to(channel).op.number, 2U);
  EXPECT_EQ(as_text(m.next().op.body), "2");
  EXPECT_EQ(as_text(m.next().op.body), "3");
  EXPECT_EQ(m.next().op.kind, OpKind::caught_up);
  ASSERT_EQ(m.request(TestMember::append_op("s", "b", "other")).op.error(), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "4")).op.error(), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "5")).op.error(), Errc::ok);
  const OwnedOp live = m.next();
  EXPECT_EQ(live.op.kind, OpKind::delivery);
  EXPECT_EQ(live.op.id, channel);
  EXPECT_EQ(live.op.number, 5U);
  EXPECT_TRUE(m.all_until_probe().empty());  // the credit is spent
  Op credit = op_of(OpKind::credit);
  credit.id = channel;
  credit.number = 1;
  (void)m.send(credit);
  EXPECT_EQ(m.answer_to(channel).op.error(), Errc::ok);
  EXPECT_EQ(as_text(m.next().op.body), "5");
  Op end = op_of(OpKind::end);
  end.id = channel;
  (void)m.send(end);
  EXPECT_EQ(m.answer_to(channel).op.error(), Errc::ok);
}

TEST_F(HubTest, MembersOfAConsumerShareItsMessagesAndAnAckEndsEachOne) {
  TestMember a = member();
  TestMember b = member();
  ASSERT_EQ(a.declare("s", process_log()), Errc::ok);
  const std::string settings = write_settings(ConsumerSettings{});
  Op consume = op_of(OpKind::consume, "s", "c", settings);
  consume.number = 1;
  const std::uint32_t of_a = a.send(consume);
  ASSERT_EQ(a.answer_to(of_a).op.error(), Errc::ok);
  const std::uint32_t of_b = b.send(consume);
  ASSERT_EQ(b.answer_to(of_b).op.error(), Errc::ok);
  for (const char* body : {"1", "2", "3"}) {
    ASSERT_EQ(a.request(TestMember::append_op("s", "a", body)).op.error(), Errc::ok);
  }
  const std::uint64_t from_a = a.next().op.number;
  const std::uint64_t from_b = b.next().op.number;
  EXPECT_EQ(from_a + from_b, 3U);
  Op ack = op_of(OpKind::ack, "s", "c");
  ack.number = from_a;
  EXPECT_EQ(a.request(ack).op.number, 1U);
  EXPECT_EQ(a.request(ack).op.number, 0U);  // it waited no more
  Op nak = op_of(OpKind::nak, "s", "c");
  nak.number = from_b;
  EXPECT_EQ(b.request(nak).op.number, 1U);
  Op credit = op_of(OpKind::credit);
  credit.id = of_a;
  credit.number = 2;
  (void)a.send(credit);
  ASSERT_EQ(a.answer_to(of_a).op.error(), Errc::ok);
  const OwnedOp again = a.next();
  EXPECT_EQ(again.op.number, from_b);
  EXPECT_EQ(again.op.code, 1);
  EXPECT_EQ(a.next().op.number, 3U);
  EXPECT_EQ(a.request(op_of(OpKind::ack, "s", "nobody")).op.error(), Errc::not_found);
}

TEST_F(HubTest, AnAckWaitEndsWithoutAnyOpOfAMember) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  ConsumerSettings settings;
  settings.ack_wait = 20ms;
  settings.tries_max = 3;
  const std::string text = write_settings(settings);
  Op consume = op_of(OpKind::consume, "s", "c", text);
  consume.number = 100;
  ASSERT_EQ(m.request(consume).op.error(), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "x")).op.error(), Errc::ok);
  EXPECT_EQ(m.next().op.code, 0);
  EXPECT_EQ(m.next().op.code, 1);
  EXPECT_EQ(m.next().op.code, 2);
}

TEST_F(HubTest, KeyValuesAreAStreamOfTheLatest) {
  TestMember m = member();
  StreamSettings settings;
  settings.keep = Keep::latest;
  settings.history = 3;
  ASSERT_EQ(m.declare("kv", settings), Errc::ok);
  const auto with = [](Op op, std::uint16_t flags, std::uint64_t number = 0) {
    op.flags = flags;
    op.number = number;
    return op;
  };
  const Op put = TestMember::append_op("kv", "k", "v");
  EXPECT_EQ(m.request(with(put, OpFlags::expect_absent)).op.number, 1U);
  EXPECT_EQ(m.request(with(put, OpFlags::expect_absent)).op.error(), Errc::conflict);
  EXPECT_EQ(m.request(with(put, OpFlags::expect_last, 1)).op.number, 2U);
  EXPECT_EQ(m.request(TestMember::append_op("kv", "other", "w")).op.number, 3U);
  const OwnedOp keys = m.request(op_of(OpKind::list, "kv"));
  EXPECT_EQ(as_text(keys.op.body), "k\nother\n");
  EXPECT_EQ(as_text(m.request(op_of(OpKind::list, "kv", "k")).op.body), "other\n");
  EXPECT_EQ(as_text(m.request(op_of(OpKind::list, "kv", "", "k")).op.body), "k\n");
  EXPECT_EQ(m.request(with(put, OpFlags::erased)).op.number, 4U);
  EXPECT_TRUE(m.request(op_of(OpKind::get, "kv", "k")).op.has(OpFlags::erased));
  EXPECT_EQ(as_text(m.request(op_of(OpKind::list, "kv")).op.body), "other\n");
  // A watch: the newest of each key, then the changes.
  Op watch = op_of(OpKind::read, "kv", "", "from=last_per_topic\n");
  watch.number = 100;
  ASSERT_EQ(m.request(watch).op.error(), Errc::ok);
  EXPECT_EQ(m.next().op.number, 3U);
  EXPECT_TRUE(m.next().op.has(OpFlags::erased));
  EXPECT_EQ(m.next().op.kind, OpKind::caught_up);
  EXPECT_EQ(m.request(with(put, OpFlags::expect_absent)).op.number, 5U);
  EXPECT_EQ(m.next().op.number, 5U);
  EXPECT_EQ(m.request(op_of(OpKind::purge, "kv", "k")).op.error(), Errc::ok);
  EXPECT_EQ(m.request(op_of(OpKind::get, "kv", "k")).op.error(), Errc::not_found);
}

TEST_F(HubTest, InfoNamesTheStreamsAndTellsWhatEachHas) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  ASSERT_EQ(m.declare("t", process_log()), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "x")).op.error(), Errc::ok);
  EXPECT_EQ(as_text(m.request(op_of(OpKind::info)).op.body), "s\nt\n");
  const OwnedOp info = m.request(op_of(OpKind::info, "s"));
  EXPECT_NE(as_text(info.op.body).find("survives=process\n"), std::string_view::npos);
  EXPECT_NE(as_text(info.op.body).find("next=2\n"), std::string_view::npos);
  EXPECT_EQ(m.request(op_of(OpKind::info, "none")).op.error(), Errc::not_found);
  Op read = op_of(OpKind::read, "s");
  read.number = 10;
  const std::uint32_t channel = m.send(read);
  EXPECT_EQ(m.answer_to(channel).op.error(), Errc::ok);
  EXPECT_EQ(m.next().op.number, 1U);
  EXPECT_EQ(m.next().op.kind, OpKind::caught_up);
  EXPECT_EQ(m.request(op_of(OpKind::remove, "s")).op.error(), Errc::ok);
  const OwnedOp ended = m.next();
  EXPECT_EQ(ended.op.kind, OpKind::ended);
  EXPECT_EQ(ended.op.error(), Errc::not_found);
  EXPECT_EQ(m.request(op_of(OpKind::remove, "s")).op.error(), Errc::not_found);
}

TEST_F(HubTest, AChannelOfARemovedStreamIsNotOneOfTheNextStreamOfThatName) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "old")).op.error(), Errc::ok);
  Op read = op_of(OpKind::read, "s");
  read.number = 10;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  EXPECT_EQ(as_text(m.next().op.body), "old");
  EXPECT_EQ(m.next().op.kind, OpKind::caught_up);
  // All in one turn, as far as the hub is concerned.
  (void)m.send(op_of(OpKind::remove, "s"));
  const std::string settings = write_settings(process_log());
  (void)m.send(op_of(OpKind::declare, "s", "", settings));
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "new")).op.number, 1U);
  for (OwnedOp op = m.next(); op.op.kind != OpKind::ended; op = m.next()) {
    ASSERT_EQ(op.op.kind, OpKind::answer);
  }
}

TEST_F(HubTest, ALeaseOfAConnectionEndsWithItAndFollowersAreTold) {
  TestMember follower = member();
  Op follow = op_of(OpKind::leases, "node.");
  follow.flags = OpFlags::follow;
  follow.number = 100;
  ASSERT_EQ(follower.request(follow).op.error(), Errc::ok);
  EXPECT_EQ(follower.next().op.kind, OpKind::caught_up);
  auto owner = std::make_unique<TestMember>(context_, Hub::endpoint(directory_));
  const OwnedOp taken = owner->request(op_of(OpKind::lease, "node.a", "", "data"));
  ASSERT_EQ(taken.op.error(), Errc::ok);
  const OwnedOp told = follower.next();
  EXPECT_EQ(told.op.kind, OpKind::lease_changed);
  EXPECT_EQ(told.op.name, "node.a");
  EXPECT_EQ(as_text(told.op.body), "data");
  EXPECT_EQ(told.op.number, taken.op.number);
  const OwnedOp refused = follower.request(op_of(OpKind::lease, "node.a"));
  EXPECT_EQ(refused.op.error(), Errc::conflict);
  EXPECT_EQ(as_text(refused.op.body), "data");
  owner->close();
  const OwnedOp gone = follower.next();
  EXPECT_TRUE(gone.op.has(OpFlags::gone));
  const OwnedOp next = follower.request(op_of(OpKind::lease, "node.a"));
  EXPECT_EQ(next.op.error(), Errc::ok);
  EXPECT_GT(next.op.number, taken.op.number);
  EXPECT_EQ(follower.request(op_of(OpKind::release, "node.a")).op.error(), Errc::ok);
  EXPECT_EQ(follower.request(op_of(OpKind::release, "node.a")).op.error(), Errc::not_found);
}

TEST_F(HubTest, ALeaseWithATimeEndsAfterIt) {
  TestMember m = member();
  Op follow = op_of(OpKind::leases);
  follow.flags = OpFlags::follow;
  follow.number = 100;
  ASSERT_EQ(m.request(follow).op.error(), Errc::ok);
  EXPECT_EQ(m.next().op.kind, OpKind::caught_up);
  Op lease = op_of(OpKind::lease, "x");
  lease.number = 20'000'000;  // ns
  ASSERT_EQ(m.request(lease).op.error(), Errc::ok);
  EXPECT_EQ(m.next().op.number != 0, true);
  EXPECT_TRUE(m.next().op.has(OpFlags::gone));
}

TEST_F(HubTest, OnlyOneProcessHostsAndTheNextOneFindsEverything) {
  EXPECT_EQ(host(), nullptr);
  EXPECT_EQ(error_, Errc::would_block);
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "kept", "id")).op.error(), Errc::ok);
  hub_->stop();
  auto next = host();
  ASSERT_NE(next, nullptr) << error_.message();
  OwnedOp again;
  const Instant end = sys::now() + TestMember::kPatience;
  do {  // a message that the first hub's connection took while it ended is lost: the same message again
    again = m.request(TestMember::append_op("s", "a", "kept", "id"), 200ms);
  } while (again.op.error() == Errc::timed_out && sys::now() < end);
  EXPECT_TRUE(again.op.has(OpFlags::duplicate));
  EXPECT_EQ(again.op.number, 1U);
}

TEST_F(HubTest, ItsCountersAreReadByNameAndGoneWithIt) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "x")).op.error(), Errc::ok);
  const CounterSource source = hub_->counter_source();
  CounterReadings readings;
  source("h", readings);
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].table, &kHubTable);
  ASSERT_EQ(readings[0].values.size(), kHubTable.rows.size());
  EXPECT_EQ(readings[0].values[0], 2U);  // ops
  EXPECT_EQ(readings[0].values[2], 1U);  // appended
  hub_.reset();
  source("h", readings);
  EXPECT_EQ(readings.size(), 1U);
}

TEST_F(HubTest, ADirectoryThatOthersMayEnterIsRefused) {
  hub_.reset();
  std::filesystem::permissions(directory_, std::filesystem::perms::all);
  EXPECT_EQ(host(), nullptr);
  EXPECT_EQ(error_, Errc::invalid_state);
}

TEST_F(HubTest, BytesThatAreNoOpAreDroppedAndCountedAndUnknownKindsAreAnswered) {
  auto raw = context_.socket(SocketType::dealer);
  ASSERT_TRUE(raw && raw->connect(Hub::endpoint(directory_)));
  ASSERT_TRUE(raw->send("garbage"));
  ASSERT_TRUE(raw->send(""));
  ASSERT_TRUE(raw->send("two", More::yes));
  ASSERT_TRUE(raw->send("parts"));
  std::vector<std::uint8_t> unknown(kOpHeaderSize);
  unknown[0] = kOpVersion;
  unknown[1] = 200;
  unknown[7] = 42;
  ASSERT_TRUE(raw->send(Bytes(unknown)));
  // The member has not registered yet, so the hub cannot answer: a good op follows.
  Op probe = op_of(OpKind::probe);
  std::vector<std::uint8_t> good(encoded_size(probe));
  encode_op(probe, good);
  ASSERT_TRUE(raw->send(Bytes(good)));
  ASSERT_TRUE(raw->send(Bytes(unknown)));
  ASSERT_TRUE(raw->set(option::receive_timeout, 20s));
  bool told = false;
  while (!told) {
    const auto answer = raw->recv();
    ASSERT_TRUE(answer);
    const auto op = parse_op(answer->bytes());
    ASSERT_TRUE(op);
    told = op->id == 42 && op->error() == Errc::not_supported;
  }
  EXPECT_EQ(hub_->counters().malformed.load(), 2U);
}

// A member that sends any op with any fields, and has all names. The others' messages are untouched.
TEST_F(HubTest, AMemberThatLiesAboutEverythingHarmsNoOther) {
  TestMember honest = member();
  ASSERT_EQ(honest.declare("mine", process_log()), Errc::ok);
  const std::string settings = write_settings(ConsumerSettings{});
  Op consume = op_of(OpKind::consume, "mine", "c", settings);
  consume.number = 100;
  ASSERT_EQ(honest.request(consume).op.error(), Errc::ok);
  Op lease = op_of(OpKind::lease, "held");
  lease.second = honest.request(lease).op.number;
  ASSERT_NE(lease.second, 0U);

  constexpr OpKind kKinds[] = {OpKind::declare, OpKind::info,          OpKind::append,  OpKind::get,    OpKind::list,
                               OpKind::consume, OpKind::read,          OpKind::credit,  OpKind::end,    OpKind::nak,
                               OpKind::work,    OpKind::lease,         OpKind::release, OpKind::leases, OpKind::probe,
                               OpKind::answer,  OpKind::lease_changed, OpKind::ended,   OpKind::ack};
  const std::string names[] = {"", "mine", "theirs", std::string(255, 'n'), "held", "a..b", std::string("\0x", 2)};
  const std::string bodies[] = {"",
                                write_settings(process_log()),
                                write_settings(ConsumerSettings{}),
                                "keep=latest\nhistory=64\nsurvives=nothing\n",
                                "filter=>\nfrom=sequence\nfrom_value=18446744073709551615\n",
                                std::string(4097, '\xff'),
                                "=\n=\n"};
  const std::uint64_t numbers[] = {0, 1, 2, 100, 1U << 20U, std::uint64_t{1} << 63U, ~std::uint64_t{0}};
  std::uint64_t random = 88172645463325252U;
  const auto pick = [&random](std::size_t count) {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    return static_cast<std::size_t>(random % count);
  };
  TestMember hostile = member();
  for (int i = 0; i < 20'000; ++i) {
    Op op = op_of(kKinds[pick(std::size(kKinds))], names[pick(std::size(names))], names[pick(std::size(names))],
                  bodies[pick(std::size(bodies))]);
    if (op.name == "mine" && (op.kind == OpKind::append || op.kind == OpKind::consume || op.kind == OpKind::ack)) {
      op.name = "theirs";  // ops that any member may send about another one's stream
    }
    op.id = static_cast<std::uint32_t>(1 + pick(40));
    op.number = numbers[pick(std::size(numbers))];
    op.second = numbers[pick(std::size(numbers))];
    op.flags = static_cast<std::uint16_t>(pick(16) == 0 ? OpFlags::redeclare : pick(2) == 0 ? OpFlags::quiet : 0);
    op.message_id = pick(4) == 0 ? std::string_view(names[3]) : std::string_view();
    if (op.kind == OpKind::declare && op.name == "mine") {
      op.flags = 0;  // redeclaring is a member's right
    }
    (void)hostile.send(op);
    if (i % 64 == 0) {
      OwnedOp answer;
      while (hostile.receive(answer, sys::now())) {
      }
    }
  }
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(honest.request(TestMember::append_op("mine", "a", std::to_string(i))).op.error(), Errc::ok);
    const OwnedOp delivery = honest.next();
    ASSERT_EQ(delivery.op.kind, OpKind::delivery);
    EXPECT_EQ(as_text(delivery.op.body), std::to_string(i));
  }
  EXPECT_EQ(honest.request(lease).op.error(), Errc::ok) << "the lease is still the honest member's";
  EXPECT_EQ(hub_->ended(), Errc::ok);
}

TEST_F(HubTest, AMemberThatReceivesNothingHoldsUpNobodyAndTakesBoundedMemory) {
  auto blocked = context_.socket(SocketType::dealer);
  ASSERT_TRUE(blocked && blocked->set(option::receive_high_water_mark, 1) &&
              blocked->connect(Hub::endpoint(directory_)));
  TestMember m = member();
  StreamSettings settings = process_log();
  settings.survives = Survives::nothing;
  ASSERT_EQ(m.declare("s", settings), Errc::ok);
  Op read = op_of(OpKind::read, "s");
  read.number = 1'000'000;
  read.id = 1;
  std::vector<std::uint8_t> bytes(encoded_size(read));
  encode_op(read, bytes);
  ASSERT_TRUE(blocked->send(Bytes(bytes)));
  const std::string body(4000, 'x');
  constexpr int kMessages = 20'000;  // 80 MB
  int answered = 0;
  std::uint32_t last = 0;
  for (int i = 0; i < kMessages; ++i) {
    last = m.send(TestMember::append_op("s", "a", body));
    if (i - answered >= 1000) {
      OwnedOp op;
      ASSERT_TRUE(m.receive(op, sys::now() + 20s));
      ASSERT_EQ(op.op.error(), Errc::ok);
      ++answered;
    }
  }
  EXPECT_EQ(m.answer_to(last).op.error(), Errc::ok);
  EXPECT_EQ(hub_->counters().appended.load(), std::uint64_t{kMessages});
  // Far from all were encoded for the blocked one: its channel stopped.
  EXPECT_LT(hub_->counters().delivered.load(), std::uint64_t{kMessages} / 2 + 8192);
}

TEST_F(HubTest, AMemberThatSaysNothingGetsABoundedNumberOfBytes) {
  TestMember writer = member();
  StreamSettings settings;
  settings.survives = Survives::nothing;
  ASSERT_EQ(writer.declare("s", settings), Errc::ok);
  const std::string body(kOpBodyMax, 'x');
  for (int i = 0; i < 80; ++i) {
    ASSERT_EQ(writer.request(TestMember::append_op("s", "a", body)).op.error(), Errc::ok);
  }
  TestMember m = member();
  Op read = op_of(OpKind::read, "s");
  read.number = 1000;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(m.next().op.kind, OpKind::delivery);
  }
  while (writer.request(op_of(OpKind::probe)).op.error() == Errc::ok && hub_->counters().delivered.load() < 64) {
  }
  EXPECT_LE(hub_->counters().delivered.load(), 66U);
  // Any op lets the rest come.
  for (int i = 64; i < 80;) {
    if (i % 8 == 0) {
      (void)m.send(op_of(OpKind::probe));
    }
    const OwnedOp op = m.next();
    ASSERT_NE(op.op.error(), Errc::timed_out);
    i += op.op.kind == OpKind::delivery ? 1 : 0;
  }
}

TEST_F(HubTest, ChannelsAndCreditHaveBounds) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  Op read = op_of(OpKind::read, "s");
  read.number = (1U << 20U) + 1;
  EXPECT_EQ(m.request(read).op.error(), Errc::invalid_argument);
  read.number = 1;
  std::uint32_t channel = 0;
  for (int i = 0; i < 1024; ++i) {
    channel = m.send(read);
    ASSERT_EQ(m.answer_to(channel).op.error(), Errc::ok);
  }
  EXPECT_EQ(m.request(read).op.error(), Errc::resource_exhausted);
  Op credit = op_of(OpKind::credit);
  credit.id = channel;
  credit.number = ~std::uint64_t{0};
  (void)m.send(credit);
  EXPECT_EQ(m.answer_to(channel).op.error(), Errc::invalid_argument);
  Op end = op_of(OpKind::end);
  end.id = channel;
  (void)m.send(end);
  EXPECT_EQ(m.answer_to(channel).op.error(), Errc::ok);
  read.id = channel - 1;
  (void)m.send(read);
  EXPECT_EQ(m.answer_to(read.id).op.error(), Errc::invalid_state);  // that channel is open
  (void)m.send(end);
  EXPECT_EQ(m.answer_to(channel).op.error(), Errc::not_found);
}

TEST_F(HubTest, AFullStoreRefusesAndServesOnAndTakesMoreWhenThereIsRoom) {
  hub_.reset();
  options_.store_bytes_max = 2 << 20;
  auto hub = host();
  ASSERT_NE(hub, nullptr) << error_.message();
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  const std::string body(100'000, 'x');
  std::uint64_t kept = 0;
  Errc error = Errc::ok;
  for (int i = 0; i < 40 && error == Errc::ok; ++i) {
    error = m.request(TestMember::append_op("s", "a", body)).op.error();
    kept += error == Errc::ok ? 1 : 0;
  }
  EXPECT_EQ(error, Errc::resource_exhausted);
  EXPECT_GE(kept, 10U);
  EXPECT_EQ(hub->ended(), Error());
  Op get = op_of(OpKind::get, "s");
  get.flags = OpFlags::by_sequence;
  get.number = kept;
  EXPECT_EQ(m.request(get).op.error(), Errc::ok);
  Op purge = op_of(OpKind::purge, "s");
  purge.number = kept;
  ASSERT_EQ(m.request(purge).op.error(), Errc::ok);
  EXPECT_EQ(m.request(TestMember::append_op("s", "a", body)).op.number, kept + 1);
}

TEST_F(HubTest, TwentyThousandMessagesInFlightAreReadInOrderAndOnce) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  constexpr std::uint64_t kMessages = 20'000;
  std::uint64_t answered = 0;
  std::map<std::uint32_t, std::uint64_t> bodies;
  for (std::uint64_t i = 1; i <= kMessages || answered < kMessages;) {
    if (i <= kMessages && i - answered <= 500) {
      bodies[m.send(TestMember::append_op("s", "a.b", std::to_string(i), "n-" + std::to_string(i)))] = i;
      ++i;
      continue;
    }
    OwnedOp op;
    ASSERT_TRUE(m.receive(op, sys::now() + 20s));
    ASSERT_EQ(op.op.error(), Errc::ok);
    ASSERT_EQ(op.op.number, bodies[op.op.id]);
    ++answered;
  }
  Op read = op_of(OpKind::read, "s");
  read.number = kMessages;
  ASSERT_EQ(m.request(read).op.error(), Errc::ok);
  for (std::uint64_t i = 1; i <= kMessages; ++i) {
    const OwnedOp op = m.next();
    ASSERT_EQ(op.op.number, i);
    ASSERT_EQ(as_text(op.op.body), std::to_string(i));
  }
  EXPECT_EQ(m.next().op.kind, OpKind::caught_up);
}

TEST_F(HubTest, AppendsThatFollowEachOtherAreAnsweredTogetherIfTheySayThatTheyMayBe) {
  TestMember m = member();
  ASSERT_EQ(m.declare("s", {}), Errc::ok);
  constexpr std::uint64_t kMessages = 1000;
  std::map<std::uint32_t, std::uint64_t> expected;  // by id: the sequence; 0: an error
  std::uint64_t stored = 0;
  for (std::uint64_t i = 1; i <= kMessages; ++i) {
    const bool is_duplicate = i % 250 == 0;
    const bool is_lost = i % 333 == 0;
    const std::string id = "n-" + std::to_string(is_duplicate ? 1 : i);
    Op op = TestMember::append_op(is_lost ? "none" : "s", "a.b", "x", id);
    op.flags = i % 100 < 90 ? OpFlags::run : 0;
    stored += is_duplicate || is_lost ? 0 : 1;
    expected[m.send(op)] = is_lost ? 0 : is_duplicate ? 1 : stored;
  }
  std::size_t answers = 0;
  while (!expected.empty()) {
    OwnedOp op;
    ASSERT_TRUE(m.receive(op, sys::now() + 20s));
    ++answers;
    const std::uint64_t count = op.op.has(OpFlags::run) ? op.op.second : 1;
    ASSERT_TRUE(count == 1 || (op.op.error() == Errc::ok && !op.op.has(OpFlags::duplicate)));
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto found = expected.find(op.op.id + i);
      ASSERT_NE(found, expected.end()) << op.op.id + i;
      EXPECT_EQ(op.op.error(), found->second == 0 ? Errc::not_found : Errc::ok);
      EXPECT_EQ(op.op.number, found->second == 0 ? 0 : found->second - i);
      expected.erase(found);
    }
  }
  EXPECT_GE(answers, 100U);  // that do not say it
  EXPECT_LT(answers, kMessages);
}

TEST_F(HubTest, WhatWasStoredIsToldAfterItsCommit) {
  hub_.reset();
  std::vector<std::string> told;  // the hub's thread; read after stop()
  options_.on_stored = [&told](std::vector<store::ReadMessage>&& messages) {
    for (const store::ReadMessage& each : messages) {
      told.push_back(std::string(each.message.topic) + ":" + std::string(as_text(each.message.body)));
    }
    return messages.size();
  };
  auto hub = host();
  ASSERT_NE(hub, nullptr) << error_.message();
  TestMember m = member();
  ASSERT_EQ(m.declare("s", process_log()), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "1", "x")).op.error(), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "a", "1", "x")).op.error(), Errc::ok);
  ASSERT_EQ(m.request(TestMember::append_op("s", "b", "2")).op.error(), Errc::ok);
  hub->stop();
  EXPECT_EQ(told, (std::vector<std::string>{"a:1", "b:2"}));
}

}  // namespace
}  // namespace weft::topic
