// SPDX-License-Identifier: MIT
// The priorities of the members of a consumer, on each engine: the cases of kept_cases_test.cc, on the same fleets.
// Debian's servers do not have them, and refuse.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class EachPriority : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (fleet_.missing() != nullptr) {
      GTEST_SKIP() << fleet_.missing();
    }
    topics_ = fleet_.open(context_);
    others_ = fleet_.open(context_);
  }
  [[nodiscard]] static bool refuses() { return GetParam() == "nats"; }
  static Result<Stream> open_stream(Topics& topics, Keep keep = Keep::work) {
    return topics.stream({.name = "jobs", .topics = {"jobs.>"}, .keep = keep, .survives = Survives::process});
  }
  static ConsumerOptions with(std::optional<std::uint32_t> priority, std::uint32_t room = 256) {
    ConsumerOptions options;
    options.queue_messages_max = room;
    options.priority = priority;
    return options;
  }
  // Whether the servers refuse the member, with a text that names the version.
  static bool refused(Stream& stream) {
    if (!refuses()) {
      return false;
    }
    const auto member = stream.consumer("c", with(0));
    EXPECT_EQ(member.error(), Errc::not_supported);
    EXPECT_NE(member.error().message().find("2.12"), std::string::npos) << member.error().message();
    EXPECT_TRUE(stream.info()->consumers.empty());
    return true;
  }
  static void publish(Stream& stream, int first, int count) {
    for (int i = first; i < first + count; ++i) {
      ASSERT_TRUE(stream.publish("jobs.a", std::to_string(i)));
    }
  }
  static void expect_next(Consumer& member, int number) {
    auto delivery = member.next_until(soon());
    ASSERT_TRUE(delivery) << delivery.error().message();
    EXPECT_EQ(delivery->text(), std::to_string(number));
    EXPECT_TRUE(delivery->ack_confirmed());
  }
  static bool got(Result<Delivery>&& delivery) {
    if (delivery) {
      delivery->ack();
    }
    return delivery.has_value();
  }
  // A server has a request of the member, which it may get later than the program its consumer.
  static void await_served(Stream& stream, Consumer& member, Consumer* other = nullptr) {
    const Instant end = soon();
    publish(stream, -1, 1);
    while (!got(member.next_until(sys::now() + 20ms))) {
      ASSERT_LT(sys::now(), end);
      if (other != nullptr && got(other->try_next())) {
        publish(stream, -1, 1);
      }
    }
  }

  TestFleet fleet_{GetParam(), true};
  Context context_;
  std::optional<Topics> topics_;
  std::optional<Topics> others_;
};
WEFT_ON_FLEETS(EachPriority, kKeptFleets);

TEST_P(EachPriority, AMessageGoesToTheLowestNumberWithRoom) {
  Stream jobs = *open_stream(*topics_);
  Stream same = *open_stream(*others_);
  if (refused(jobs)) {
    return;
  }
  Consumer first = *jobs.consumer("c", with(0));
  await_served(jobs, first);
  Consumer next = *same.consumer("c", with(5));
  // Many times its queue, of which a fifth is never exceeded: it gives credit again and again.
  std::vector<PendingPublish> sent;
  for (std::size_t received = 0; received < 3000; ++received) {
    while (sent.size() < std::min<std::size_t>(received + 50, 3000)) {
      sent.push_back(*jobs.publish_later("jobs.a", std::to_string(sent.size())));
    }
    auto delivery = first.next_until(soon());
    ASSERT_TRUE(delivery) << received << ": " << delivery.error().message();
    delivery->ack();
  }
  EXPECT_EQ(next.try_next().error(), Errc::would_block);
}

TEST_P(EachPriority, TheOthersGetWhatTheLowestNumberHasNoRoomFor) {
  Stream jobs = *open_stream(*topics_);
  Stream same = *open_stream(*others_);
  if (refused(jobs)) {
    return;
  }
  Consumer first = *jobs.consumer("c", with(1, 2));
  await_served(jobs, first);
  Consumer next = *same.consumer("c", with(9));
  publish(jobs, 0, 5);
  std::set<std::string> of_first;
  std::set<std::string> of_next;
  while (of_next.size() < 3) {
    auto delivery = next.next_until(soon());
    ASSERT_TRUE(delivery) << delivery.error().message();
    of_next.insert(std::string(delivery->text()));
    EXPECT_TRUE(delivery->ack_confirmed());
  }
  for (auto delivery = first.try_next(); delivery; delivery = first.try_next()) {
    of_first.insert(std::string(delivery->text()));
    EXPECT_TRUE(delivery->ack_confirmed());
  }
  EXPECT_TRUE(of_first.contains("0"));
  EXPECT_LE(of_first.size(), 2u);
  await_served(jobs, first, &next);  // it has room again
}

TEST_P(EachPriority, MembersOfTheSameNumberShare) {
  Stream jobs = *open_stream(*topics_);
  Stream same = *open_stream(*others_);
  if (refused(jobs)) {
    return;
  }
  std::vector<Consumer> workers;
  workers.push_back(*jobs.consumer("c", with(3)));
  workers.push_back(*same.consumer("c", with(3)));
  await_served(jobs, workers[0], &workers[1]);
  await_served(jobs, workers[1], &workers[0]);
  Consumer last = *jobs.consumer("c", with(8));
  publish(jobs, 0, 8);
  for (Consumer& worker : workers) {  // neither acknowledges before both have got their share
    for (int i = 0; i < 4; ++i) {
      const auto delivery = worker.next_until(soon());
      ASSERT_TRUE(delivery) << delivery.error().message();
    }
  }
  EXPECT_EQ(last.try_next().error(), Errc::would_block);
}

TEST_P(EachPriority, WhenTheFirstMemberEndsTheNextOneGetsItsMessages) {
  Stream jobs = *open_stream(*topics_);
  if (refused(jobs)) {
    return;
  }
  ConsumerOptions how = with(0);
  how.ack_wait = 1s;
  Topics dies = fleet_.open(context_);
  Stream of_it = *open_stream(dies);
  Consumer first = *of_it.consumer("c", how);
  publish(jobs, 0, 1);
  const auto held = first.next_until(soon());  // not acknowledged
  ASSERT_TRUE(held) << held.error().message();
  how.priority = 1;
  Consumer next = *jobs.consumer("c", how);
  publish(jobs, 1, 2);
  dies.close();
  for (std::set<std::string> taken; taken.size() < 3;) {
    auto delivery = next.next_until(soon());
    ASSERT_TRUE(delivery) << taken.size() << ": " << delivery.error().message();
    taken.insert(std::string(delivery->text()));
    delivery->ack();
  }
}

// The thread of the program does other work; its handle renews the messages in the queue meanwhile.
TEST_P(EachPriority, TheQueueOfAProgramThatTakesNothingForAckWaitGoesToTheOthersUntilItTakesAMessage) {
  Stream jobs = *open_stream(*topics_);
  Stream same = *open_stream(*others_);
  if (refused(jobs)) {
    return;
  }
  ConsumerOptions how = with(0);
  how.ack_wait = 1s;
  Consumer hangs = *jobs.consumer("c", how);
  await_served(jobs, hangs);
  how.priority = 1;
  Consumer next = *same.consumer("c", how);
  publish(jobs, 0, 3);
  for (std::set<std::string> taken; taken.size() < 4;) {
    auto delivery = next.next_until(soon());
    ASSERT_TRUE(delivery) << taken.size() << ": " << delivery.error().message();
    const bool third = taken.insert(std::string(delivery->text())).second && taken.size() == 3;
    delivery->ack();
    if (third) {
      publish(jobs, 3, 1);  // goes to the other member, too
    }
  }
  await_served(jobs, hangs, &next);  // the program is there again
}

TEST_P(EachPriority, AMemberWithoutANumberIsOneOfTheFirst) {
  Stream jobs = *open_stream(*topics_);
  Stream same = *open_stream(*others_);
  if (refused(jobs)) {
    return;
  }
  Consumer next = *jobs.consumer("c", with(1));
  Consumer first = *same.consumer("c", with(std::nullopt));
  await_served(jobs, first, &next);
  publish(jobs, 0, 20);
  for (int i = 0; i < 20; ++i) {
    expect_next(first, i);
  }
  EXPECT_EQ(next.try_next().error(), Errc::would_block);
}

// On NATS the priorities are a setting of the server's consumer, which its first member decides.
TEST_P(EachPriority, AConsumerThatIsThereGetsPrioritiesAndItsMembersGoOn) {
  Stream jobs = *open_stream(*topics_, Keep::log);
  Stream same = *open_stream(*others_, Keep::log);
  if (refused(jobs)) {
    return;
  }
  Consumer first = *jobs.consumer("c", with(std::nullopt, 2));
  await_served(jobs, first);
  publish(jobs, 1, 1);
  expect_next(first, 1);
  const std::uint64_t floor = jobs.info()->consumers.front().floor;
  EXPECT_GT(floor, 1u);
  ConsumerOptions second = with(1);
  if (is_nats(GetParam())) {
    const Error refusal = same.consumer("c", second).error();
    EXPECT_EQ(refusal, Errc::conflict);
    EXPECT_NE(refusal.message().find("redeclare"), std::string::npos) << refusal.message();
    await_served(jobs, first);
    second.redeclare = true;
  }
  auto next = same.consumer("c", second);
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_GE(jobs.info()->consumers.front().floor, floor) << "it goes on where it was";
  for (int i = 0; i < 5; ++i) {  // its queue has two places
    await_served(jobs, first, &*next);
  }
  // A change of another setting does not take the priorities back, nor does a move.
  Topics third = fleet_.open(context_);
  Stream of_third = *open_stream(third, Keep::log);
  ASSERT_TRUE(of_third.consumer("c", {.unacked_max = 7, .redeclare = true}));
  ConsumerOptions moved{.from = From::sequence(3), .unacked_max = 7, .redeclare = true};
  const auto other = of_third.consumer("c", moved);
  ASSERT_TRUE(other) << other.error().message();
  moved.redeclare = false;
  moved.priority = 9;
  const auto last = of_third.consumer("c", moved);
  EXPECT_TRUE(last) << last.error().message();
}

TEST_P(EachPriority, ANumberIsZeroToNine) {
  Stream jobs = *open_stream(*topics_);
  for (const std::uint32_t wrong : {10U, 256U, ~0U}) {
    EXPECT_EQ(jobs.consumer("c", with(wrong)).error(), Errc::invalid_argument) << wrong;
  }
  EXPECT_TRUE(jobs.info()->consumers.empty());
}

}  // namespace
}  // namespace weft::topic
