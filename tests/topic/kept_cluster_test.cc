// SPDX-License-Identifier: MIT
// Kept topics of a fleet on three servers of NATS, with three copies, when servers are lost.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/topic/nats_cluster.h"
#include "tests/topic/on_each_server.h"
#include "weft/sys/clock.h"
#include "weft/topic/test_time.h"
#include "weft/topic/topics.h"
#include <gtest/gtest.h>

namespace weft::topic {
namespace {

class KeptNatsCluster : public OnEachServer {
 protected:
  void SetUp() override {
    OnEachServer::SetUp();
    if (IsSkipped()) {
      return;
    }
    cluster_.emplace(program_);
  }
  [[nodiscard]] TopicsOptions options() const {
    TopicsOptions options;
    options.fleet = cluster_->urls();
    return options;
  }

  std::optional<NatsCluster> cluster_;
  Context context_;
};
INSTANTIATE_TEST_SUITE_P(Servers, KeptNatsCluster, testing::Values("nats", "nats_current"),
                         [](const auto& kind) { return kind.param; });

TEST_P(KeptNatsCluster, ThreeCopiesSurviveTheLossOfEachServerInTurn) {
  const StreamOptions options{.name = "s", .topics = {"s.>"}, .survives = Survives::machine};
  const auto declared = declare_in_cluster(this->options(), options);
  ASSERT_TRUE(declared) << declared.error().message();
  Topics topics = *Topics::open(context_, this->options());
  auto stream = topics.stream(options);
  ASSERT_TRUE(stream) << stream.error().message();
  EXPECT_EQ(stream->survives(), Survives::machine);
  Reader reader = *stream->read();
  constexpr int kCount = 3000;
  std::vector<PendingPublish> pending;
  for (int i = 0; i < kCount; ++i) {
    if (i % (kCount / 3) == kCount / 6) {
      cluster_->server(i / (kCount / 3)).restart();
    }
    auto sent = stream->publish_later("s.a", std::to_string(i));
    ASSERT_TRUE(sent) << sent.error().message();
    pending.push_back(*std::move(sent));
    if (i % (kCount / 6) == 0) {
      const auto published = pending.back().wait();
      ASSERT_TRUE(published) << i << ": " << published.error().message();
    }
  }
  for (int i = 0; i < kCount; ++i) {
    const auto published = pending[static_cast<std::size_t>(i)].wait();
    ASSERT_TRUE(published) << i << ": " << published.error().message();
  }
  std::set<std::string> seen;
  while (seen.size() < kCount) {
    const auto message = reader.next_until(sys::now() + 60s);
    ASSERT_TRUE(message) << seen.size() << ": " << message.error().message();
    EXPECT_TRUE(seen.insert(std::string(message->text())).second) << "stored twice: " << message->text();
  }
}

// The servers choose the next leader of a consumer within 10 s, and until then none of them takes an acknowledgement.
TEST_P(KeptNatsCluster, AnAcknowledgementWaitsForTheNextLeaderOfTheConsumer) {
  const StreamOptions options{.name = "s", .topics = {"s.>"}, .survives = Survives::machine};
  const auto declared = declare_in_cluster(this->options(), options);
  ASSERT_TRUE(declared) << declared.error().message();
  Topics topics = *Topics::open(context_, this->options());
  auto stream = topics.stream(options);
  ASSERT_TRUE(stream) << stream.error().message();
  auto consumer = stream->consumer("c", {.ack_wait = 120s});
  ASSERT_TRUE(consumer) << consumer.error().message();
  const auto published = stream->publish("s.a", "x", {.deadline = sys::now() + 60s});
  ASSERT_TRUE(published) << published.error().message();
  auto delivery = consumer->next_until(sys::now() + 60s);
  ASSERT_TRUE(delivery) << delivery.error().message();
  int leader = -1;
  for (const Instant end = sys::now() + 60s; leader < 0 && sys::now() < end;) {
    leader = cluster_->leader_of("s", "c");
  }
  ASSERT_GE(leader, 0);
  cluster_->server(leader).kill();
  const auto done = delivery->ack_confirmed();
  EXPECT_TRUE(done || done.error() == Errc::outcome_unknown) << done.error().message();
  EXPECT_TRUE(stream->publish("s.a", "y", {.deadline = sys::now() + 60s}));
  const auto next = consumer->next_until(sys::now() + 60s);
  ASSERT_TRUE(next) << next.error().message();
}

}  // namespace
}  // namespace weft::topic
