// SPDX-License-Identifier: MIT
// Fleets of three processes: this one, and two that it starts.
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "side.h"
#include "weft/topic/test_fleets.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class Processes : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { topics_.push_back(fleet_.open(context_)); }
  Topics& topics() { return topics_.front(); }
  Side side(std::vector<std::string> command) {
    const TopicsOptions options = fleet_.options();
    command.insert(command.begin(),
                   {options.fleet, options.runtime_directory.empty() ? "/nowhere" : options.runtime_directory});
    return Side(std::move(command));
  }

  TestFleet fleet_{GetParam()};
  Context context_;
  std::vector<Topics> topics_;
};
INSTANTIATE_TEST_SUITE_P(Fleets, Processes, testing::Values("local", "tcp"),
                         [](const auto& kind) { return kind.param; });

TEST_P(Processes, EachReceivesAllThatOnePublishes) {
  constexpr std::uint64_t kMessages = 50'000;
  Side first = side({"count", "a.b", std::to_string(kMessages)});
  Side second = side({"count", "a.b", std::to_string(kMessages)});
  EXPECT_TRUE(first.line().starts_with("ready"));
  EXPECT_TRUE(second.line().starts_with("ready"));
  Publisher p = *topics().publisher("a.b", {.when_full = WhenFull::wait});
  ASSERT_TRUE(p.wait_subscribers(2, soon()));
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(p.publish(std::to_string(i)));
  }
  const std::string all = "received " + std::to_string(kMessages) + " missed 0";
  EXPECT_EQ(first.line(), all);
  EXPECT_EQ(second.line(), all);
  EXPECT_EQ(topics().statistics().dropped_full, 0u);
}

TEST_P(Processes, TwoPublishToOne) {
  constexpr std::uint64_t kMessages = 20'000;
  Subscription s = *topics().subscribe("t.*");
  Side first = side({"publish", "t.1", std::to_string(kMessages), "1"});
  Side second = side({"publish", "t.2", std::to_string(kMessages), "1"});
  std::uint64_t next[2] = {0, 0};
  std::uint64_t missed = 0;
  for (std::uint64_t i = 0; i + missed < 2 * kMessages; ++i) {
    const auto m = s.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    missed += m->missed();
    std::uint64_t& expected = next[m->topic() == "t.1" ? 0 : 1];
    const std::uint64_t number = std::stoull(std::string(m->text()));
    EXPECT_GE(number, expected);
    expected = number + 1;
  }
  const std::string all = "published " + std::to_string(kMessages) + " dropped 0";
  EXPECT_EQ(first.line(), all);
  EXPECT_EQ(second.line(), all);
  const TopicsStatistics books = topics().statistics();
  EXPECT_EQ(books.received, 2 * kMessages);
  EXPECT_EQ(books.matched, books.delivered + books.dropped() + books.queued);
}

// Each life publishes a topic of its own: the messages that the kernel and the connection of a killed one still hold
// come after the first messages of the next one, which is another publisher.
TEST_P(Processes, AProcessThatIsKilledWhileItPublishesDisturbsNobody) {
  Subscription s = *topics().subscribe("a.*");
  std::map<std::string, std::uint64_t> next;
  for (int life = 0; life < 3; ++life) {
    const std::string topic = "a." + std::to_string(life);
    Side flooder = side({"flood", topic, "1"});
    EXPECT_EQ(flooder.line(), "flooding");
    for (int of_this_life = 0; of_this_life < 1000;) {
      const auto m = s.next_until(soon());
      ASSERT_TRUE(m) << m.error().message();
      std::uint64_t& expected = next[std::string(m->topic())];
      const std::uint64_t number = std::stoull(std::string(m->text()));
      EXPECT_GE(number, expected) << m->topic();
      expected = number + 1;
      of_this_life += m->topic() == topic ? 1 : 0;
    }
    flooder.kill();
    flooder.wait();
  }
  Side last = side({"publish", "b", "10", "1"});
  Subscription b = *topics().subscribe("b");
  for (int i = 0; i < 10; ++i) {
    const auto m = b.next_until(soon());
    ASSERT_TRUE(m) << m.error().message();
    EXPECT_EQ(m->text(), std::to_string(i));
  }
  const TopicsStatistics books = topics().statistics();
  EXPECT_EQ(books.matched, books.delivered + books.dropped() + books.queued);
}

TEST_P(Processes, ASubscriberThatIsKilledLeavesNothingBehind) {
  Publisher p = *topics().publisher("a");
  {
    Side holder = side({"hold", "a"});
    EXPECT_TRUE(holder.line().starts_with("ready"));
    ASSERT_TRUE(p.wait_subscribers(1, soon()));
    EXPECT_EQ(topics().sync(soon())->size(), 1u);
    holder.kill();
    holder.wait();
  }
  // A newcomer finds the socket of the dead one, and removes it.
  Side counter = side({"count", "a", "1"});
  EXPECT_TRUE(counter.line().starts_with("ready"));
  ASSERT_TRUE(p.wait_subscribers(1, soon()));
  ASSERT_TRUE(p.publish("0"));
  EXPECT_EQ(counter.line(), "received 1 missed 0");
  if (GetParam() == "local") {
    const auto sockets = [this] {
      std::size_t count = 0;
      for (const auto& entry : std::filesystem::recursive_directory_iterator(fleet_.directory())) {
        count += entry.is_socket() ? 1 : 0;
      }
      return count;
    };
    // If this process has the directory's lock at that moment, it removes the socket itself, a moment later.
    for (const Instant end = soon(); sockets() != 2 && sys::now() < end;) {
      std::this_thread::yield();
    }
    EXPECT_EQ(sockets(), 2u);
  }
}

// A stopped process keeps its connections; its lease runs out. A killed one leaves with its connections.
TEST_P(Processes, AProcessThatIsStoppedLeavesTheNodesAfterItsLease) {
  Side first = side({"present", "first"});
  ASSERT_EQ(first.line(), "present");
  auto nodes = topics().watch_nodes({}, soon());
  ASSERT_TRUE(nodes) << nodes.error().message();
  ASSERT_EQ(nodes->size(), 1u);
  EXPECT_EQ(nodes->front().node, "first");
  first.stop();
  nodes = topics().watch_nodes(*nodes, soon());
  ASSERT_TRUE(nodes) << nodes.error().message();
  EXPECT_TRUE(nodes->empty());
  EXPECT_EQ(topics().statistics().peers, 1u);  // still connected
  first.go_on();
  nodes = topics().watch_nodes({}, soon());
  ASSERT_TRUE(nodes) << nodes.error().message();
  EXPECT_EQ(nodes->size(), 1u);
  first.kill();
  first.wait();
  nodes = topics().watch_nodes(*nodes, soon());
  ASSERT_TRUE(nodes) << nodes.error().message();
  EXPECT_TRUE(nodes->empty());
}

}  // namespace
}  // namespace weft::topic
